"""The features of words (φ, and ψ), words that share a signature, and words with an indicator feature.

Sizes: V words of the dictionary, S signatures, F features, M words with an indicator.

A `FeatureTable` lists the features in order, and is the sparse matrix of the words' values. Features of a *type* are
the union over its analyses (Dymetman & Xiao 2016, §5.2). The M most frequent words also have an indicator
(`TOPFORM:elle`), all others have `NOTTOP`. A feature's *group* is its name up to the first colon: `Gender:Fem` is of
group `Gender`.

Words with equal feature rows form one class, a *signature* (`Signatures`). The exponential exp(aᵀφ(x)) is the same for
all members of a class, so with B(σ) = Σ_{x∈σ} b(x)

    p(x) = p(σ(x)) · b(x) / B(σ(x)),        p(σ) ∝ B(σ) · exp(aᵀ φ(σ))

exactly: the sum over V words is a sum over S signatures (docs/design.md derives it).

Words with an indicator are the M most frequent ones, all, or `auto`: those with at least `floor` occurrences in the
counted text. No fixed number suits every corpus. The 2,500 most frequent words include some that occur once if the text
has 20,000 words, and exclude some that occur 29 times if it has a million. A word's count determines how well its own
weights can be learned. `Sharing` measures the words that share a signature with others.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.files.numbers import LARGEST_VALUE
from fairseq_llrnn.lexicon.features import feature_group

NOT_TOP = "NOTTOP"
TOP_FORM = "TOPFORM"
SPECIAL = "SPECIAL"


def are_rows(offsets: np.ndarray, indices: np.ndarray, limit: int) -> bool:
    """Return whether rows from `offsets` stay inside `indices` (E,), and these inside 0 … limit − 1.

    Untrusted input: compiled kernels use it later without a check of their own.
    """
    return bool(
        len(offsets) > 0
        and offsets[0] == 0
        and offsets[-1] == len(indices)
        and (np.diff(offsets) >= 0).all()
        and (len(indices) == 0 or (indices.min() >= 0 and indices.max() < limit))
    )


def ranges(begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return begins[0], begins[0] + 1, … (lengths[0] numbers), then the range of begins[1], and so on."""
    ends = lengths.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(begins - ends + lengths, lengths)


def check_values(values: np.ndarray, features: str) -> None:
    """Raise ValueError for stored values with which gradients may overflow. `features` names them in the message."""
    if not np.isfinite(values).all():
        raise ValueError(f"the {features} features contain values that are not finite")
    if (np.abs(values) > LARGEST_VALUE).any():
        raise ValueError(f"the {features} features contain values above {LARGEST_VALUE:,.0f}")


