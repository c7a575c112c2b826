"""Ranks of unknown words among the unknown strings with the same beginning, by Σ_o r_o P_o(w | w ∉ V).

Sizes: O open classes, A symbols, m strings or prefixes.

`Ranks` counts the strings that are more probable than a given one:

    listed words    the words of lists and dictionaries, and the same with a capital, are scored one by one
    other strings   are spelled by characters or compounds. A prefix is at least as probable as each of its
                    continuations. So a best-first search needs only prefixes that are more probable than the string.

The search ignores numbers, unknown characters, and classes with a share below LEAST_CLASS.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np

from fairseq_llrnn.open_vocabulary.alphabet import FIRST
from fairseq_llrnn.open_vocabulary.capitalised import Capitalised, StringDistribution, capitalised
from fairseq_llrnn.open_vocabulary.compounds import Compounds
from fairseq_llrnn.open_vocabulary.listed_strings import ListedStrings
from fairseq_llrnn.open_vocabulary.vocabulary import OpenVocabulary

AT_ONCE = 64  # prefixes in one step
MOST_PREFIXES = 20_000  # of one search
LEAST_CLASS = 1e-4
PART = 2_000  # words scored together


class Ranks:
    """Ranks of the strings of an open vocabulary (module docstring)."""

    def __init__(self, vocabulary: OpenVocabulary, known: Container[str], forms: Iterable[str] = ()) -> None:
        """known: V. forms: of the hunspell dictionaries in the lexicon."""
        self.vocabulary, self.strings, self.known = vocabulary, vocabulary.strings, known
        lexicon = self.strings.lexicon
        parts = [] if lexicon is None else [*zip(lexicon.parts, lexicon.shares, strict=True)]
        lists = [part for part, _ in parts if isinstance(part, ListedStrings)]
        words = {word for group in (*(part.strings for part in lists), forms) for word in group}
        frequent = {part.strings[i] for part in lists for i in np.argsort(-part.probs)[:PART].tolist()}
        self.frequent = [word for word in frequent if word not in known]
        self.listed = sorted(word for word in words | {*map(capitalised, words)} if word not in known)
        self._parts = parts

    def rank(self, word: str, size: int, log_classes: np.ndarray, most: int) -> int | None:
        """Return the rank of a word among the strings with its first `size` letters, or None if a search is too large.

        Args:
            log_classes: log r_o, (O,).
            most: largest rank of interest. All ranks above it are `most` + 1.
        """
        log_weights, beginning = log_classes - self.vocabulary.log_outside, word[:size]
        (prob,) = self._probs([word], log_weights)
        first = bisect_left(self.listed, beginning)
        after = bisect_right(self.listed, beginning, first, key=lambda string: string[:size])
        frequent = [string for string in self.frequent if string.startswith(beginning)]
        better = set[str]()
        for part in (frequent, *(self.listed[i : min(i + PART, after)] for i in range(first, after, PART))):
            better.update(np.array(part)[self._probs(part, log_weights) > prob].tolist())
            if len(better - {word}) >= most:
                return most + 1
        listed = len(better - {word})
        unlisted = self._search(word, beginning, prob, np.exp(log_weights), most - listed)
        return None if unlisted is None else 1 + listed + unlisted

    def _probs(self, strings: Sequence[str], log_weights: np.ndarray) -> np.ndarray:
        """Return Σ_o r_o P_o(w | w ∉ V) of strings: (m,)."""
        found: np.ndarray = np.exp(np.logaddexp.reduce(self.strings.log_probs(strings) + log_weights, axis=1))
        return found

    def _search(self, word: str, beginning: str, prob: float, weights: np.ndarray, most: int) -> int | None:
        """Return the number of unlisted strings above a probability, `most` at most, or None."""
        strings, alphabet = self.strings, self.strings.characters.alphabet
        classes = np.flatnonzero(weights * np.exp(self.vocabulary.log_outside) >= LEAST_CLASS)  # O'
        start = weights * (1.0 - strings.geometric) / np.exp(strings.characters.log_not_empty)
        start = start if strings.lexicon is None else start * np.exp(strings.lexicon.log_rest)
        tails, probs = strings.characters.beginnings(1), start[None, classes]  # (m, n), (m, O')
        for symbol in alphabet.rows([beginning]).symbols[1:-1, None]:
            probs = self._joint(tails, probs, classes)[:, :, symbol[0]]
            tails = strings.characters.tails_after(tails, symbol)
        queue = [(-np.inf, beginning, tails[0], probs[0])]
        expanded = found = 0
        while queue and found < most:
            chosen = [heapq.heappop(queue) for _ in range(min(AT_ONCE, len(queue)))]
            expanded += len(chosen)
            if expanded > MOST_PREFIXES:
                return None
            prefixes = [prefix for _, prefix, _, _ in chosen]
            tails = np.stack([tail for _, _, tail, _ in chosen])
            joint = self._joint(tails, np.stack([of_classes for *_, of_classes in chosen]), classes)  # (m, O', A)
            totals = joint.sum(1)
            ends, bounds = totals[:, 0], totals[:, FIRST:]
            for row, prefix in enumerate(prefixes):
                for character, added in self._compound_probs(prefix, weights).items():
                    if not character:
                        ends[row] += added
                    elif (symbol := int(alphabet.rows([character]).symbols[1])) >= FIRST:
                        bounds[row, symbol - FIRST] += added
                is_new = prefix and prefix != word and prefix not in self.known and not self._is_listed(prefix)
                found += bool(is_new and ends[row] > prob)
            rows, columns = np.nonzero(bounds > prob)
            grown = strings.characters.tails_after(tails[rows], columns + FIRST)
            for row, column, tail in zip(rows.tolist(), columns.tolist(), grown, strict=True):
                longer = prefixes[row] + chr(alphabet.characters[column])
                heapq.heappush(queue, (-bounds[row, column], longer, tail, joint[row, :, column + FIRST]))
        return min(found, most)

    def _joint(self, tails: np.ndarray, probs: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Return the probabilities of prefixes (m, O') with each next symbol: (m, O', A)."""
        following = [self.strings.characters.next_symbols(tails, o) for o in classes.tolist()]
        joint: np.ndarray = np.stack(following, axis=1) * probs[:, :, None]
        return joint

    def _compound_probs(self, prefix: str, weights: np.ndarray) -> dict[str, float]:
        """Return the probability of the compounds that continue a prefix with each character, as `next_probs`."""
        found: dict[str, float] = defaultdict(float)
        for part, shares in self._parts:
            for character, prob in _next_probs(part, prefix).items():
                found[character] += float(shares @ weights) * prob
        return found

    def _is_listed(self, string: str) -> bool:
        place = bisect_left(self.listed, string)
        return place < len(self.listed) and self.listed[place] == string


def _next_probs(part: StringDistribution, prefix: str) -> Mapping[str, float]:
    """Return the probability of the compounds that continue a prefix with each character; "" ends the string."""
    if isinstance(part, Compounds):
        return part.next_probs(prefix)
    found: dict[str, float] = defaultdict(float)
    if isinstance(part, Capitalised) and isinstance(part.inner, Compounds):
        for origin in {prefix, prefix[:1].lower() + prefix[1:]}:
            if capitalised(origin) == prefix:
                for character, prob in part.inner.next_probs(origin).items():
                    found[character if prefix else capitalised(character)] += prob
    return found
