"""Texts spelled in characters (automata/characters.py) in which the words of the source can be spelled as well.

Sizes: B sentences, N hypotheses, V characters of the dictionary, U of the source's, J words of a source, L letters.

Free strings are due only where the input has evidence for them (Goyal, Dymetman & Gaussier 2016): beside the list's
words, a text may hold the words of its own source, which is spelled with the same separators. The list's automaton is
shared by all sentences. A hypothesis knows its state there, as long as the word at hand can be one of the list, and
which of the source's words it can still become:

    (sentence, whether the list is alive, state of the list, the source's words that begin so, as bits, letters so far)

V is small, so that all else are the contract's slow defaults.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence

import torch
from torch import Tensor

from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.automata.characters import BETWEEN, LONGEST_WORD, Spelling
from fairseq_llrnn.automata.trimming import NO_END
from fairseq_llrnn.backgrounds.automaton import AutomatonBackground
from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.backgrounds.source_conditioned import BySource
from fairseq_llrnn.features.dictionary import SPECIALS, UNK

logger = logging.getLogger(__name__)

UNKNOWN, NO_CHARACTER = -1, -2  # what a source symbol is in the target: no symbol; none of a word (</s>, padding)
MOST_WORDS = 62  # of a source, as bits of a number


def target_symbols(source: Sequence[str], target: Sequence[str]) -> list[int]:
    """The target symbol of each source symbol, or UNKNOWN or NO_CHARACTER: (U,)."""
    index = {symbol: i for i, symbol in enumerate(target)} | dict.fromkeys(SPECIALS, NO_CHARACTER) | {UNK: UNKNOWN}
    return [index.get(symbol, UNKNOWN) for symbol in source]


class CopiedWords(BySource):
    """The background of the list; `given(source)` adds the words of each source.

    Args:
        source_to_target: (U,) the target symbol of each source symbol, or UNKNOWN or NO_CHARACTER.
    """

    base: AutomatonBackground
    source_to_target: Tensor

    def __init__(self, base: AutomatonBackground, source_to_target: Tensor) -> None:
        super().__init__(base)
        self.register_buffer("source_to_target", source_to_target, persistent=False)
        between = torch.full_like(base.class_of, BETWEEN)
        weight, after = base.step(between, torch.arange(len(between), device=between.device))
        separators = ((after == BETWEEN) & ~weight.isneginf()).nonzero().squeeze(1)
        self.separators: frozenset[int] = frozenset(separators.tolist())
        self._said = False

    def given(self, source: Tensor, leave_out: Tensor | None = None) -> Background:
        return OfferedWords(self.base, [self._words(row) for row in source.tolist()], self.separators)

    def _words(self, row: list[int]) -> list[Spelling]:
        """The words of a source in target symbols, each once; those with a character that the target lacks are none."""
        words: dict[Spelling, None] = {}
        letters: list[int] = []
        for symbol in (*self.source_to_target[row].tolist(), NO_CHARACTER):
            if symbol == NO_CHARACTER or symbol in self.separators:
                if letters and UNKNOWN not in letters and len(letters) <= LONGEST_WORD:
                    words[tuple(letters)] = None
                letters = []
            else:
                letters.append(symbol)
        if len(words) > MOST_WORDS and not self._said:
            self._said = True
            logger.warning(
                f"a source has {len(words):,} different words; the first {MOST_WORDS} of each can be copied "
                "(one warning)"
            )
        return list(words)[:MOST_WORDS]


class OfferedWords(Background):
    """b of a batch of sources (module docstring)."""

    def __init__(self, base: AutomatonBackground, words: list[list[Spelling]], separators: frozenset[int]) -> None:
        """words: of each source, in target symbols."""
        super().__init__(base.class_of, base.num_classes)
        self.base = base
        device = base.class_of.device
        most = max(1, *(len(row) for row in words)) if words else 1
        self.longest = max((len(word) for row in words for word in row), default=0)
        letters = torch.full((len(words), most, self.longest + 1), UNKNOWN)
        for b, row in enumerate(words):
            for j, word in enumerate(row):
                letters[b, j, : len(word)] = torch.tensor(word)
        self.letters = letters.to(device)  # shape: (B, J, L + 1)
        self.lengths = (self.letters != UNKNOWN).sum(2)  # shape: (B, J), 0 where a source has fewer words
        self.bits = 2 ** torch.arange(most, device=device)
        self.is_end = torch.zeros_like(base.class_of, dtype=torch.bool)  # shape: (V,), what may follow a whole word
        self.is_end[[END, *separators]] = True
        self._remaining: int | None = None

    # ---- states -----------------------------------------------------------------------------------------------------

    def start(self, n: int) -> Tensor:
        return self._begun(torch.arange(n, device=self.class_of.device), self.base.start(n).squeeze(1))

    def _begun(self, sentence: Tensor, listed: Tensor) -> Tensor:
        """States before the first letter of a word."""
        words = ((self.lengths[sentence] > 0) * self.bits).sum(1)
        return torch.stack([sentence, torch.ones_like(sentence), listed, words, torch.zeros_like(sentence)], dim=1)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        sentence, alive, listed, _, place = state.unbind(1)
        weight, after = self.base.step(listed, tokens)
        alive = (alive == 1) & ~weight.isneginf()
        words = ((self._letters(state) == tokens.unsqueeze(1)) * self.bits).sum(1)
        inside = torch.stack([sentence, alive.long(), after, words, place + 1], dim=1)
        ended = self.is_end[tokens]
        nothing = ~alive & (words == 0)  # a forbidden word; as an automaton, it begins anew
        begin = torch.where(ended & (tokens != END), BETWEEN, self.base.starts[0])
        return torch.where((ended | nothing).unsqueeze(1), self._begun(sentence, begin), inside)

    def _possible(self, state: Tensor) -> Tensor:
        """Which words of its source the word at hand can still become: (N, J)."""
        return (state[:, 3:4] & self.bits) > 0

    def _letters(self, state: Tensor) -> Tensor:
        """Their next letters, UNKNOWN for all others and behind the last one: (N, J)."""
        place = state[:, 4].clamp_max(self.longest)
        letters = self.letters[state[:, 0], :, place]
        return letters.masked_fill(~self._possible(state), UNKNOWN)

    # ---- weights ------------------------------------------------------------------------------------------------

    def log_weights(self, state: Tensor) -> Tensor:
        listed = self.base.log_weights(state[:, 2:3]).expand(len(state), -1)
        listed = listed.masked_fill(state[:, 1:2] == 0, NEGATIVE_INFINITY)
        size = listed.size(1)
        letters = self._letters(state)
        offered = torch.full_like(listed, NEGATIVE_INFINITY)
        offered = torch.nn.functional.pad(offered, (0, 1))  # the last column takes what is no letter
        offered = offered.scatter(1, letters.masked_fill(letters == UNKNOWN, size), 0.0)[:, :size]
        spelled = (self._possible(state) & (self.lengths[state[:, 0]] == state[:, 4:5])).any(1)
        offered = offered.masked_fill(spelled.unsqueeze(1) & self.is_end, 0.0)
        return torch.maximum(listed, offered)

    # ---- limits of length ---------------------------------------------------------------------------------------

    def steps_to_end(self, state: Tensor) -> Tensor:
        listed = self.base.steps_to_end(state[:, 2:3]).masked_fill(state[:, 1] == 0, NO_END)
        left = (self.lengths[state[:, 0]] - state[:, 4:5] + 1).masked_fill(~self._possible(state), NO_END)
        return torch.minimum(listed, left.amin(1))

    def within(self, remaining: int) -> Background:
        if remaining > max(self.base.farthest, self.longest + 1):
            return self
        limited = copy.copy(self)
        limited._remaining = remaining
        return limited

    def log_shares(self, state: Tensor) -> Tensor:
        shares = super().log_shares(state)
        if self._remaining is None:
            return shares
        many, size = shares.shape
        tokens = torch.arange(size, device=state.device)
        after = self.advance(state.repeat_interleave(size, 0), tokens.repeat(many))
        far = self.steps_to_end(after).view(many, size) >= self._remaining
        return shares.masked_fill(far & (tokens != END), NEGATIVE_INFINITY)
