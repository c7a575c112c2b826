"""The lexicon of an open vocabulary in the background of the speller: b(c | prefix) of a mixture.

    b(c | prefix)  =  Σ_k w_k P_k(prefix c …) / Σ_k w_k P_k(prefix …)            w_k = Σ_o π_o λ_ko

k = 0 is the character n-grams. Lists and compounds have probabilities of prefixes, the same in all classes. The forms
of hunspell dictionaries have none, and only P_o uses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fairseq_llrnn.open_vocabulary.alphabet import END, FIRST
from fairseq_llrnn.open_vocabulary.compounds import Compounds
from fairseq_llrnn.open_vocabulary.listed_strings import ListedStrings
from fairseq_llrnn.open_vocabulary.vocabulary import OpenVocabulary

KEPT_PREFIXES = 1 << 17


class Blend(NamedTuple):
    """How log b of the n-grams in some rows changes: log b(c)  ←  log(exp(log b(c) + log_share) + added(c))."""

    log_share: np.ndarray  # (m,) float64
    rows: np.ndarray  # (e,) int64
    symbols: np.ndarray  # (e,) int64
    log_added: np.ndarray  # (e,) float64

    def apply(self, log_base: np.ndarray) -> None:
        """Change log b, (m, A), in place."""
        log_base += self.log_share[:, None].astype(log_base.dtype)
        places = self.rows, self.symbols
        log_base[places] = np.logaddexp(log_base[places], self.log_added)


class LexiconBackground:
    """The lists and compounds of an open vocabulary."""

    def __init__(self, vocabulary: OpenVocabulary) -> None:
        lexicon, shares = vocabulary.strings.lexicon, np.exp(vocabulary.log_shares)
        weights = np.zeros(0) if lexicon is None else lexicon.shares @ shares
        parts = () if lexicon is None else lexicon.parts
        pairs = zip(parts, weights.tolist(), strict=True)
        self.parts = [(part, w) for part, w in pairs if isinstance(part, (ListedStrings, Compounds)) and w > 0.0]
        self.rest = 1.0 - sum(weight for _, weight in self.parts)
        characters = vocabulary.strings.characters.alphabet.characters.tolist()
        self._symbol_of = {"": END} | {chr(point): FIRST + i for i, point in enumerate(characters)}
        self._masses: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def blend(self, prefixes: Sequence[str], log_ngrams: np.ndarray) -> Blend:
        """Return the change of log b after some prefixes, which have the log-probabilities `log_ngrams` (m,)."""
        found = [self._next_masses(prefix) for prefix in prefixes]
        rows = np.repeat(np.arange(len(found)), [len(symbols) for symbols, _ in found])
        of_ngrams = self.rest * np.exp(log_ngrams)
        totals = of_ngrams + np.array([masses.sum() for _, masses in found])
        with np.errstate(divide="ignore", invalid="ignore"):
            # a prefix too long for float64 has the n-grams alone
            log_share = np.where(totals > 0.0, np.log(of_ngrams) - np.log(totals), 0.0)
            masses = np.concatenate([masses for _, masses in found]) / totals[rows]
        return Blend(log_share, rows, np.concatenate([symbols for symbols, _ in found]), np.log(masses))

    def _next_masses(self, prefix: str) -> tuple[np.ndarray, np.ndarray]:
        """Return symbols after a prefix and Σ_k w_k P_k(prefix symbol …), without n-grams."""
        if prefix not in self._masses:
            sums: dict[int, float] = {}
            for part, weight in self.parts:
                for character, prob in part.next_probs(prefix).items():
                    if (symbol := self._symbol_of.get(character)) is not None and prob > 0.0:
                        sums[symbol] = sums.get(symbol, 0.0) + weight * prob
            if len(self._masses) >= KEPT_PREFIXES:
                self._masses.clear()
            symbols = np.array(list(sums), dtype=np.int64)
            self._masses[prefix] = symbols, np.array(list(sums.values()), dtype=np.float64)
        return self._masses[prefix]