@dataclass(frozen=True)
class FeatureTable:
    """Sparse real-valued feature rows in CSR form. Zero entries are never stored. Indices rise within a row."""

    names: tuple[str, ...]  # F
    offsets: np.ndarray  # (rows + 1,) int64
    indices: np.ndarray  # (entries,) int64
    values: np.ndarray  # (entries,) float32

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each feature by name."""
        return {name: i for i, name in enumerate(self.names)}

    def with_names(self, names: Iterable[str]) -> FeatureTable:
        """Return the same rows over more features. New features come last, and no row has them."""
        more = tuple(name for name in dict.fromkeys(names) if name not in self.index)
        return replace(self, names=(*self.names, *more)) if more else self

    @property
    def num_rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_features(self) -> int:
        return len(self.names)

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, float]], names: Sequence[str] | None = None) -> FeatureTable:
        """Build the table of `rows`. The features are ordered by name, so equal rows give equal bytes.

        Args:
            names: all features, in another order.

        Raises:
            DataError: a value is NaN or infinite.
        """
        names = names or sorted({name for row in rows for name in row})
        index = {name: i for i, name in enumerate(names)}
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        indices: list[int] = []
        values: list[float] = []
        for r, row in enumerate(rows):
            entries = sorted((index[name], float(value)) for name, value in row.items() if np.float32(value) != 0.0)
            for i, value in entries:
                if not np.isfinite(np.float32(value)):
                    raise DataError(
                        f"feature {names[i]!r} of row {r}: expected a finite real value, found {value}; "
                        "fix the feature's definition"
                    )
                indices.append(i)
                values.append(value)
            offsets[r + 1] = len(indices)
        return cls(tuple(names), offsets, np.array(indices, dtype=np.int64), np.array(values, dtype=np.float32))

    def row(self, r: int) -> dict[str, float]:
        """Return row `r` as {name: value}."""
        span = slice(self.offsets[r], self.offsets[r + 1])
        return {self.names[i]: float(v) for i, v in zip(self.indices[span], self.values[span], strict=True)}

    def select(self, rows: np.ndarray) -> FeatureTable:
        """Return the table of the given rows, over the same features."""
        starts, sizes = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        entries = ranges(starts, sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return FeatureTable(self.names, offsets, self.indices[entries], self.values[entries])

    def of_groups(self, groups: Collection[str]) -> FeatureTable:
        """Return the rows with only the features of some groups, which keep their numbers."""
        is_kept = np.array([feature_group(name) in groups for name in self.names], dtype=bool)
        kept = is_kept[self.indices]
        ends = np.concatenate([[0], np.cumsum(kept)])  # how many entries are kept before each
        return FeatureTable(self.names, ends[self.offsets], self.indices[kept], self.values[kept])

    def dense(self) -> np.ndarray:
        """Return the rows as a dense (rows, F) float32 matrix: for oracles and small tables only."""
        out = np.zeros((self.num_rows, self.num_features), dtype=np.float32)
        out[np.repeat(np.arange(self.num_rows), np.diff(self.offsets)), self.indices] = self.values
        return out


@dataclass(frozen=True)
class WordRows:
    """The features of V words by name. Words with equal features share one of D rows."""

    row_of: np.ndarray  # (V,) int64
    rows: list[dict[str, float]]  # D, in the order of their first words

    @classmethod
    def of(cls, rows: Iterable[dict[str, float]]) -> WordRows:
        """Collect the different rows of all words."""
        seen: dict[frozenset[tuple[str, float]], int] = {}
        kept: list[dict[str, float]] = []
        row_of = []
        for row in rows:
            place = seen.setdefault(frozenset(row.items()), len(kept))
            if place == len(kept):
                kept.append(row)
            row_of.append(place)
        return cls(np.array(row_of, dtype=np.int64), kept)


def top_words(counts: np.ndarray, ordinary: np.ndarray, number: int, option: str) -> np.ndarray:
    """Return the indices of the `number` most frequent ordinary (not special) words. Ties go to the lower index.

    Args:
        counts: (V,) counts.
        ordinary: (V,) bool, False for specials and padding entries of the dictionary.
        option: the option of `number`.

    Raises:
        OptionError: there are fewer ordinary words.
    """
    candidates = np.flatnonzero(ordinary)
    if number < 0 or number > len(candidates):
        raise OptionError(
            f"{option} {number}: expected a number between 0 and the dictionary's {len(candidates)} words; "
            f"give at most {len(candidates)}, or `all`"
        )
    order = np.lexsort((candidates, -counts[candidates]))
    return candidates[order[:number]]


def restrict_groups(
    rows: Iterable[Mapping[str, float]], groups: Sequence[str] | None, option: str, requested: Sequence[str] = ()
) -> list[dict[str, float]]:
    """Keep only features of `groups` (None: all), and of the groups of other options in `requested`.

    Raises:
        OptionError: a group that no word has. The message names the nearest that exists.
    """
    copies = [dict(row) for row in rows]
    if groups is None:
        return copies
    available = sorted({feature_group(name) for row in copies for name in row})
    for group in groups:
        if group not in available:
            case_variants = [name for name in available if name.lower() == group.lower()]
            similar = case_variants or difflib.get_close_matches(group, available, n=1)
            hint = f"; did you mean {similar[0]!r}?" if similar else ""
            if not available:
                raise OptionError(
                    f"{option} {group}: expected a source of features, found none; add --conllu or --lexicon"
                )
            raise OptionError(
                f"{option}: unknown feature group {group!r}; found in the lexicon and patterns: "
                f"{', '.join(available)}{hint}"
            )
    kept_groups = {*groups, *requested}
    return [{n: v for n, v in row.items() if feature_group(n) in kept_groups} for row in copies]


def identity_rows(words: Sequence[str], specials: np.ndarray, top: np.ndarray) -> list[dict[str, float]]:
    """Return the indicator of each `top` word, `NOTTOP` for other words, and a feature for every special symbol.

    Args:
        words: V symbols of the dictionary.
        specials: (V,) bool.
        top: indices of the M words with an indicator.
    """
    is_top = np.zeros(len(words), dtype=bool)
    is_top[top] = True
    rows: list[dict[str, float]] = []
    for word, special, frequent in zip(words, specials, is_top, strict=True):
        if special:
            rows.append({f"{SPECIAL}:{word}": 1.0})
        elif frequent:
            rows.append({f"{TOP_FORM}:{word}": 1.0})
        else:
            rows.append({NOT_TOP: 1.0})
    return rows


@dataclass(frozen=True)
class Signatures:
    """The classes of equal feature rows."""

    class_of: np.ndarray  # (V,) int64, the signature of each word
    features: FeatureTable  # S rows: φ(σ)

    def with_names(self, names: Iterable[str]) -> Signatures:
        """Return the classes over more features, as `FeatureTable.with_names`."""
        features = self.features.with_names(names)
        return self if features is self.features else replace(self, features=features)

    @property
    def num_words(self) -> int:
        return len(self.class_of)

    @property
    def num_classes(self) -> int:
        return self.features.num_rows

    def features_of(self, word: int) -> dict[str, float]:
        """Return φ(x) by name."""
        return self.features.row(int(self.class_of[word]))

    def members(self, signature: int) -> np.ndarray:
        """Return the indices of the words of a class, rising."""
        return np.flatnonzero(self.class_of == signature)


def group_equal_rows(table: FeatureTable) -> Signatures:
    """Return classes of equal rows, numbered by their first word: the same table always gives the same numbers."""
    seen: dict[bytes, int] = {}
    class_of = np.zeros(table.num_rows, dtype=np.int64)
    first: list[int] = []
    for r in range(table.num_rows):
        span = slice(table.offsets[r], table.offsets[r + 1])
        key = table.indices[span].tobytes() + table.values[span].tobytes()
        signature = seen.setdefault(key, len(first))
        if signature == len(first):
            first.append(r)
        class_of[r] = signature
    return Signatures(class_of, table.select(np.array(first, dtype=np.int64)))


AUTO: Literal["auto"] = "auto"
IDENTITY_FLOOR = 5
TopWords = int | Literal["all", "auto"]


def words_with_identity(counts: np.ndarray, ordinary: np.ndarray, top: TopWords, floor: int, option: str) -> np.ndarray:
    """Return the indices of the words with an indicator feature.

    Args:
        counts: (V,) counts.
        ordinary: (V,) bool, False for specials and padding entries of the dictionary.
        top: the number of most frequent words, `all`, or `auto`: words with a count of at least `floor`.
        option: the option of `top`.

    Raises:
        OptionError: there are fewer ordinary words, or `auto` without any count.
    """
    if top == "all":
        return np.flatnonzero(ordinary)
    if top != AUTO:
        return top_words(counts, ordinary, top, option)
    if not counts[ordinary].any():
        raise OptionError(
            f"{option} auto: expected counts, found none for any word of the dictionary; give a text with "
            f"--count-text, or set {option} M or {option} all (in a Recipe: text, or top_words)"
        )
    return np.flatnonzero(ordinary & (counts >= floor))


@dataclass(frozen=True)
class Sharing:
    """Ordinary words with the features of at least one other word: only the background distinguishes them."""

    words: int
    tokens: float  # their part of all counted tokens of ordinary words, 0 … 1; 0 without counts


def sharing(signatures: Signatures, counts: np.ndarray, ordinary: np.ndarray) -> Sharing:
    """Return how many words share a signature, and their share of the text.

    Args:
        counts: (V,) counts.
        ordinary: (V,) bool, as in `top_words`.
    """
    sizes = np.bincount(signatures.class_of[ordinary], minlength=signatures.num_classes)
    shared = ordinary & (sizes[signatures.class_of] > 1)
    total = counts[ordinary].sum()
    return Sharing(int(shared.sum()), float(counts[shared].sum() / total) if total > 0 else 0.0)
