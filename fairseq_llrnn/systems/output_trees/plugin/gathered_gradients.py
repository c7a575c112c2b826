"""Adding up sparse gradients of several processes that train together, where fairseq's legacy_ddp adds up dense ones.

Each process sends the rows that its batch has changed, and gets those of all others. All add them up in the same order,
so that their weights remain the same.

Sizes: F rows of a parameter, K of them with a gradient in a process, H their width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from fairseq.distributed import utils
from torch import Tensor

NONE, SPARSE, DENSE = 0, 1, 2


def reduce_gradients(weights: Sequence[Tensor], group: Any, reduce_dense: Callable[[], None]) -> None:
    """Put the mean over all processes in the place of each gradient.

    A gradient that is sparse in one process and none in another remains sparse; where another has a dense one, it
    becomes dense.

    Args:
        group: of the processes. reduce_dense: does so for all weights that require a gradient, whose own is dense.
    """
    kinds = _kinds(weights, group)
    sparse = [weight for weight, kind in zip(weights, kinds, strict=True) if kind == SPARSE]
    for weight, kind in zip(weights, kinds, strict=True):
        if kind == DENSE and weight.grad is not None and weight.grad.is_sparse:
            weight.grad = weight.grad.to_dense()
    for weight in sparse:
        weight.requires_grad_(False)
    try:
        reduce_dense()
    finally:
        for weight in sparse:
            weight.requires_grad_(True)
    for weight in sparse:
        weight.grad = _mean(weight, group)


def _kinds(weights: Sequence[Tensor], group: Any) -> list[int]:
    """For each weight the largest kind that its gradient has in any process."""
    of_process = [NONE if weight.grad is None else SPARSE if weight.grad.is_sparse else DENSE for weight in weights]
    kinds: list[int] = utils.all_reduce(torch.tensor(of_process, device=weights[0].device), group, "max").tolist()
    return kinds


def _mean(weight: Tensor, group: Any) -> Tensor:
    """Of the sparse gradients of all processes: a sparse tensor (F, H) with each row once."""
    rows, values = torch.empty(0, dtype=torch.int64, device=weight.device), weight.new_empty((0, *weight.shape[1:]))
    if weight.grad is not None:
        gradient = weight.grad.coalesce()
        # where batches run out, fairseq gives a process one of another again, and multiplies its gradients by 0
        some = gradient.values().flatten(1).any(1)
        rows, values = gradient.indices()[0, some], gradient.values()[some]
    many = [int(each) for each in utils.all_gather(rows.new_tensor([len(rows)]), group)]
    gathered = torch.cat(_gathered(rows, many, group)), torch.cat(_gathered(values, many, group))
    return torch.sparse_coo_tensor(
        gathered[0].unsqueeze(0), gathered[1] / len(many), weight.shape, check_invariants=False
    ).coalesce()


def _gathered(tensor: Tensor, many: Sequence[int], group: Any) -> list[Tensor]:
    """The tensors (K, …) of all processes, of so many rows: what is sent has as many in all."""
    filled = tensor.new_zeros((max(many), *tensor.shape[1:]))
    filled[: len(tensor)] = tensor
    return [each[:k] for each, k in zip(utils.all_gather(filled, group), many, strict=True)]
