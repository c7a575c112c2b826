"""Exact log-probabilities of whole sentences under any language or translation model, ours or the host's.

Sizes: B batch, T time, H hidden width, V words. Teacher-forced: one pass over the sentence, no search, no gradient. All
scores are in nats and count the end of the sentence: log p(hypothesis </s> | source).
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from fairseq import utils
from fairseq.data import Dictionary, data_utils
from fairseq.data.language_pair_dataset import collate
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY, BaseFairseqModel
from fairseq.models import FairseqEncoderDecoderModel as TranslationModel
from fairseq.models import FairseqLanguageModel as LanguageModel
from fairseq.tasks import FairseqTask
from fairseq.tokenizer import tokenize_line
from torch import Tensor

from fairseq_llrnn.core.prior import JSON_FILE
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.plugin.decoder import LogLinearDecoder
from fairseq_llrnn.plugin.load import build_model, encode, name_of, read_checkpoint
from fairseq_llrnn.plugin.task import prior_folder

TASKS = {
    LanguageModel: ("language_modeling", "llrnn_language_modeling"),
    TranslationModel: ("translation", "llrnn_translation"),
}
# What Scorer.notes counts.
WORDS, UNKNOWN = "words", "unknown words"
TOO_LONG, IMPOSSIBLE = "are longer than the model allows, or their source is", "have no probability in the model"
UNSCORED = (TOO_LONG, IMPOSSIBLE)


class Scorer:
    """A model that scores sentences.

    `languages` are those of a translation model, source and target. `notes` counts what was met: the WORDS that models
    read and score, those of them that the dictionary lacks (UNKNOWN, scored as <unk>), and hypotheses that were not
    scored, because they or their source are TOO_LONG, or the model gives them no probability (IMPOSSIBLE).

    Args:
        max_tokens: of a batch, padding included.
    """

    def __init__(self, model: BaseFairseqModel, task: FairseqTask, max_tokens: int) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.eval().to(self.device)
        self.task = task
        self.max_tokens = max_tokens
        is_translation = isinstance(model, TranslationModel)
        self.languages = (task.cfg.source_lang, task.cfg.target_lang) if is_translation else None
        self.notes: Counter[str] = Counter()
        limit = utils.resolve_max_positions(task.max_positions(), model.max_positions())
        self.limits: tuple[float, float] = limit if isinstance(limit, tuple) else (math.inf, limit or math.inf)

    def score(self, sources: Sequence[str] | None, hypotheses: Sequence[str]) -> list[float]:
        """log p(hypothesis </s> | source) in nats for each; −inf for those that cannot be scored.

        Args:
            sources: one per hypothesis; a language model does not look at them.
        """
        targets = [self._encode(self.task.target_dictionary, text) for text in hypotheses]
        read: list[Tensor] = []
        if self.languages is not None:
            if sources is None:
                raise ValueError("a translation model needs sources")
            read = [self._encode(self.task.source_dictionary, text) for text in sources]
        scores = [-math.inf] * len(targets)
        for numbers in self._batches(targets, read):
            for number, score in self._score_batch(numbers, targets, read):
                if math.isfinite(score):
                    scores[number] = score
                else:
                    self.notes[IMPOSSIBLE] += 1
        return scores

    def _encode(self, dictionary: Dictionary, text: str) -> Tensor:
        """Indices with the end of the sentence, (T,). Symbols that are no words count as unknown, too."""
        words = tokenize_line(text)
        tokens = encode(dictionary, words)
        unknown = (token == dictionary.unk() for token in tokens[:-1].tolist())
        self.notes[WORDS] += len(words)
        self.notes[UNKNOWN] += sum(u and w != dictionary.unk_word for u, w in zip(unknown, words, strict=True))
        return tokens

    def _batches(self, targets: Sequence[Tensor], read: Sequence[Tensor]) -> Iterator[list[int]]:
        """Numbers of sentences of similar length, at most `max_tokens` with padding (or one longer sentence)."""
        lengths = [(len(target), len(read[i]) if read else 0) for i, target in enumerate(targets)]
        most_read, most = self.limits
        fit = [i for i, (length, source) in enumerate(lengths) if length <= most and source <= most_read]
        self.notes[TOO_LONG] += len(targets) - len(fit)
        batch: list[int] = []
        width = 0
        for number in sorted(fit, key=lambda i: lengths[i]):
            width = max(width, *lengths[number])
            if batch and width * (len(batch) + 1) > self.max_tokens:
                yield batch
                batch, width = [], max(lengths[number])
            batch.append(number)
        if batch:
            yield batch

    @torch.inference_mode()
    def _score_batch(
        self, numbers: Sequence[int], targets: Sequence[Tensor], read: Sequence[Tensor]
    ) -> Iterator[tuple[int, float]]:
        """Numbers and their scores, in any order."""
        order, net_input, target = self._collate(numbers, targets, read)
        decoder = self.model.decoder
        if isinstance(decoder, LogLinearDecoder):
            hidden, extra = self.model(**net_input, features_only=True)  # shape: (B, T, H)
            log_prob = decoder.target_log_prob(hidden, extra, target)  # shape: (B, T)
        else:
            log_probs = self.model.get_normalized_probs(self.model(**net_input), log_probs=True)  # shape: (B, T, V)
            log_prob = log_probs.gather(2, target.unsqueeze(2)).squeeze(2)
        padding = target.eq(self.task.target_dictionary.pad())
        totals = log_prob.double().masked_fill(padding, 0.0).sum(dim=1)
        return zip(order, totals.tolist(), strict=True)

    def _collate(
        self, numbers: Sequence[int], targets: Sequence[Tensor], read: Sequence[Tensor]
    ) -> tuple[list[int], dict[str, Tensor], Tensor]:
        """As the host's data sets do: numbers in the order of the batch, what the model gets, targets (B, T)."""
        dictionary = self.task.target_dictionary
        pad, eos = dictionary.pad(), dictionary.eos()
        if read:
            samples = [{"id": i, "source": read[i], "target": targets[i]} for i in numbers]
            cfg = self.task.cfg
            batch = collate(samples, pad, eos, cfg.left_pad_source, cfg.left_pad_target)
            batch = utils.move_to_cuda(batch) if self.device.type == "cuda" else batch
            return batch["id"].tolist(), batch["net_input"], batch["target"]
        chosen = [targets[i] for i in numbers]
        target = data_utils.collate_tokens(chosen, pad, eos).to(self.device)
        previous = data_utils.collate_tokens(chosen, pad, eos, move_eos_to_beginning=True).to(self.device)
        lengths = torch.tensor([len(one) for one in chosen], device=self.device)
        return list(numbers), {"src_tokens": previous, "src_lengths": lengths}, target


