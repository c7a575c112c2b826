"""Masses of rows that share one row and have entries, from the tensors that they are made of."""

from __future__ import annotations

from torch import Tensor

from fairseq_llrnn.backgrounds.class_weights import ClassWeights, SparseUpdates


def sparse_masses(
    shared: Tensor, rows: Tensor, classes: Tensor, added: Tensor, only: Tensor | None, constant: Tensor
) -> ClassWeights:
    return ClassWeights(shared, len(constant), SparseUpdates(rows, classes, added, only, constant))
