"""What a word's spelling says to a tagger: its form where it is frequent, endings, beginnings, shape.

Sizes: V words, S signatures, F features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.features.feature_table import FeatureTable, group_equal_rows
from fairseq_llrnn.features.spelling import shape_features

ENDINGS, BEGINNINGS = (1, 2, 3, 4, 5), (1, 2, 3)  # lengths in letters
END = "</s>"  # the word of separators


def spelling_features(word: str) -> dict[str, float]:
    """Of any word, whether or not it was seen."""
    low = word.lower()
    features = shape_features(word)
    features |= {f"Ending:{low[-length:]}": 1.0 for length in ENDINGS if len(low) >= length}
    features |= {f"Beginning:{low[:length]}": 1.0 for length in BEGINNINGS if len(low) > length}
    if any(character.isdigit() for character in word):
        features["Digit:Some"] = 1.0
    if not any(character.isalpha() for character in word):
        features["Letter:None"] = 1.0
    return features


def word_features(word: str, has_form: bool) -> dict[str, float]:
    """With its own form; the separator's word has nothing else."""
    if word == END:
        return {"Separator": 1.0}
    return {"Any": 1.0, **({f"Form:{word}": 1.0} if has_form else {}), **spelling_features(word)}


@dataclass(frozen=True)
class WordSignatures:
    """Words of a treebank as signatures of φ."""

    names: tuple[str, ...]  # F features
    features: Tensor  # Φ (S, F) sparse, float64; signature 0 is the separator's
    signature_of: Mapping[str, int]  # the words that were seen
    log_masses: Tensor  # (S,) log b

    @classmethod
    def of(cls, counts: Mapping[str, int], ends: int, rare: int, floor: int = 3) -> WordSignatures:
        """From the counts of words.

        Args:
            ends: how often the separator comes. rare: words that come less often have no feature of their own form.
            floor: features of spelling that fewer different words have are left out.
        """
        words = [END, *sorted(word for word in counts if word != END)]
        rows = [word_features(word, counts.get(word, 0) >= rare) for word in words]
        types = Counter(name for row in rows for name in row)
        kept = [
            {name: value for name, value in row.items() if name.startswith("Form:") or types[name] >= floor}
            | ({"Separator": 1.0} if "Separator" in row else {})
            for row in rows
        ]
        signatures = group_equal_rows(FeatureTable.from_rows(kept))
        weights = np.array([ends, *(counts[word] for word in words[1:])], dtype=np.float64)
        masses = np.bincount(signatures.class_of, weights=weights, minlength=signatures.num_classes)
        signature_of = dict(zip(words, signatures.class_of.tolist(), strict=True))
        return cls(
            signatures.features.names, sparse(signatures.features), signature_of,
            torch.from_numpy(np.log(masses / masses.sum())),
        )


def rows_of(words: Iterable[str], names: Mapping[str, int], forms: frozenset[str]) -> Tensor:
    """Φ of any words, by the features that a tagger knows: (n, F) sparse. `forms`: the words with one of their own."""
    indices, values, offsets = list[int](), list[float](), [0]
    for word in words:
        row = {names[name]: value for name, value in word_features(word, word in forms).items() if name in names}
        indices += row.keys()
        values += row.values()
        offsets.append(len(indices))
    places = torch.tensor([np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)).tolist(), indices])
    shape = (len(offsets) - 1, len(names))
    return torch.sparse_coo_tensor(places.view(2, -1), torch.tensor(values).double(), shape, check_invariants=False)


def sparse(table: FeatureTable) -> Tensor:
    """A table as a sparse matrix (rows, F) of float64."""
    rows = np.repeat(np.arange(table.num_rows), np.diff(table.offsets))
    places = torch.from_numpy(np.stack([rows, table.indices]))
    values = torch.from_numpy(table.values.astype(np.float64))
    shape = (table.num_rows, table.num_features)
    return torch.sparse_coo_tensor(places, values, shape, is_coalesced=True, check_invariants=False)
