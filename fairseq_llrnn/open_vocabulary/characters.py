"""Character n-grams of O classes of words, each smoothed towards all classes together: a distribution over all strings.

Sizes: O classes, A symbols (alphabet.py), n the order, G_j grams of length j, P positions. With h the j − 1 symbols
before and h' all of them but the first, for all classes together (interpolated modified Kneser-Ney, Chen & Goodman
1999)

    P_j(c | h)    =  (N(hc) − D + D̄(h) P_{j−1}(c | h')) / N(h)           P_0 uniform over Unicode and the end

N counts occurrences of the longest grams, and of grams at the beginning of a word. For all other grams it counts
different preceding symbols. A class has its own counts, and backs off to a mixture of its own shorter grams and the
grams of all classes:

    P_j(c | h, o)  =  (N_o(hc) − D + D̄_o(h) Q) / N_o(h),     Q = γ P_j(c | h) + (1 − γ) P_{j−1}(c | h', o)

and to Q if it has no counts after h. If no class has counts, P_j is P_{j−1}. D̄(h) is the sum of the discounts D.
A string that is not empty has probability Π P_n(c | h, o) / (1 − P_n(end | begin, o)): the end is possible after any
symbol, so that every string is finite, and the probabilities of all strings sum to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairseq_llrnn.open_vocabulary.alphabet import BEGIN, END, Alphabet, Rows

ORDER = 7
POOL_WEIGHT = 0.5  # γ
CELLS = 2_000_000  # positions × classes that are computed together


@dataclass(frozen=True)
class Level:
    """The grams of one length j: of all classes together, and entries of the classes that contain them."""

    keys: np.ndarray  # (G_j,) int64, ascending: index of the gram without its last symbol · A + last symbol
    counts: np.ndarray  # (G_j,) int64, N(hc); 0 for BEGIN alone, which nothing precedes
    entry_keys: np.ndarray  # (E_j,) int64, ascending: index of the gram · O + class
    entry_counts: np.ndarray  # (E_j,) int64, N_o(hc)


@dataclass(frozen=True)
class _Sums:
    """Sums over the grams of one length with the same context before their last symbol: N(h) and D̄(h)."""

    discounts: np.ndarray  # (4,) D of a count of 0, 1, 2, and 3 or more
    class_discounts: np.ndarray
    total: np.ndarray  # (G_{j−1},) N(h)
    back_off: np.ndarray  # (G_{j−1},) D̄(h) = Σ_c D(N(hc))
    class_keys: np.ndarray  # (C,) ascending: context · O + class, for pairs with counts
    class_total: np.ndarray  # (C,)
    class_back_off: np.ndarray  # (C,)


@dataclass(frozen=True)
class CharacterNGrams:
    """O distributions over all strings (module docstring)."""

    alphabet: Alphabet
    num_classes: int
    levels: tuple[Level, ...]  # n

    @classmethod
    def train(
        cls, strings: Sequence[str], classes: np.ndarray, num_classes: int, order: int = ORDER,
        alphabet: Alphabet | None = None,
    ) -> CharacterNGrams:  # fmt: skip
        """Estimate the model from different strings, each of one class (n,); a class may have none."""
        alphabet = Alphabet.of(strings) if alphabet is None else alphabet
        rows = alphabet.rows(strings)
        size, of_class = alphabet.size, np.asarray(classes, dtype=np.int64)[rows.string]
        gram = np.zeros(len(rows.symbols), dtype=np.int64)  # of length j, ending at each position; −1 for none
        grams: list[np.ndarray] = []
        keys: list[np.ndarray] = []
        for _ in range(order):
            # extends the gram that ends one position earlier by one symbol; a string has none before its beginning
            key = np.where(rows.depth == 0, -1, _extend(np.roll(gram, 1), rows.symbols, size))
            if not keys:
                key = rows.symbols
            unique, gram = np.unique(key, return_inverse=True)
            if len(unique) and unique[0] == -1:
                unique, gram = unique[1:], gram - 1
            keys.append(unique)
            grams.append(gram)
        counted = [_counts(grams, j, rows, of_class, num_classes, len(keys[j])) for j in range(order)]
        return cls(alphabet, num_classes, tuple(Level(k, *c) for k, c in zip(keys, counted, strict=True)))

    # ---- probabilities ------------------------------------------------------------------------------------------

    def log_probs(self, strings: Sequence[str]) -> np.ndarray:
        """Return log P(string | class) of strings that are not empty: (n, O) float64."""
        result = np.zeros((len(strings), self.num_classes))
        lengths = np.fromiter((len(s) + 2 for s in strings), dtype=np.int64, count=len(strings))
        part = np.cumsum(lengths) * self.num_classes // CELLS
        for number in np.unique(part):
            chosen = np.flatnonzero(part == number)
            rows = self.alphabet.rows([strings[i] for i in chosen])
            written = np.flatnonzero(rows.depth > 0)
            logs = np.log(self._conditional(rows, written))
            np.add.at(result, chosen[rows.string[written]], logs)
        return result - self.log_not_empty

    @cached_property
    def log_not_empty(self) -> np.ndarray:
        """log(1 − P(end | begin)) of every class: (O,)."""
        rows = Rows(np.array([BEGIN, END]), np.array([0, 1]), np.array([0, 0]))
        return np.log1p(-self._conditional(rows, np.array([1]))[0])

    def _conditional(self, rows: Rows, positions: np.ndarray) -> np.ndarray:
        """Return P(symbol | preceding symbols, class) at positions: (p, O)."""
        gram, context = np.zeros(len(rows.symbols), dtype=np.int64), np.zeros(len(positions), dtype=np.int64)
        pool = np.full((len(positions), 1), np.exp(self.alphabet.log_uniform))
        by_class = np.repeat(pool, self.num_classes, axis=1)
        for j, level in enumerate(self.levels):
            key = _extend(np.roll(gram, 1), rows.symbols, self.alphabet.size)
            gram = np.where((rows.depth == 0) & (j > 0), -1, find(level.keys, key))
            by_class, pool = self._deepen(j, context, gram[positions], by_class, pool, np.arange(self.num_classes))
            context = gram[positions - 1]
        return by_class

    def _deepen(
        self, j: int, context: np.ndarray, gram: np.ndarray, by_class: np.ndarray, pool: np.ndarray, classes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute P_j of positions from P_{j−1}: (p, o) by class, and (p, 1) of all. −1: no such context or gram."""
        level, sums = self.levels[j], self._sums[j]
        total, taken = _at(sums.total, context)[:, None], _at(sums.back_off, context)[:, None]
        count = _at(level.counts, gram)[:, None]
        deeper = (count - sums.discounts[np.minimum(count, 3)] + taken * pool) / np.maximum(total, 1)
        pool = np.where(total > 0, deeper, pool)
        by_class = np.where(total > 0, POOL_WEIGHT * pool + (1.0 - POOL_WEIGHT) * by_class, by_class)
        # classes with counts after the context, (m,) places in (p, o)
        place = find(sums.class_keys, _extend(context, classes[None], self.num_classes))
        row, column = np.nonzero(place >= 0)
        place = place[row, column]
        entry = find(level.entry_keys, _extend(gram[row], classes[column], self.num_classes))
        count = _at(level.entry_counts, entry)
        discounted = count - sums.class_discounts[np.minimum(count, 3)]
        shorter = sums.class_back_off[place] * by_class[row, column]
        by_class[row, column] = (discounted + shorter) / sums.class_total[place]
        return by_class, pool

    @cached_property
    def _sums(self) -> tuple[_Sums, ...]:
        result = []
        contexts = 1  # of length 0
        for level in self.levels:
            parent = level.keys // self.alphabet.size
            discounts, class_discounts = _discounts(level.counts), _discounts(level.entry_counts)
            key = parent[level.entry_keys // self.num_classes] * self.num_classes + level.entry_keys % self.num_classes
            class_keys, place = np.unique(key, return_inverse=True)
            taken = class_discounts[np.minimum(level.entry_counts, 3)]
            result.append(
                _Sums(
                    discounts,
                    class_discounts,
                    np.bincount(parent, weights=level.counts, minlength=contexts),
                    np.bincount(parent, weights=discounts[np.minimum(level.counts, 3)], minlength=contexts),
                    class_keys,
                    np.bincount(place, weights=level.entry_counts, minlength=len(class_keys)),
                    np.bincount(place, weights=taken, minlength=len(class_keys)),
                )
            )
            contexts = len(level.keys)
        return tuple(result)

    # ---- drawing strings ------------------------------------------------------------------------------------------

    def next_symbols(self, tails: np.ndarray, of_class: int | None = None) -> np.ndarray:
        """Return P(symbol | context) of every symbol. Column BEGIN sums all unknown characters: (m, n) -> (m, A).

        Args:
            tails: column j is the index of the gram of length j that ends each context (column 0: zeros), −1: none.
            of_class: None for all classes together.
        """
        num_contexts, size = len(tails), self.alphabet.size
        classes = np.array([] if of_class is None else [of_class], dtype=np.int64)
        pool = np.full((num_contexts * size, 1), np.exp(self.alphabet.log_uniform))
        by_class = np.repeat(pool, len(classes), axis=1)
        symbols = np.tile(np.arange(size), num_contexts)
        for j, level in enumerate(self.levels):
            context = np.repeat(tails[:, j], size)
            gram = find(level.keys, _extend(context, symbols, size))
            by_class, pool = self._deepen(j, context, gram, by_class, pool, classes)
        result = (pool if of_class is None else by_class).reshape(num_contexts, size)
        result[:, BEGIN] *= self.alphabet.num_unknown  # each has the probability of a symbol without counts
        return result

    def tails_after(self, tails: np.ndarray, symbols: np.ndarray) -> np.ndarray:
        """Return the tails of contexts (m, n) extended by a symbol (m,), or OTHER."""
        grown = np.zeros_like(tails)
        for j in range(1, len(self.levels)):
            grown[:, j] = find(self.levels[j - 1].keys, _extend(tails[:, j - 1], symbols, self.alphabet.size))
        return grown

    def beginnings(self, count: int) -> np.ndarray:
        """Return the tails of empty strings: (count, n)."""
        tails = np.full((count, len(self.levels)), -1, dtype=np.int64)
        tails[:, 0] = 0
        if len(self.levels) > 1:
            tails[:, 1] = find(self.levels[0].keys, np.array([BEGIN]))
        return tails


def _extend(number: np.ndarray, symbol: np.ndarray, size: int) -> np.ndarray:
    """Return the keys of pairs, number · size + symbol, or −1 if one of them is −1."""
    number = number[:, None] if symbol.ndim > 1 else number
    return np.where((number < 0) | (symbol < 0), -1, number * size + symbol)


def find(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the places of `wanted` in ascending `keys`, or −1 for missing ones."""
    if len(keys) == 0:
        return np.full(wanted.shape, -1, dtype=np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def _at(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the values at places, or 0 for the place −1."""
    if len(values) == 0:
        return np.zeros(places.shape, dtype=values.dtype)
    return np.where(places < 0, 0, values[np.maximum(places, 0)])


def _counts(
    grams: Sequence[np.ndarray], j: int, rows: Rows, of_class: np.ndarray, num_classes: int, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return N(hc) of all grams of length j + 1, and the keys and values of N_o(hc) > 0."""
    gram = grams[j]
    begins = (rows.depth == j) & (gram >= 0)  # the gram begins its string: BEGIN is its first symbol
    inner = (rows.depth > j) & (gram >= 0)
    if j + 1 < len(grams):
        # of grams with preceding symbols: the first position of every longer gram
        longer = grams[j + 1]
        pooled = np.concatenate([gram[begins], gram[_firsts(longer, inner)]])
        by_class = np.where(inner, longer * num_classes + of_class, -1)
        counted = np.concatenate([np.flatnonzero(begins), _firsts(by_class, inner)])
    else:
        pooled = gram[begins | inner]
        counted = np.flatnonzero(begins | inner)
    counts = np.bincount(pooled, minlength=size)
    keys, entry_counts = np.unique(gram[counted] * num_classes + of_class[counted], return_counts=True)
    if j == 0:  # nothing precedes BEGIN, which is a context only
        counts[grams[0][rows.symbols == BEGIN]] = 0
        real = ~np.isin(keys // num_classes, np.unique(grams[0][rows.symbols == BEGIN]))
        keys, entry_counts = keys[real], entry_counts[real]
    return counts, keys, entry_counts


def _firsts(keys: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Return the first position of every distinct key at the positions of a mask."""
    positions = np.flatnonzero(among)
    _, first = np.unique(keys[positions], return_index=True)
    return positions[first]


def _discounts(counts: np.ndarray) -> np.ndarray:
    """Return D of a count of 0 (nothing), 1, 2, and 3 or more, (4,), from the numbers of counts 1, 2, 3 and 4."""
    ones, twos, threes, fours = (int((counts == c).sum()) for c in (1, 2, 3, 4))
    y = ones / (ones + 2.0 * twos) if ones else 0.5
    raw = (
        1.0 - 2.0 * y * twos / ones if ones else y,
        2.0 - 3.0 * y * threes / twos if twos else y,
        3.0 - 4.0 * y * fours / threes if threes else y,
    )
    # above 0, so that every symbol is possible, and below the count
    return np.array([0.0, *(min(max(d, 0.1), c - 0.1) for d, c in zip(raw, (1, 2, 3), strict=True))])
