"""Small rows of features, for tests of their products."""

import torch
from torch import Tensor

from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.feature_weights import SparseRows

ROWS: list[dict[str, float]] = [
    {"a": 1.0}, {}, {"a": 0.5, "b": -2.0}, {"c": 3.0}, {"b": 1.0, "c": -1.0, "d": 0.25}, {"d": 2.0}, {"a": 1, "d": 1},
]  # fmt: skip
WIDTH = 3


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def seeded_rows() -> SparseRows:
    torch.manual_seed(2)
    return SparseRows(FeatureTable.from_rows(ROWS))