def load_scorer(path: str, max_tokens: int) -> Scorer:
    """A scorer from a checkpoint of a language model or a translation model, ours or the host's.

    Raises:
        DataError: no such file; a checkpoint that is damaged, holds code, or is of another kind of model or task.
        OptionError: its data or prior is not where its training was. PriorError: the prior does not fit.
    """
    state = read_checkpoint(path)
    cfg = state["cfg"]
    _check_kind(path, cfg)
    _check_places(path, cfg.task)
    return Scorer(*build_model(path, state), max_tokens)


def _check_kind(path: str, cfg: Any) -> None:
    """Refuse, by the names in the options, what cannot score sentences, before any of it is built."""
    model, task = name_of(cfg, "model"), name_of(cfg, "task")
    model_class = MODEL_REGISTRY.get(model) or ARCH_MODEL_REGISTRY.get(model)
    for kind, tasks in TASKS.items():
        if isinstance(model_class, type) and issubclass(model_class, kind) and task in tasks:
            if getattr(cfg.task, "add_bos_token", False):
                raise DataError(f"{path}: a model that was trained with --add-bos-token cannot score; use another one")
            return
    known = " or ".join(name for tasks in TASKS.values() for name in tasks)
    raise DataError(
        f"{path}: expected a language or translation model of the task {known}, found {model!r} of task {task!r}; only "
        "these give the probability of a sentence"
    )


def _check_places(path: str, task: Any) -> None:
    """The data folder, and with our tasks the prior, must be where the training found them."""
    data = utils.split_paths(str(task.data))[0]
    names = os.listdir(data) if os.path.isdir(data) else []
    if not any(name.startswith("dict.") and name.endswith(".txt") for name in names):
        raise OptionError(
            f"{path} was trained with the data folder {data!r}, but there is no dictionary in it seen from here; run "
            "this in the folder of the training, or make a link"
        )
    prior = prior_folder(getattr(task, "prior", None), str(task.data))
    if hasattr(task, "prior") and not os.path.isfile(os.path.join(prior, JSON_FILE)):
        raise OptionError(
            f"{path} was trained with the prior {prior!r}, but there is none seen from here; run this in the folder of "
            "the training, or make a link"
        )
