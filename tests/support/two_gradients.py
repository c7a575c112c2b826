"""One of two processes that add up gradients, some of them sparse. The first prints a line of JSON for each weight.

It says the rows of what was found, if it is sparse, and whether it is the mean of the gradients as dense tensors.
"""

import json
import os

import torch
from torch import Tensor, distributed, nn

from llrnn_research.output_trees.plugin.sparse_gradients import reduce_gradients

SHAPE = (5, 2)


def some(rows: list[int], value: float) -> Tensor:
    values = torch.full((len(rows), SHAPE[1]), value)
    return torch.sparse_coo_tensor(torch.tensor([rows], dtype=torch.int64), values, SHAPE, check_invariants=True)


def gradients(rank: int) -> list[Tensor | None]:
    cases: list[tuple[Tensor | None, Tensor | None]] = [
        (some([1, 3], 1.0), some([3, 3, 4], 2.0)),
        (some([4], 1.0), some([], 1.0)),
        (some([1, 2], 0.0), some([0], 2.0)),
        (None, some([0], 2.0)),
        (some([2, 2], 2.0), torch.ones(SHAPE)),
        (torch.ones(SHAPE), torch.ones(SHAPE)),
    ]
    return [case[rank] for case in cases]


def main() -> None:
    distributed.init_process_group("gloo", init_method="env://")
    group, rank = distributed.new_group(), distributed.get_rank()
    weights = [nn.Parameter(torch.zeros(SHAPE)) for _ in gradients(0)]

    def reduce_dense() -> None:
        for weight in weights:
            if weight.requires_grad:
                assert weight.grad is not None
                distributed.all_reduce(weight.grad)
                weight.grad /= 2

    for weight, grad in zip(weights, gradients(rank), strict=True):
        weight.grad = grad
    reduce_gradients(weights, group, reduce_dense)
    for weight, *both in zip(weights, gradients(0), gradients(1), strict=True) if rank == 0 else ():
        assert weight.grad is not None and weight.requires_grad
        expected = sum((each.to_dense() for each in both if each is not None), torch.zeros(SHAPE)) / 2
        same = torch.equal(weight.grad.to_dense(), expected)
        rows = weight.grad.indices()[0].tolist() if weight.grad.is_sparse else None
        print(json.dumps({"rows": rows, "same": same}), flush=True)
    distributed.barrier()
    os._exit(0)  # torch's own end of a group takes a second


if __name__ == "__main__":
    main()
