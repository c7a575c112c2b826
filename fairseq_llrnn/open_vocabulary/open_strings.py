"""Strings outside the dictionary, whose ids begin at V: how a head with an open vocabulary reads and scores them.

Sizes: V words, O open classes, N targets, H hidden width.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.open_vocabulary.mixture import OpenMixture, log_spelling
from fairseq_llrnn.open_vocabulary.table import OpenTable
from fairseq_llrnn.output.class_source import ClassSource, Head
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.systems.speller.network import NeuralSpeller, SpellerSizes
from fairseq_llrnn.systems.speller.search import best_strings, draw_strings
from fairseq_llrnn.systems.speller.spelled import SpelledStrings

if TYPE_CHECKING:
    from fairseq_llrnn.output.records import Batch, RowPair

NO_SPELLER = (
    "--speller-…: expected a prior whose open vocabulary is spelled by a network, found another; "
    "build it with `llrnn prior --open-vocabulary neural`, or leave the speller's sizes and dropout out"
)
AT_ONCE = 64  # places whose strings are searched side by side


class OpenWords(ClassSource):
    """The open classes of a head, whose score is that of <unk>, and the strings that were met."""

    name = "open_words"
    opens = True

    def __init__(
        self, mixture: OpenMixture, table: OpenTable, num_words: int, unk: int, speller: NeuralSpeller | None = None
    ) -> None:
        """num_words: V. unk: the token that stands for strings outside the dictionary. speller: where there is one."""
        super().__init__()
        self.mixture, self.table, self.num_words, self.unk, self.speller = mixture, table, num_words, unk, speller
        self.replaces = mixture.of_class

    @classmethod
    def of(
        cls, head: Head, table: OpenTable | None, sizes: SpellerSizes | None = None, input_size: int | None = None
    ) -> OpenWords:
        """Those of a head; sizes and input_size as of `open_words` (prior/parts/open_vocabulary.py)."""
        speller = None
        if table is None or (sizes is not None and table.spelled is None):
            raise OptionError(NO_SPELLER)
        if table.spelled is not None:
            given = len(table.vocabulary.names), table.spelled.alphabet.size, input_size or head.hidden_size
            speller = NeuralSpeller(*given, sizes or SpellerSizes())
        mixture = OpenMixture(table.vocabulary, int(head.output.class_of[head.unk]))
        return cls(mixture, table, head.num_words, head.unk, speller)

    # ---- text -------------------------------------------------------------------------------------------------------

    def read_as(self, tokens: Tensor, read: Tensor) -> Tensor:
        """The tokens `read` with V + o in the place of strings beyond the dictionary, o the class they look like."""
        outside = tokens >= self.num_words
        if not bool(outside.any()):
            return read
        classes = torch.from_numpy(self.table.read_as(tokens[outside].cpu().numpy())).to(read)
        return read.masked_scatter(outside, self.num_words + classes)

    def in_text(self, tokens: Tensor, known: Tensor) -> Tensor:
        """The tokens `known` with words in the place of their aliases: as in the text that b is estimated from."""
        outside = tokens >= self.num_words
        words = torch.from_numpy(self.table.words_of(tokens[outside].cpu().numpy())).to(known)
        return known.masked_scatter(outside, torch.where(words < 0, self.unk, words))

    # ---- scores -----------------------------------------------------------------------------------------------------

    def rows(
        self, head: Head, weight: Tensor, layer: ContextClasses | None, source_states: Tensor | None,
        sentence: Tensor | None,
    ) -> tuple[RowPair, Tensor | None]:  # fmt: skip
        """Those of the open classes; and 0, of which every weight of the speller is a part, in training."""
        zero = self.speller.untouched() if self.speller is not None and self.training else None
        return self.mixture.composed(weight, head.output.bias), zero

    def scores(self, hidden: Tensor, rows: tuple[RowPair, Tensor | None]) -> Tensor:
        return self.mixture.scores(hidden, rows[0])

    def finish(self, log_prob: Tensor, batch: Batch, targets: Tensor, classes: Tensor) -> Tensor:
        """log p of the targets (N,), where that of <unk> stands for strings beyond the dictionary that are no slots."""
        scores, zero = batch.kept[self.name].flatten(0, 1), batch.rows.of_source[self.name][1]
        if zero is not None:
            log_prob = log_prob + zero.to(log_prob.dtype)
        outside = (targets >= self.num_words) & (classes == self.replaces)
        places = outside.nonzero().squeeze(1)
        if len(places) == 0:
            return log_prob
        ids = targets[places].cpu().numpy()
        log_strings = torch.from_numpy(self.table.log_probs(ids)).to(scores.device)
        if self.speller is not None and self.table.spelled is not None:
            states = batch.spelled_from.flatten(0, 1)[places, : self.speller.hidden_size]
            log_strings = self.speller.log_probs(states, self.table.spelled.of(ids), log_strings)
        return log_prob.index_add(0, places, log_spelling(scores[places], log_strings).to(log_prob.dtype))

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None:
        """Take weights of older checkpoints, which were called `speller`."""
        old = f"{prefix}speller."
        for name in [name for name in state_dict if name.startswith(old)]:
            state_dict[f"{prefix}{self.name}.speller.{name.removeprefix(old)}"] = state_dict.pop(name)

    def explained(self, batch: Batch, given: dict[str, Any]) -> dict[str, Any]:
        return {"opened": (self.mixture, batch.kept[self.name][0])}

    # ---- strings in the place of <unk> ------------------------------------------------------------------------------

    def strings(self, hidden: Tensor, classes: np.ndarray, random: np.random.Generator | None) -> np.ndarray:
        """The ids of strings of some classes (m,), none of them a word of the dictionary: (m,).

        Args:
            hidden: what predicts them, (m, H or more). random: to draw them, as probable as they are; None: the most
                probable ones, of those that are found (spelling.py, neural_search.py).
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
