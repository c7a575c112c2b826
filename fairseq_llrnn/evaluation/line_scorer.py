"""Scores of the lines of a text, in batches, of a trained model (plugin/scoring/text_bits.py) or a prior.

Sizes: B batch, T time, V words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.texts import LineScore, line_batches
from fairseq_llrnn.features.dictionary import EOS, PAD, SPECIALS, UNK
from fairseq_llrnn.open_vocabulary.open_strings import OpenWords
from fairseq_llrnn.output.normalisers import check_scores
from fairseq_llrnn.prior.prior import Prior

SENTENCES = 64  # maximum of a batch


class LineScorer:
    """Scores lines of words. With `is_open`, unknown words are spelled. Otherwise they are scored as <unk>."""

    def __init__(
        self,
        symbols: Sequence[str],
        prior: Prior | None,
        strings: OpenWords | None,
        device: torch.device,
        *,
        longest: float,
        max_tokens: int,
        dictionaries: Sequence[Path] = (),
    ) -> None:
        """
        Args:
            symbols: V, of the dictionary.
            prior: None: the model has none.
            strings: the source of strings outside the dictionary, if the vocabulary is open.
            longest: the limit of a line in tokens. max_tokens: of a batch, with padding.
            dictionaries: files that the scores depend on, besides the model.
        """
        self.num_words = len(symbols)
        self.word_index = {word: index for index, word in enumerate(symbols) if word not in SPECIALS}
        self.pad, self.eos, self.unk = (symbols.index(symbol) for symbol in (PAD, EOS, UNK))
        self.vocabulary: frozenset[str] | None = frozenset(self.word_index)
        self.strings, self.has_open_vocabulary = strings, strings is not None
        self.prior = None if prior is None else prior.signature
        self.pieces: str | None = None if prior is None else prior.settings.get("pieces")  # a convention
        self.device, self.longest, self.max_tokens = device, longest, max_tokens
        self.dictionaries = tuple(dictionaries)

    def predict(self, previous: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the function from targets (B, T) to their log p (B, T), after the inputs `previous` (B, T)."""
        raise NotImplementedError

    def next_log_probs(self, previous: Tensor) -> Tensor:
        """Return log p of every word after the inputs `previous` (1, T): (V,)."""
        raise NotImplementedError

    def lines(self, lines: Iterable[str], is_open: bool = False) -> Iterator[LineScore]:
        """Yield the score of every line, in their order, including lines that are too long or have probability 0."""
        for batch in self.batches(lines, SENTENCES):
            if batch[0].too_long_for is None:
                with torch.inference_mode():
                    batch, log_probs = self.scored(batch, is_open)
                check_scores(log_probs, "the model", may_be_empty=True)
            yield from batch

    def batches(self, lines: Iterable[str], sentences: int) -> Iterator[list[LineScore]]:
        """Yield batches of at most `sentences` lines, in their order. A line that is too long is alone."""
        longest = self.longest - 1  # words before the end
        for batch in line_batches(lines, longest, sentences, self.max_tokens):
            read = [LineScore(line, words) for line, words in batch]
            too_long = len(read[0].words) > longest
            yield [replace(read[0], too_long_for=int(longest))] if too_long else read

    def scored(self, batch: Sequence[LineScore], is_open: bool = False) -> tuple[list[LineScore], Tensor]:
        """Return the lines of a batch with their scores, and log p in nats of their N words and ends, (N,) float64.

        The tensor has a gradient unless torch has disabled it.
        """
        ids = [self._encode(line.words, is_open) for line in batch]
        target = pad_sequence(ids, batch_first=True, padding_value=self.pad).to(self.device)  # shape: (B, T)
        previous = target.roll(1, 1)
        previous[:, 0] = self.eos
        total, with_unknown = self.log_probs(previous, target)
        # an impossible word has log p = −inf in both, and no spelling
        spelt = torch.where(with_unknown.isfinite(), total - with_unknown, 0.0)
        scored = []
        for row, (line, tokens) in enumerate(zip(batch, ids, strict=True)):
            unknown = ((tokens >= self.num_words) | (tokens == self.unk))[:-1].tolist()
            log_probs, spelt_words = with_unknown[row, : len(tokens)].tolist(), spelt[row, : len(tokens) - 1].tolist()
            scored.append(replace(line, unknown=unknown, log_probs=log_probs, spelt=spelt_words))
        return scored, total[target.ne(self.pad)]

    def _encode(self, words: Sequence[str], is_open: bool) -> Tensor:
        """Return ids and the end. If unknown words are spelled, a word that looks like <unk> is an ordinary string."""
        if is_open and self.strings is not None:
            known = self.strings.table.words
            ids = [known.open(word) if word in SPECIALS else known.index(word) for word in words]
        else:
            ids = [self.word_index.get(word, self.unk) for word in words]
        return torch.tensor([*ids, self.eos])

    @torch.inference_mode()
    def after(self, prefix: Sequence[str]) -> Tensor:
        """Return log p of every word after a prefix: (V,)."""
        previous = self._encode(prefix, False).roll(1).unsqueeze(0).to(self.device)
        if previous.size(1) > self.longest:
            raise DataError(
                f"prefix: expected at most {int(self.longest) - 1:,} words, the limit of the model, found "
                f"{len(prefix):,}; shorten it"
            )
        return self.next_log_probs(previous)

    def log_probs(self, previous: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return log p of the targets (B, T) in float64, and the same with <unk> instead of strings."""
        log_probs, words = self.predict(previous), target.masked_fill(target >= self.num_words, self.unk)
        with_unknown = log_probs(words).double()
        return (with_unknown if bool((words == target).all()) else log_probs(target).double()), with_unknown
