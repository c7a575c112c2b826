"""The open vocabulary of a prior: its classes, and their arrays.

Sizes: V words, O open classes, F output features, n the order of the character n-grams.

    p(w | K)  =  p(<unk> | K) Σ_o r_o(K) P_o(w | w ∉ V)         for every string w outside the dictionary

A word of the dictionary only has its own probability: P_o excludes these words and is renormalised. So every string has
one path, fairseq's <unk> has exactly the probability of a word outside the dictionary, and perplexities over the
dictionary keep their meaning. open_strings.py has r_o and p(<unk> | K).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fairseq_llrnn.features.feature_table import FeatureTable, Signatures, are_rows, check_values
from fairseq_llrnn.open_vocabulary.alphabet import Alphabet
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams, Level
from fairseq_llrnn.open_vocabulary.classes import ClassWords, read_class_words
from fairseq_llrnn.open_vocabulary.number_strings import DIGITS, SEPARATORS, GeometricNumbers, StringDistributions
from fairseq_llrnn.open_vocabulary.spelling_lexicon import read_spelling_lexicon

KINDS = CHARACTERS, NEURAL = ("characters", "neural")  # spelled by character n-grams, or also by a network (speller.py)
MOST_SYMBOLS = 2**20  # so that keys of grams stay within 64 bits


@dataclass(frozen=True)
class OpenVocabulary:
    """O open classes (module docstring)."""

    names: tuple[str, ...]  # O
    features: FeatureTable  # O rows over the F output features
    log_shares: np.ndarray  # (O,) float64, log π_o: shares of the background of <unk>; Σ π = 1
    strings: StringDistributions
    log_outside: np.ndarray  # (O,) float64, log(1 − Σ_{v ∈ V} P_o(v))
    word_shares: np.ndarray  # (V,) float64, share of a word's tokens that training reads as unknown; mostly 0
    kind: str = CHARACTERS
    class_words: ClassWords | None = None  # for the network

    def input_signatures(self, words: Signatures) -> Signatures:
        """Return ψ of V words, then ψ of the O classes, restricted to the features of ψ."""
        table, of_classes = words.features, [self.features.row(o) for o in range(len(self.names))]
        index = table.index
        rows = [sorted((index[name], value) for name, value in row.items() if name in index) for row in of_classes]
        entries = [entry for row in rows for entry in row]
        whole = FeatureTable(
            table.names,
            np.append(table.offsets, table.offsets[-1] + np.cumsum([len(row) for row in rows])),
            np.append(table.indices, np.array([i for i, _ in entries], dtype=np.int64)),
            np.append(table.values, np.array([value for _, value in entries], dtype=np.float32)),
        )
        return Signatures(np.append(words.class_of, words.num_classes + np.arange(len(self.names))), whole)

    def description(self) -> dict[str, Any]:
        """Return the description for the prior's JSON."""
        lexicon = self.strings.lexicon
        described = {"kind": self.kind, "classes": list(self.names), "order": len(self.strings.characters.levels)}
        return described if lexicon is None else {**described, "lexicon": lexicon.kinds()}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays for the prior."""
        characters, numbers = self.strings.characters, self.strings.numbers
        arrays = {
            "offsets": self.features.offsets,
            "indices": self.features.indices,
            "values": self.features.values,
            "log_shares": self.log_shares,
            "log_outside": self.log_outside,
            "word_shares": self.word_shares,
            "characters": characters.alphabet.characters,
            "geometric": self.strings.geometric,
            "numbers": np.concatenate([numbers.steps, numbers.digits, numbers.separators]),
        }
        for name in ("keys", "counts", "entry_keys", "entry_counts"):
            parts = [getattr(level, name) for level in characters.levels]
            arrays[name] = np.concatenate(parts)
            arrays[f"{name}_sizes"] = np.array([len(part) for part in parts], dtype=np.int64)
        if self.strings.lexicon is not None:
            arrays |= self.strings.lexicon.arrays()
        return arrays if self.class_words is None else arrays | self.class_words.arrays()


def read_open_vocabulary(
    arrays: Mapping[str, np.ndarray], description: Mapping[str, Any], names: Sequence[str], num_words: int
) -> OpenVocabulary:
    """Return the open vocabulary of a prior, given its `arrays` and `description`.

    Args:
        names: of the features, F.
        num_words: V.

    Raises:
        ValueError, KeyError, TypeError: invalid values, which are untrusted input.
    """
    classes, order = description["classes"], description["order"]
    kind = description["kind"]
    if kind not in KINDS or not isinstance(order, int) or not 0 < order <= 64:
        raise ValueError(f"the kind of the open vocabulary is unknown, {kind!r}")
    if not (isinstance(classes, list) and classes and all(isinstance(name, str) for name in classes)):
        raise ValueError("the open vocabulary names no classes")

    def numbers(name: str, size: int | None = None) -> np.ndarray:
        return _row(arrays, name, np.float64, size)

    def integers(name: str, size: int | None = None) -> np.ndarray:
        return _row(arrays, name, np.int64, size)

    num_classes = len(classes)
    offsets, indices = integers("offsets", num_classes + 1), integers("indices")
    values = _row(arrays, "values", np.float32, len(indices))
    if not are_rows(offsets, indices, len(names)):
        raise ValueError("the features of the open classes point outside their table")
    check_values(values, "open classes'")
    log_shares, log_outside = numbers("log_shares", num_classes), numbers("log_outside", num_classes)
    word_shares, geometric = numbers("word_shares", num_words), numbers("geometric", num_classes)
    with np.errstate(over="ignore"):
        shares_are_sound = abs(np.exp(log_shares).sum() - 1.0) <= 1e-6  # False for NaN
    if not shares_are_sound or not (np.isfinite(log_outside) & (log_outside <= 0.0)).all():
        raise ValueError("the shares of the open classes do not add up to one, or are not finite")
    if not ((word_shares >= 0) & (word_shares <= 1)).all() or not ((geometric >= 0) & (geometric < 1)).all():
        raise ValueError("the open vocabulary has shares outside 0 … 1")
    parts = np.split(numbers("numbers", 3 + len(DIGITS) + len(SEPARATORS)), [3, 3 + len(DIGITS)])
    if not all((part > 0).all() and abs(part.sum() - 1.0) <= 1e-6 for part in parts):
        raise ValueError("the distribution of numbers does not add up to one")
    characters = integers("characters")
    sound = len(characters) + 2 <= MOST_SYMBOLS and (np.diff(characters) > 0).all()
    if not sound or (len(characters) and (characters[0] < 0 or characters[-1] >= 0x110000)):
        raise ValueError("the alphabet of the open vocabulary is no rising row of characters")
    model = _read_characters(Alphabet(characters), num_classes, order, integers)
    kinds_of_lexicon = description.get("lexicon")
    lexicon = None
    if kinds_of_lexicon is not None:
        lexicon = read_spelling_lexicon(partial(_row, arrays), kinds_of_lexicon, num_classes)
    strings = StringDistributions(model, GeometricNumbers(*parts), geometric, lexicon)
    table = FeatureTable(tuple(names), offsets, indices, values)
    class_words = None
    if kind == NEURAL:
        kept = {f"rare_{name}": integers(f"rare_{name}") for name in ("letters", "lengths", "classes")}
        kept["rare_log_outside"] = numbers("rare_log_outside")
        class_words = read_class_words(kept, num_classes, model.alphabet)
    return OpenVocabulary(tuple(classes), table, log_shares, strings, log_outside, word_shares, kind, class_words)


def _read_characters(alphabet: Alphabet, num_classes: int, order: int, integers: Any) -> CharacterNGrams:
    split = {}
    for name in ("keys", "counts", "entry_keys", "entry_counts"):
        sizes, whole = integers(f"{name}_sizes", order), integers(name)
        if (sizes < 0).any() or sizes.sum() != len(whole):
            raise ValueError(f"the character n-grams: {name}: the parts do not add up to the whole")
        split[name] = np.split(whole, np.cumsum(sizes)[:-1])
    before = 1
    for keys, counts, entries, entry_counts in zip(*split.values(), strict=True):
        rising = all(len(x) == 0 or (x[0] >= 0 and (np.diff(x) > 0).all()) for x in (keys, entries))
        inside = len(keys) == 0 or keys[-1] < before * alphabet.size
        of_grams = len(entries) == 0 or entries[-1] < len(keys) * num_classes
        sizes = len(counts) == len(keys) and len(entry_counts) == len(entries)
        if not (rising and inside and of_grams and sizes and (counts >= 0).all() and (entry_counts > 0).all()):
            raise ValueError("the character n-grams point outside their tables")
        before = len(keys)
    return CharacterNGrams(alphabet, num_classes, tuple(Level(*level) for level in zip(*split.values(), strict=True)))


def _row(arrays: Mapping[str, np.ndarray], name: str, dtype: type, size: int | None) -> np.ndarray:
    array = arrays[name]
    if array.dtype != dtype or array.ndim != 1 or (size is not None and len(array) != size):
        expected = f"a row of {'' if size is None else f'{size} '}{np.dtype(dtype)}"
        raise ValueError(f"{name}: expected {expected}, found {array.dtype} of shape {array.shape}")
    return array
