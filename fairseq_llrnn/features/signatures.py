"""Words with equal feature rows form one class, a *signature*.

Sizes: V words, S signatures, F features. The exponential exp(aᵀφ(x)) cannot tell members of a class apart, so with
B(σ) = Σ_{x∈σ} b(x)

    p(x) = p(σ(x)) · b(x) / B(σ(x)),        p(σ) ∝ B(σ) · exp(aᵀ φ(σ))

exactly: the sum over V words is a sum over S signatures (docs/design.md derives it).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.features.feature_table import FeatureTable


@dataclass(frozen=True)
class Signatures:
    """The classes of equal feature rows."""

    class_of: np.ndarray  # (V,) int64, the signature of each word
    features: FeatureTable  # S rows: φ(σ)

    @property
    def num_words(self) -> int:
        return len(self.class_of)

    @property
    def num_classes(self) -> int:
        return self.features.num_rows

    def features_of(self, word: int) -> dict[str, float]:
        """φ(x) by name."""
        return self.features.row(int(self.class_of[word]))

    def members(self, signature: int) -> np.ndarray:
        """Indices of the words of a class, rising."""
        return np.flatnonzero(self.class_of == signature)


def group_equal_rows(table: FeatureTable) -> Signatures:
    """Classes of equal rows, numbered by their first word: the same table always gives the same numbers."""
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
