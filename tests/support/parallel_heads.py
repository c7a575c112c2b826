"""One of two processes that train a head together, by torch's DDP or FSDP2 on a CPU, and alone.

    parallel_heads PRIOR ddp|fsdp STORE RANK

STORE is a file by which the two processes find each other.

A line of JSON has the largest difference between its weights and those of a head that has seen both batches.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.nn.parallel import DistributedDataParallel

from fairseq_llrnn.head import FeatureInput, LogLinearHead
from fairseq_llrnn.prior.prior import Prior

H = 8


class Model(nn.Module):
    """Reads and writes words by a tied head; its forward pass is the head's."""

    def __init__(self, prior: Prior) -> None:
        super().__init__()
        self.linear = nn.Linear(H, H)
        self.head = LogLinearHead(prior, H, embedding=FeatureInput(H, tied=True))

    def forward(self, targets: Tensor) -> Tensor:
        loss: Tensor = self.head(self.linear(self.head.embed(self.head.previous(targets))), targets)
        return loss


def trained(model: nn.Module, batches: list[list[Tensor]]) -> None:
    """Steps of plain SGD, each with the mean loss of several batches."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for parts in batches:
        optimizer.zero_grad()
        torch.stack([model(targets) for targets in parts]).mean().backward()
        optimizer.step()


def main(prior: str, how: str, store: str, rank: int, size: int = 2) -> None:
    distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=size, timeout=timedelta(seconds=60)
    )
    torch.manual_seed(1)
    alone = Model(Prior.load(Path(prior))).double()
    together = Model(alone.head.prior).double()
    together.load_state_dict(alone.state_dict())
    words = alone.head.num_words
    batches = [[torch.randint(4, words, (3, 4)) for _ in range(size)] for _ in range(4)]
    wrapped: nn.Module = together
    if how == "ddp":
        wrapped = DistributedDataParallel(together)
    else:
        mesh = init_device_mesh("cpu", (size,))
        fully_shard(together.head, mesh=mesh)
        register_fsdp_forward_method(together.head, "embed")
        fully_shard(together, mesh=mesh)
        together.head.to_empty(device="cpu")
        for head in (alone.head, together.head):
            torch.manual_seed(2)
            head.reset_parameters()
    trained(alone, batches)
    trained(wrapped, [[parts[rank]] for parts in batches])
    apart = 0.0
    for one, other in zip(together.parameters(), alone.parameters(), strict=True):
        whole = one.full_tensor() if hasattr(one, "full_tensor") else one
        apart = max(apart, float((whole - other).detach().abs().max()))
    print(
        json.dumps({"rank": rank, "apart": apart, "kinds": sorted({type(p).__name__ for p in together.parameters()})})
    )
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
