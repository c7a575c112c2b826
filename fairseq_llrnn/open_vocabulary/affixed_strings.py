"""A distribution over the forms of a hunspell dictionary, without a list of them: a stem, then its affixes.

Sizes: E entries of FILE.dic, R affix rules, S sets of entries, m strings, O open classes.

Each step of a form chooses among its possible moves (affix_grammar.py), in proportion to their weights:

    P(entry e) = u_e                    P(move r)  =  c_r / Σ_{r' possible} c_r'

So each entry has probability one in all, and P(w) is a sum over the few derivations of w, which are found by removing
affixes. `fit` learns u and c from words: an entry that the words contain is probable in other forms, too.

`AffixedByClass` has the forms that fit a class. The class depends on the first suffix r of a form. If it has none, it
depends on the set s of its entry: entries with the same flags, ending and capital.

    P(w | o)  =  Σ_{derivations d of w} P(d) P(o | r or s of d) / Z_o                Z_o = Σ_d P(d) P(o | r or s of d)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fairseq_llrnn.open_vocabulary.affix_grammar import NO_SUFFIX, Derivation, Grammar
from fairseq_llrnn.open_vocabulary.spelling_classes import SpellingClasses

STEPS = 10
CLASS_COUNT = 1.0  # words that each suffix and each set of entries has in advance
ENDING = 3  # letters
LEAST_TOTAL = 1e-300
ENTRY_COUNT, MOVE_COUNT = 0.05, 0.2  # words that each entry and each move has in advance


@dataclass(frozen=True)
class AffixedStrings:
    """P(w) of the forms of a grammar (module docstring)."""

    grammar: Grammar
    entry_probs: np.ndarray  # (E,) float64, u, Σ = 1
    move_weights: np.ndarray  # (3 + R,) float64, c > 0
    _totals: dict[tuple[int, ...], float] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def fit(cls, grammar: Grammar, words: Mapping[str, float]) -> AffixedStrings:
        """Estimate both parameters from words and their weights by EM.

        The weights of moves are those of a Luce model: c_r = N_r / Σ (1 / Z) over the steps in which r was possible
        (Hunter 2004).
        """
        rows = [(weight, found) for word, weight in words.items() if (found := grammar.of_text(word))]
        entries, moves = np.ones(len(grammar.entries)), np.ones(grammar.num_moves)
        model = cls(grammar, entries / len(entries), moves)
        for _ in range(STEPS):
            entry_counts, move_counts = np.full(len(entries), ENTRY_COUNT), np.full(len(moves), MOVE_COUNT)
            visits: Counter[tuple[int, ...]] = Counter()
            for weight, found in rows:
                probs = np.array([model._prob(derivation) for derivation in found])
                for derivation, part in zip(found, (weight * probs / probs.sum()).tolist(), strict=True):
                    entry_counts[derivation.entry] += part
                    for chosen, possible in derivation.steps:
                        if len(possible) > 1:
                            move_counts[chosen] += part
                            visits[possible] += part
            expected = np.full(len(moves), MOVE_COUNT)
            for possible, count in visits.items():
                expected[list(possible)] += count / model._total(possible)
            moves = move_counts / expected
            model = cls(grammar, entry_counts / entry_counts.sum(), moves)
        return model

    def string_probs(self, strings: Sequence[str]) -> np.ndarray:
        """Return P of each string: (m,) float64."""
        found = (map(self._prob, self.grammar.of_text(string)) for string in strings)
        return np.array([sum(probs) for probs in found], dtype=np.float64)

    def draw(self, count: int, random: np.random.Generator, of_class: int = 0) -> list[str]:
        """Return samples of a class."""
        entries = random.choice(len(self.entry_probs), count, p=self.entry_probs)
        return [
            self._draw_form(entry, self._draw_move(self.grammar.firsts(*self.grammar.entries[entry]), random), random)
            for entry in entries.tolist()
        ]

    def _draw_form(self, entry: int, first_move: int, random: np.random.Generator) -> str:
        grammar = self.grammar
        form, flags = grammar.entries[entry]
        first, second = grammar.rule(first_move), None
        if first is not None:
            form = first.of(form, True) or ""
            second = grammar.rule(self._draw_move(grammar.seconds(form, flags, first), random))
            form = form if second is None else second.of(form, True) or ""
        prefix = grammar.rule(self._draw_move(grammar.prefixes(form, flags, first, second), random))
        return grammar.affixes.outer(form if prefix is None else prefix.of(form, False) or "")

    def _draw_move(self, possible: tuple[int, ...], random: np.random.Generator) -> int:
        return _draw_of(possible, self.move_weights[list(possible)], random)

    def _prob(self, derivation: Derivation) -> float:
        prob = float(self.entry_probs[derivation.entry])
        for chosen, possible in derivation.steps:
            if len(possible) > 1:
                prob *= float(self.move_weights[chosen]) / self._total(possible)
        return prob

    def _total(self, possible: tuple[int, ...]) -> float:
        if possible not in self._totals:
            self._totals[possible] = float(self.move_weights[list(possible)].sum())
        return self._totals[possible]


@dataclass(frozen=True)
class AffixedByClass(AffixedStrings):
    """P(w | o) of the forms (module docstring)."""

    fits: np.ndarray = field(kw_only=True)  # (3 + R + S, O) float64, P(o | r), then P(o | s)
    totals: np.ndarray = field(kw_only=True)  # (O,) float64, Z

    @classmethod
    def learn(cls, forms: AffixedStrings, words: Mapping[str, float], classes: SpellingClasses) -> AffixedByClass:
        """Return the forms by class, with P(o | r) and P(o | s) learned from words, their weights and guessed classes.

        In advance, each suffix has the mean P(o), and each set of entries has the P(o | w) of its first entry.
        """
        fits = classes.probs(list(words))
        found = cls(forms.grammar, forms.entry_probs, forms.move_weights, fits=fits, totals=np.ones(1))
        shares = fits.sum(0) + 1.0 / fits.shape[1]
        firsts = [forms.grammar.entries[i][0] for i in np.unique(found._sets, return_index=True)[1].tolist()]
        of_suffixes = np.tile(shares / shares.sum(), (forms.grammar.num_moves, 1))
        counts = CLASS_COUNT * np.concatenate([of_suffixes, classes.probs(firsts)])
        for (word, weight), fit in zip(words.items(), fits, strict=True):
            derivations = forms.grammar.of_text(word)
            probs = np.array([forms._prob(derivation) for derivation in derivations])
            for derivation, prob in zip(derivations, (weight * probs / probs.sum()).tolist(), strict=True):
                counts[found._row(derivation.entry, derivation.steps[0][0])] += prob * fit
        found = replace(found, fits=counts / counts.sum(1, keepdims=True))
        return replace(found, totals=found.sums())

    def string_probs(self, strings: Sequence[str]) -> np.ndarray:
        """Return P(w | o) of each string: (m, O) float64."""
        probs = np.zeros((len(strings), self.fits.shape[1]))
        for i, string in enumerate(strings):
            for derivation in self.grammar.of_text(string):
                probs[i] += self._prob(derivation) * self.fits[self._row(derivation.entry, derivation.steps[0][0])]
        return probs / self.totals

    def draw(self, count: int, random: np.random.Generator, of_class: int = 0) -> list[str]:
        """Return samples of a class."""
        group, suffixed, bare = self._firsts
        fits_of_sets = self.fits[self.grammar.num_moves :, of_class]
        probs = self.entry_probs * (suffixed[group, of_class] + bare[group] * fits_of_sets[self._sets])
        drawn = []
        for entry in random.choice(len(probs), count, p=probs / probs.sum()).tolist():
            moves = self.grammar.firsts(*self.grammar.entries[entry])
            weights = self.move_weights[list(moves)] * self.fits[[self._row(entry, move) for move in moves], of_class]
            drawn.append(self._draw_form(entry, _draw_of(moves, weights, random), random))
        return drawn

    def sums(self) -> np.ndarray:
        """Return Σ_d P(d) P(o | d) over all derivations: (O,) float64."""
        group, suffixed, bare = self._firsts
        of_sets = np.bincount(self._sets, self.entry_probs * bare[group])
        total: np.ndarray = np.bincount(group, self.entry_probs) @ suffixed
        return total + of_sets @ self.fits[self.grammar.num_moves :]

    @cached_property
    def _firsts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The group of each entry by its possible first moves (E,), and for each group G the sum of P(r) P(o | r) over
        its suffixes (G, O), and the probability of no suffix (G,).
        """
        numbers: dict[tuple[int, ...], int] = {}
        entries = self.grammar.entries
        group = np.array([numbers.setdefault(self.grammar.firsts(*entry), len(numbers)) for entry in entries])
        suffixed, bare = np.zeros((len(numbers), self.fits.shape[1])), np.zeros(len(numbers))
        for moves, i in numbers.items():
            suffixes, total = [move for move in moves if move != NO_SUFFIX], max(self._total(moves), LEAST_TOTAL)
            suffixed[i] = self.move_weights[suffixes] @ self.fits[suffixes] / total
            bare[i] = self.move_weights[NO_SUFFIX] / total if NO_SUFFIX in moves else 0.0
        return group, suffixed, bare

    @property
    def num_fits(self) -> int:
        """3 + R + S"""
        return self.grammar.num_moves + 1 + int(self._sets.max())

    def _row(self, entry: int, first: int) -> int:
        """Return the row of `fits` for an entry and its first move."""
        return first if first != NO_SUFFIX else self.grammar.num_moves + int(self._sets[entry])

    @cached_property
    def _sets(self) -> np.ndarray:
        """The set of each entry: (E,) int64."""
        numbers: dict[tuple[frozenset[str], bool, str], int] = {}
        keys = ((flags, word[:1].isupper(), word[-ENDING:]) for word, flags in self.grammar.entries)
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def _draw_of(moves: tuple[int, ...], weights: np.ndarray, random: np.random.Generator) -> int:
    """Return one of the moves, in proportion to the weights; 0 for an entry without a form, in a damaged prior."""
    place = int(np.searchsorted(weights.cumsum(), random.random() * weights.sum(), side="right"))
    return moves[min(place, len(moves) - 1)] if moves else 0
