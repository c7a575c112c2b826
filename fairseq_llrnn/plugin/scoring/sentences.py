"""Exact log-probabilities of whole sentences under any language or translation model, ours or fairseq's.

Sizes: B batch, T time, L source length, H hidden width, V words. Teacher-forced: one pass over the sentence, without a
search or a gradient. All scores are in nats and include the end of the sentence: log p(hypothesis </s> | source). Each
source is encoded once for all its hypotheses.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from fairseq.data import Dictionary, data_utils
from fairseq.data.language_pair_dataset import collate
from fairseq.models import BaseFairseqModel
from fairseq.models import FairseqEncoderDecoderModel as TranslationModel
from fairseq.models import FairseqLanguageModel as LanguageModel
from fairseq.tasks import FairseqTask
from fairseq.tokenizer import tokenize_line
from torch import Tensor

from fairseq_llrnn.backgrounds.background import BoundBackground
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.texts import together
from fairseq_llrnn.output.context_classes import strings_in
from fairseq_llrnn.output.normalisers import check_scores
from fairseq_llrnn.plugin.compat.loading import RECORDED, Places, encode, load_model, marker_of
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.plugin.names import find_model, name_of
from fairseq_llrnn.plugin.tasks.translation import LLRNNTranslationTask

TASKS = {
    LanguageModel: ("language_modeling", "llrnn_language_modeling"),
    TranslationModel: ("translation", "llrnn_translation"),
}
# keys of Scorer.notes
WORDS, UNKNOWN = "words", "unknown words"
TOO_LONG, IMPOSSIBLE = "are longer than the model allows, or their source is", "have no probability in the model"
UNSCORED = (TOO_LONG, IMPOSSIBLE)
UNREAD = "have a source with terms after a tab, which the model does not read"


Source = tuple[int, ...]  # indices of a source sentence


@dataclass(frozen=True)
class Encoded:
    """The encoder's output for some sources."""

    out: Any
    length: int  # L
    row: dict[Source, int]  # of each source in the batch


