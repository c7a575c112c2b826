"""A distribution over the forms of a hunspell dictionary, without a list of them: a stem, then its affixes.

Sizes: E entries of FILE.dic, R affix rules, m strings.

Each step of a form chooses among its possible moves (affix_grammar.py), in proportion to their weights:

    P(entry e) = u_e                    P(move r)  =  c_r / Σ_{r' possible} c_r'

So each entry has probability one in all, and P(w) is a sum over the few derivations of w, which are found by removing
affixes. `fit` learns u and c from words: an entry that the words contain is probable in other forms, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fairseq_llrnn.open_vocabulary.affix_grammar import Derivation, Grammar

STEPS = 10
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

    def draw(self, count: int, random: np.random.Generator) -> list[str]:
        """Return samples."""
        entries = random.choice(len(self.entry_probs), count, p=self.entry_probs)
        return [self._draw_form(entry, random) for entry in entries.tolist()]

    def _draw_form(self, entry: int, random: np.random.Generator) -> str:
        grammar = self.grammar
        form, flags = grammar.entries[entry]
        first = grammar.rule(self._draw_move(grammar.firsts(form, flags), random))
        second = None
        if first is not None:
            form = first.of(form, True) or ""
            second = grammar.rule(self._draw_move(grammar.seconds(form, flags, first), random))
            form = form if second is None else second.of(form, True) or ""
        prefix = grammar.rule(self._draw_move(grammar.prefixes(form, flags, first, second), random))
        return grammar.affixes.outer(form if prefix is None else prefix.of(form, False) or "")

    def _draw_move(self, possible: tuple[int, ...], random: np.random.Generator) -> int:
        if not possible:  # an entry without a form, in a damaged prior
            return 0
        weights = self.move_weights[list(possible)]
        return possible[int(np.searchsorted(weights.cumsum(), random.random() * weights.sum(), side="right"))]

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
