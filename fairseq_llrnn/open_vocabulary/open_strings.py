"""Strings outside the dictionary, whose ids begin at V: how a head with an open vocabulary reads and scores them.

Sizes: V words, O open classes, N targets, H hidden width.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.open_vocabulary.mixture import OpenMixture, log_spelling
from fairseq_llrnn.open_vocabulary.neural_search import best_strings, draw_strings
from fairseq_llrnn.open_vocabulary.neural_speller import NeuralSpeller, SpellerSizes
from fairseq_llrnn.open_vocabulary.spelled_strings import SpelledStrings
from fairseq_llrnn.open_vocabulary.table import OpenTable

AT_ONCE = 64  # places whose strings are searched side by side


class OpenStrings:
    """The open classes of a head, and the strings that were met."""

    def __init__(
        self, mixture: OpenMixture, table: OpenTable, num_words: int, unk: int, speller: NeuralSpeller | None = None
    ) -> None:
        """num_words: V. unk: the token that stands for strings outside the dictionary. speller: where there is one."""
        self.mixture, self.table, self.num_words, self.unk, self.speller = mixture, table, num_words, unk, speller

    def known(self, tokens: Tensor) -> Tensor:
        """The tokens with <unk> for strings outside the dictionary."""
        return tokens.masked_fill(tokens >= self.num_words, self.unk)

    def read_as(self, strings: Tensor, known: Tensor) -> Tensor:
        """The tokens `known` with V + o in the place of strings beyond the dictionary, o the class they look like."""
        outside = strings >= self.num_words
        if not bool(outside.any()):
            return known
        classes = torch.from_numpy(self.table.read_as(strings[outside].cpu().numpy())).to(known)
        return known.masked_scatter(outside, self.num_words + classes)

    def as_in_text(self, strings: Tensor, known: Tensor) -> Tensor:
        """The tokens `known` with words in the place of their aliases: as in the text that b is estimated from."""
        outside = strings >= self.num_words
        words = torch.from_numpy(self.table.words_of(strings[outside].cpu().numpy())).to(known)
        return known.masked_scatter(outside, torch.where(words < 0, self.unk, words))

    def spelled(self, log_prob: Tensor, scores: Tensor, targets: Tensor, classes: Tensor, hidden: Tensor) -> Tensor:
        """log p of the targets (N,), where that of <unk> stands for strings outside the dictionary that are no slots.

        Args:
            scores: of the open classes, (N, O). classes: of the targets, (N,). hidden: what predicts them, (N, H or
                more).
        """
        outside = (targets >= self.num_words) & (classes == self.mixture.of_class)
        places = outside.nonzero().squeeze(1)
        if len(places) == 0:
            return log_prob
        ids = targets[places].cpu().numpy()
        log_strings = torch.from_numpy(self.table.log_probs(ids)).to(scores.device)
        if self.speller is not None and self.table.spelled is not None:
            states = hidden[places, : self.speller.hidden_size]
            log_strings = self.speller.log_probs(states, self.table.spelled.of(ids), log_strings)
        return log_prob.index_add(0, places, log_spelling(scores[places], log_strings).to(log_prob.dtype))

    def written(self, hidden: Tensor, classes: np.ndarray, random: np.random.Generator | None) -> np.ndarray:
        """The ids of strings of some classes (m,), none of them a word of the dictionary: (m,).

        Args:
            hidden: what predicts them, (m, H or more). random: to draw them, as probable as they are; None: the most
                probable ones, of those that are found (best_string.py, neural_search.py).
        """
        strings = np.zeros(len(classes), dtype=np.int64)
        left = np.ones(len(classes), dtype=bool)  # what n-grams spell
        if self.speller is not None and self.table.spelled is not None:
            hidden = hidden[:, : self.speller.hidden_size]
            left = self._by_network(self.speller, self.table.spelled, hidden, classes, random, strings)
        for o in np.unique(classes[left]).tolist():
            these = left & (classes == o)
            strings[these] = self.table.spelt(o) if random is None else self.table.drawn(o, int(these.sum()), random)
        return strings

    def _by_network(
        self, speller: NeuralSpeller, spelled: SpelledStrings, hidden: Tensor, classes: np.ndarray,
        random: np.random.Generator | None, strings: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Put ids among `strings` where the network spells; returns where it does not, (m,) bool."""
        words = self.table.words
        if random is None:
            for start in range(0, len(classes), AT_ONCE):
                here = slice(start, start + AT_ONCE)
                best = self._best_by_network(speller, spelled, hidden[here], classes[here])
                strings[here] = [words.open(string) for string in best]
            return np.zeros(len(classes), dtype=bool)
        gate = speller.gate.detach().double().sigmoid().cpu().numpy()[classes]
        chosen = np.flatnonzero(random.random(len(classes)) < gate)
        drawn = draw_strings(
            speller, spelled, hidden[torch.from_numpy(chosen).to(hidden.device)], classes[chosen], random
        )
        left = np.ones(len(classes), dtype=bool)
        for row, string in zip(chosen.tolist(), drawn, strict=True):
            if string is not None:
                strings[row], left[row] = words.open(string), False
        return left

    @torch.no_grad()
    def _best_by_network(
        self, speller: NeuralSpeller, spelled: SpelledStrings, hidden: Tensor, classes: np.ndarray
    ) -> Iterator[str]:
        """The most probable string at each place, of what the network and the n-grams propose."""
        found = best_strings(speller, spelled, hidden, classes)
        proposed = [
            [self.table.words.symbols[self.table.spelt(o)], *some]
            for o, some in zip(classes.tolist(), found, strict=True)
        ]
        place = np.arange(len(classes)).repeat([len(some) for some in proposed])
        strings = [string for some in proposed for string in some]
        log_ngrams = torch.from_numpy(self.table.log_probs_of(strings)).to(hidden.device)
        states = hidden[torch.from_numpy(place).to(hidden.device)]
        log_probs = speller.log_probs(states, spelled.of_strings(strings), log_ngrams)
        odds = log_probs.double().cpu().numpy()[np.arange(len(strings)), classes[place]]
        for some, log_prob in zip(proposed, np.split(odds, np.flatnonzero(np.diff(place)) + 1), strict=True):
            yield some[int(log_prob.argmax())]


def new_speller(table: OpenTable | None, hidden_size: int, sizes: SpellerSizes | None) -> NeuralSpeller | None:
    """The network that spells the words of a table; None where there is none. sizes: None for those of SpellerSizes().

    Raises:
        OptionError: sizes without such a table.
    """
    if table is not None and table.spelled is not None:
        num_symbols = table.spelled.alphabet.size
        return NeuralSpeller(len(table.vocabulary.names), num_symbols, hidden_size, sizes or SpellerSizes())
    if sizes is not None:
        raise OptionError(
            "--speller-…: expected a prior whose open vocabulary is spelled by a network, found another; "
            "build it with `llrnn prior --open-vocabulary neural`, or leave the speller's sizes and dropout out"
        )
    return None
