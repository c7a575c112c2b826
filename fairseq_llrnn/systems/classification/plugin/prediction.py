"""Predict the most probable labels of texts with a checkpoint of a classifier.

    predict = load_label_predictor("labels/checkpoint_best.pt")
    for answer in predict.answers(["book me a flight to Paris"], k=5):
        print(answer.labels)                                   # [("book_flight", 0.93), …]

Sizes: B texts of a batch, k labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from fairseq.data import data_utils

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.texts import line_batches
from fairseq_llrnn.plugin.compat.loading import RECORDED, Places, encode, load_model
from fairseq_llrnn.plugin.names import name_of
from fairseq_llrnn.systems.classification.plugin.label_decoder import LabelModel
from fairseq_llrnn.systems.classification.plugin.task import LLRNNClassificationTask

TASK = "llrnn_classification"
TEXTS = 1024  # of a batch, at most


@dataclass(frozen=True)
class Answer:
    """The prediction for a text."""

    number: int  # of its line, from 1
    words: Sequence[str]
    unknown: int = 0  # words that the dictionary lacks
    labels: Sequence[tuple[str, float]] = ()  # with their probabilities, best first
    too_long_for: int | None = None  # the most words of a text, if it has more


class LabelPredictor:
    """Predict the labels of texts. Unknown words are <unk>, or read by their characters."""

    def __init__(self, model: LabelModel, task: LLRNNClassificationTask, max_tokens: int = 4096) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.eval().to(self.device)
        self.task, self.max_tokens = task, max_tokens
        self.longest = task.max_positions() - 1

    @property
    def label_set(self) -> frozenset[str]:
        """Return the labels that have mass."""
        prior = self.task.prior
        return frozenset(label for label, allowed in zip(prior.symbols, prior.allowed, strict=True) if allowed)

    def answers(self, lines: Iterable[str], k: int = 1) -> Iterator[Answer]:
        """Yield the k best labels (or all, if fewer) of every line, in order."""
        k = min(k, len(self.task.prior.symbols))
        for batch in line_batches(lines, self.longest, TEXTS, self.max_tokens):
            read = [Answer(number, words) for number, words in batch]
            if len(read[0].words) > self.longest:
                yield replace(read[0], too_long_for=self.longest)
            else:
                yield from self._answers(read, k)

    @torch.inference_mode()
    def _answers(self, batch: Sequence[Answer], k: int) -> list[Answer]:
        dictionary, symbols = self.task.source_dictionary, self.task.target_dictionary.symbols
        rows = [encode(dictionary, answer.words) for answer in batch]
        tokens = data_utils.collate_tokens(rows, dictionary.pad()).to(self.device)
        values, labels = self.model.best_labels(tokens, None, k)
        answers = []
        for answer, row, log_p, best in zip(batch, rows, values.tolist(), labels.tolist(), strict=True):
            named = [(symbols[i], math.exp(p)) for p, i in zip(log_p, best, strict=True) if p > -math.inf]
            answers.append(replace(answer, unknown=int((row == dictionary.unk()).sum()), labels=named))
        return answers


def load_label_predictor(path: str, max_tokens: int = 4096, places: Places = RECORDED) -> LabelPredictor:
    """Return the predictor of a checkpoint.

    Raises:
        DataError: the file is missing or damaged, holds code, or is not of a classifier.
        OptionError: its data or prior is not found.
        PriorError: the prior does not fit.
    """
    model, task, _ = load_model(path, places, _check_kind)
    assert isinstance(model, LabelModel) and isinstance(task, LLRNNClassificationTask)
    return LabelPredictor(model, task, max_tokens)


def _check_kind(path: str, cfg: Any) -> None:
    if name_of(cfg, "task") != TASK:
        raise DataError(
            f"{path}: expected a classifier, a model of the task {TASK}, found {name_of(cfg, 'model')!r} of task "
            f"{name_of(cfg, 'task')!r}; give another checkpoint"
        )
