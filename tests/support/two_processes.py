"""One of several processes that train together, as fairseq-train would, and alone what all of them read.

    two_processes COMMAND-LINES.json

The file maps names to command lines of fairseq-train. Each is trained for two updates: with a batch of every update in
each process, joined by fairseq's own class and by torch's, and in this process alone with all of their batches in every
update. Weights, and what validation says, have to be the same. A line of JSON says so of each and of either class: the
largest difference of the weights between processes, that from the one alone, and both validations.
"""

from __future__ import annotations

import copy
import json
import os
import pickle
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from fairseq.data.iterators import GroupedIterator
from fairseq.logging import metrics
from fairseq.models import distributed_fairseq_model
from fairseq.trainer import Trainer
from tiny_world import build
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

BACKENDS = ("legacy_ddp", "pytorch_ddp")
UPDATES = 2  # torch's class misses parameters that a batch does not use when the next one begins
Weights = dict[str, torch.Tensor]


def trained(arguments: list[str], size: int, halves: int, backend: str) -> tuple[Weights, dict[str, float]]:
    """The weights after a few updates, and the validation after them.

    Args:
        size: processes that train together; 1: this one alone. halves: batches of an update in each of them.
    """
    setting = build(arguments)
    cfg = copy.deepcopy(setting.cfg)
    cfg.distributed_training.distributed_world_size = size
    cfg.distributed_training.distributed_rank = distributed.get_rank() if size > 1 else 0
    cfg.distributed_training.ddp_backend = backend
    trainer = Trainer(cfg, setting.task, setting.model, setting.criterion)
    if halves > 1:
        seed_each_half(trainer)
    epoch = trainer.get_train_iterator(1)
    pickle.dumps(epoch.dataset)  # as a worker that is spawned gets it
    batches = GroupedIterator(epoch.next_epoch_itr(shuffle=True), halves)
    metrics.reset()
    with metrics.aggregate("train"):
        for _ in range(UPDATES):
            assert trainer.train_step(next(batches)) is not None
    setting.task.load_dataset("valid")
    validation = trainer.get_valid_iterator("valid").next_epoch_itr(shuffle=False)
    with metrics.aggregate(new_root=True) as found:
        for sample in validation:
            trainer.valid_step(sample)
    said = {name: value for name, value in found.get_smoothed_values().items() if name not in ("wps", "wpb", "bsz")}
    return setting.model.state_dict(), said


def difference_between_processes(weights: Weights) -> float:
    """The largest of any process from the first; all have to call it. What each counts by itself is left out."""
    largest = torch.zeros(())
    for name, own in weights.items():
        if ".learner." not in name:
            of_first = own.clone()
            distributed.broadcast(of_first, 0)
            largest = torch.maximum(largest, (own - of_first).abs().max().float())
    distributed.all_reduce(largest, distributed.ReduceOp.MAX)
    return largest.item()


def seed_each_half(trainer: Trainer) -> None:
    """Every process draws from a seed of the update; who trains alone has to draw so for each of its batches."""
    step = trainer.task.train_step

    def seeded(*args: Any, **options: Any) -> Any:
        trainer._set_seed()
        return step(*args, **options)

    trainer.task.train_step = seeded


def on_the_cpu(*args: Any, device_ids: Any, output_device: Any, **options: Any) -> DistributedDataParallel:
    """torch's class takes no devices for a model on the CPU, and fairseq always names some."""
    return DistributedDataParallel(*args, **options)


def main() -> None:
    lines = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    distributed.init_process_group("gloo", init_method="env://")
    distributed_fairseq_model.DistributedDataParallel = on_the_cpu
    size, first = distributed.get_world_size(), distributed.get_rank() == 0
    for name, arguments in lines.items():
        together = {backend: trained(arguments, size, 1, backend) for backend in BACKENDS}
        between = {backend: difference_between_processes(weights) for backend, (weights, _) in together.items()}
        learner = "llrnn_research.output_trees.learner"  # for it, there are no others
        with mock.patch(f"{learner}._rank", lambda: None) if learner in sys.modules else nullcontext():
            alone, expected = trained(arguments, 1, size, BACKENDS[0]) if first else ({}, {})
        for backend, (weights, said) in together.items() if first else ():
            apart = max((found - alone[key]).abs().max().item() for key, found in weights.items())
            found = {"name": name, "backend": backend, "between": between[backend], "apart": apart}
            print(json.dumps(found | {"said": said, "alone": expected}))
        sys.stdout.flush()
    distributed.barrier()
    os._exit(0)  # torch's own end of a group takes a second


if __name__ == "__main__":
    main()