class Scorer:
    """A model that scores sentences.

    `languages` are the source and target of a translation model. `dictionaries` are its dictionary files. `prior` is
    the prior's signature, for one of our models. `notes` has these counts:

    - WORDS: words that the model reads and scores.
    - UNKNOWN: words scored as <unk>, in no dictionary and (in a translation) in no slot of the source.
    - TOO_LONG, IMPOSSIBLE: hypotheses without a score, because they or their source are too long, or have probability
      0.
    - UNREAD: hypotheses whose source has terms that the model does not read.

    Args:
        max_tokens: of a batch, padding included.
    """

    def __init__(
        self, model: BaseFairseqModel, task: FairseqTask, max_tokens: int, dictionaries: Sequence[Path] = ()
    ) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.eval().to(self.device)
        self.task = task
        self.max_tokens = max_tokens
        self.dictionaries = tuple(dictionaries)
        decoder = model.decoder
        self.prior = decoder.head.prior.signature if isinstance(decoder, LogLinearDecoder) else None
        is_translation = isinstance(model, TranslationModel)
        self.languages = (task.cfg.source_lang, task.cfg.target_lang) if is_translation else None
        self.notes: Counter[str] = Counter()
        limit = utils.resolve_max_positions(task.max_positions(), model.max_positions())
        self.limits: tuple[float, float] = limit if isinstance(limit, tuple) else (math.inf, limit or math.inf)

    def score(self, sources: Sequence[str] | None, hypotheses: Sequence[str]) -> list[float]:
        """Return log p(hypothesis </s> | source) in nats for each, or −inf for hypotheses without a score.

        Args, Raises: as `token_scores`.
        """
        sums = [-math.inf] * len(hypotheses)
        for number, _, log_probs in self.token_scores(sources, hypotheses):
            score = float(log_probs.sum())
            if math.isfinite(score):
                sums[number] = score
            else:
                self.notes[IMPOSSIBLE] += 1
        return sums

    @torch.inference_mode()
    def token_scores(
        self, sources: Sequence[str] | None, hypotheses: Sequence[str]
    ) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Yield the number of each hypothesis that is not too long, its tokens (T,) and their log p (T,) float64.

        Args:
            sources: one per hypothesis, each with the terms of its translation after it, in the format of
                fairseq-interactive. A language model ignores them.

        Raises:
            DataError: a term that its source does not have.
        """
        targets = [self._encode(self.task.target_dictionary, text) for text in hypotheses]
        read: list[Tensor] = []
        if self.languages is not None:
            if sources is None:
                raise ValueError("a translation model needs sources")
            read = [self._encode(self.task.source_dictionary, *text.split("\t")) for text in sources]
            if isinstance(self.task, LLRNNTranslationTask):
                targets = [self.task.retokenize(*pair) for pair in zip(read, targets, strict=True)]
        for numbers, encoded in self._groups(self._fitting(targets, read), read):
            least = 0 if encoded is None else encoded.length
            widths = {i: max(least, len(targets[i])) for i in sorted(numbers, key=lambda i: len(targets[i]))}
            for batch in together(widths, widths.__getitem__, math.inf, self.max_tokens):
                of_source = [] if encoded is None else [encoded.row[_key(read[i])] for i in batch]
                for number, log_probs in zip(batch, self._score_batch(batch, targets, encoded, of_source), strict=True):
                    yield number, targets[number], log_probs

    def _encode(self, dictionary: Dictionary, text: str, *cells: str) -> Tensor:
        """Return indices with the end of the sentence, (T,). Symbols that are no words count as unknown, too.

        Args:
            cells: the texts after a source, separated by tabs: terms of its translation, for models with terms.
        """
        words = tokenize_line(text)
        tokens = encode(dictionary, words, cells)
        if cells and marker_of(dictionary) is None:
            self.notes[UNREAD] += 1
        unknown = (token == dictionary.unk() for token in tokens[:-1].tolist())
        self.notes[WORDS] += len(words)
        self.notes[UNKNOWN] += sum(u and w != dictionary.unk_word for u, w in zip(unknown, words, strict=True))
        return tokens

    def _fitting(self, targets: Sequence[Tensor], read: Sequence[Tensor]) -> list[int]:
        """Return the numbers of the sentences that are not too long."""
        source_limit, limit = self.limits
        fit = [i for i, t in enumerate(targets) if len(t) <= limit and (not read or len(read[i]) <= source_limit)]
        self.notes[TOO_LONG] += len(targets) - len(fit)
        return fit

    def _groups(self, numbers: Sequence[int], read: Sequence[Tensor]) -> Iterator[tuple[list[int], Encoded | None]]:
        """Yield groups of sentences, and their sources, which are encoded together, or None for a language model."""
        if not read:
            yield list(numbers), None
            return
        by_source: dict[Source, list[int]] = {}
        for number in numbers:
            by_source.setdefault(_key(read[number]), []).append(number)
        for sources in together(sorted(by_source, key=len), len, math.inf, self.max_tokens):
            yield [number for source in sources for number in by_source[source]], self._read(sources)

    def _read(self, sources: Sequence[Source]) -> Encoded:
        """Encode sources, batched like in fairseq's data sets."""
        dictionary = self.task.source_dictionary
        samples = [{"id": i, "source": torch.tensor(source)} for i, source in enumerate(sources)]
        batch = collate(samples, dictionary.pad(), dictionary.eos(), self.task.cfg.left_pad_source)
        net_input = {name: value.to(self.device) for name, value in batch["net_input"].items()}
        out = self.model.encoder.forward_torchscript(net_input)
        row = {sources[number]: i for i, number in enumerate(batch["id"].tolist())}
        return Encoded(out, net_input["src_tokens"].size(1), row)

    def _score_batch(
        self, numbers: Sequence[int], targets: Sequence[Tensor], encoded: Encoded | None, of_source: Sequence[int]
    ) -> list[Tensor]:
        """Return log p of the tokens of each sentence. `of_source` has the rows of their sources in the encoder's
        batch.
        """
        dictionary, decoder = self.task.target_dictionary, self.model.decoder
        pad, eos = dictionary.pad(), dictionary.eos()
        left_pad = encoded is not None and self.task.cfg.left_pad_target
        target, previous = (
            data_utils.collate_tokens([targets[i] for i in numbers], pad, eos, left_pad, move).to(self.device)
            for move in (False, True)
        )  # shape: (B, T)
        encoder: dict[str, Any] = {}  # arguments of the decoder
        if encoded is not None:
            order = torch.tensor(of_source, device=self.device)
            encoder["encoder_out"] = self.model.encoder.reorder_encoder_out(encoded.out, order)
        if isinstance(decoder, LogLinearDecoder):
            hidden, extra = decoder(previous, **encoder)  # shape: (B, T, H)
            log_prob = decoder.head.target_log_probs(extra["batch"], target)  # shape: (B, T)
            for rows, background in extra["condition"].backgrounds:
                self._note_strings(background, target[rows])
        else:
            output = decoder(previous, **encoder)
            log_probs = self.model.get_normalized_probs(output, log_probs=True)  # shape: (B, T, V)
            log_prob = log_probs.gather(2, target.unsqueeze(2)).squeeze(2)
        check_scores(log_prob[target.ne(pad)], "the model", may_be_empty=True)
        return [row[is_token] for row, is_token in zip(log_prob.double().cpu(), target.ne(pad).cpu(), strict=True)]

    def _note_strings(self, background: BoundBackground, target: Tensor) -> None:
        """Count the strings outside the dictionary without a slot."""
        if strings_in(background) is not None:
            self.notes[UNKNOWN] += int((~background.in_vocabulary(target, background.start(len(target)))).sum())


def _key(source: Tensor) -> Source:
    return tuple(source.tolist())


def load_scorer(path: str, max_tokens: int, places: Places = RECORDED) -> Scorer:
    """Load a scorer from a checkpoint of a language model or a translation model, ours or fairseq's.

    Raises:
        DataError: no such file, or a checkpoint that is damaged, holds code, or is of another kind of model or task.
        OptionError: its data or prior is not found, or the user's code that it needs is not named.
        PriorError: the prior does not fit.
    """
    model, task, dictionaries = load_model(path, places, _check_kind)
    return Scorer(model, task, max_tokens, dictionaries)


def _check_kind(path: str, cfg: Any) -> None:
    """Raise DataError for models that cannot score sentences, by the names in the options, before anything is built."""
    model, task = name_of(cfg, "model"), name_of(cfg, "task")
    for kind, tasks in TASKS.items():
        if issubclass(find_model(model) or object, kind) and task in tasks:
            if getattr(cfg.task, "add_bos_token", False):
                raise DataError(f"{path}: a model that was trained with --add-bos-token cannot score; use another one")
            return
    names = " or ".join(name for tasks in TASKS.values() for name in tasks)
    raise DataError(
        f"{path}: expected a language or translation model of the task {names}, found {model!r} of task {task!r}; only "
        "these give the probability of a sentence"
    )
