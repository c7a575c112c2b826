"""Exact bits of a text under a language model, ours or fairseq's. With an open vocabulary, unknown words are spelled.

Sizes: B batch, T time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch
from fairseq.data import data_utils
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evaluation.texts import LineScore, line_batches
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.open_vocabulary.open_strings import OpenWords
from fairseq_llrnn.plugin.compat.dictionaries import with_unk
from fairseq_llrnn.plugin.compat.loading import RECORDED, Places, encode
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearDecoder
from fairseq_llrnn.plugin.scoring.sentences import Scorer, load_scorer

SENTENCES = 64  # maximum of a batch


class TextScorer:
    """Scores lines of words. `opened`: whether unknown words are spelled. Otherwise they are scored as <unk>."""

    def __init__(self, scorer: Scorer) -> None:
        self.model, self.task, self.device = scorer.model, scorer.task, scorer.device
        self.max_tokens = scorer.max_tokens
        self.longest = scorer.limits[1]
        self.dictionaries = scorer.dictionaries  # files that the scores depend on, besides the checkpoint
        self.dictionary = scorer.task.target_dictionary
        self.vocabulary = frozenset(self.dictionary.symbols).difference(SPECIALS)
        decoder, self.prior = self.model.decoder, scorer.prior
        self.strings = decoder.head.find(OpenWords) if isinstance(decoder, LogLinearDecoder) else None
        self.opened = self.strings is not None
        self.pieces: str | None = None  # the convention of subword pieces of our models' priors
        if isinstance(decoder, LogLinearDecoder):
            self.pieces = decoder.head.prior.settings.get("pieces")

    def lines(self, lines: Iterable[str]) -> Iterator[LineScore]:
        """Yield the score of every line, in their order, including lines that are too long or have probability 0."""
        for batch in self.batches(lines, SENTENCES):
            if batch[0].too_long_for is None:
                with torch.inference_mode():
                    batch, _ = self.scored(batch)
            yield from batch

    def batches(self, lines: Iterable[str], sentences: int) -> Iterator[list[LineScore]]:
        """Yield batches of at most `sentences` lines, in their order. A line that is too long is alone."""
        longest = self.longest - 1  # words before the end
        for batch in line_batches(lines, longest, sentences, self.max_tokens):
            read = [LineScore(line, words) for line, words in batch]
            too_long = len(read[0].words) > longest
            yield [replace(read[0], too_long_for=int(longest))] if too_long else read

    def scored(self, batch: Sequence[LineScore]) -> tuple[list[LineScore], Tensor]:
        """Return the lines of a batch with their scores, and log p in nats of their N words and ends, (N,) float64.

        The tensor has a gradient unless torch has disabled it.
        """
        ids = [self._encode(line.words) for line in batch]
        unknown = [with_unk(i, self.dictionary)[:-1] == self.dictionary.unk() for i in ids]
        target, previous = (self._padded(ids, move) for move in (False, True))  # shape: (B, T)
        total, with_unknown = self.log_probs(previous, target)
        scored = []
        for row, line in enumerate(batch):
            length = len(line.words)
            log_probs = with_unknown[row, : length + 1].tolist()
            spelt = (total[row, :length] - with_unknown[row, :length]).tolist()
            scored.append(replace(line, unknown=unknown[row].tolist(), log_probs=log_probs, spelt=spelt))
        return scored, total[target.ne(self.dictionary.pad())]

    def _encode(self, words: Sequence[str]) -> Tensor:
        """Return ids and the end. With an open vocabulary, a word that looks like <unk> is an ordinary string."""
        ids = encode(self.dictionary, words)
        if not self.opened or self.strings is None:
            return with_unk(ids, self.dictionary)
        for place, word in enumerate(words):
            if word in SPECIALS:
                ids[place] = self.strings.table.words.open(word)
        return ids

    def _padded(self, ids: Sequence[Tensor], move: bool) -> Tensor:
        pad, eos = self.dictionary.pad(), self.dictionary.eos()
        rows: Tensor = data_utils.collate_tokens(ids, pad, eos, False, move)
        return rows.to(self.device)

    def log_probs(self, previous: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return log p of the targets (B, T) in float64, and the same with <unk> instead of strings."""
        decoder, words = self.model.decoder, with_unk(target, self.dictionary)
        if isinstance(decoder, LogLinearDecoder):
            hidden, extra = decoder(previous)
            with_unknown = decoder.head.target_log_probs(extra["batch"], words).double()
            if bool((words == target).all()):
                return with_unknown, with_unknown
            return decoder.head.target_log_probs(extra["batch"], target).double(), with_unknown
        log_probs = self.model.get_normalized_probs(decoder(previous), log_probs=True)
        with_unknown = log_probs.gather(2, words.unsqueeze(2)).squeeze(2).double()
        return with_unknown, with_unknown


def load_text_scorer(path: str, max_tokens: int, places: Places = RECORDED) -> TextScorer:
    """Load a text scorer from a checkpoint of a language model.

    Raises:
        DataError, PriorError: as `load_scorer`. OptionError: also for a translation model.
    """
    scorer = load_scorer(path, max_tokens, places)
    if scorer.languages is not None:
        raise OptionError(
            f"{path}: expected a language model, found a translation model; score translations with `llrnn rescore`"
        )
    return TextScorer(scorer)
