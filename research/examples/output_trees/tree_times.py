"""Measure milliseconds per batch of each output. All take turns on the same batches, in one process.

The network is left out, as in Table 3.3 of Jernite 2018: hidden states come from an untrained one, and gradients stop
at them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from tree_models import OUTPUTS, WIDTH, Adaptive, Network, Output
from tree_texts import Text
from tree_training import TARGETS, world, write_json

from fairseq_llrnn import Prior

TRIED_CUTOFFS = ((1000, 6000), (500, 2500, 10000), (200, 1000, 5000, 20000), (1000, 5000, 20000), (2000, 10000))


def clocked(work: Callable[[], object]) -> float:
    """Return the processor milliseconds of this process."""
    begun = time.process_time()
    work()
    return 1000 * (time.process_time() - begun)


def update(output: Output, optimizer: torch.optim.Optimizer, hidden: Tensor, targets: Tensor) -> None:
    optimizer.zero_grad()
    (-output.log_probs(hidden, targets).mean()).backward()
    optimizer.step()
    output.updated(1, 10**9)


@torch.no_grad()
def score(output: Output, hidden: Tensor, targets: Tensor) -> Tensor:
    return output.log_probs(hidden, targets)


def measure(out: Path, named: dict[str, Output], batches: int) -> dict[str, dict[str, float]]:
    """Return milliseconds of each output alone, median over the same batches: `train` with its update, and `test`.

    All take turns at every batch, so that other load affects all of them.
    """
    prior = Prior.load(out / "prior")
    text = Text.read(out / "train.txt", prior)
    network = Network(len(prior.symbols), "lbl")
    for output in named.values():
        output.begin_sparse_gradients()
    optimizers = {name: torch.optim.Adagrad(output.parameters(), lr=0.01) for name, output in named.items()}
    found: dict[str, dict[str, list[float]]] = {name: {"train": [], "test": []} for name in named}
    for batch in text.batches(TARGETS, seed=0)[: batches + 2]:
        previous, targets = text.padded(batch)
        real = targets.ne(text.pad)
        hidden, targets = network(previous)[real].detach().requires_grad_(), targets[real]
        for name, output in named.items():
            output.train()
            found[name]["train"].append(clocked(partial(update, output, optimizers[name], hidden, targets)))
            output.eval()
            found[name]["test"].append(clocked(partial(score, output, hidden, targets)))
    # the first two batches warm up
    return {name: {what: statistics.median(ms[2:]) for what, ms in of.items()} for name, of in found.items()}


def time_rows(out: Path, rows: Sequence[str], batches: int) -> None:
    prior = Prior.load(out / "prior")
    made = {row: OUTPUTS[row](world(out, prior, 1)) for row in rows}
    for row, ms in measure(out, made, batches).items():
        write_json(out / "times" / f"{row}.json", ms)
        print(f"{row}: train {ms['train']:.1f} ms, test {ms['test']:.1f} ms", flush=True)


def time_cutoffs(out: Path, batches: int) -> None:
    words = len(Prior.load(out / "prior").symbols)
    made: dict[str, Output] = {str(cutoffs): Adaptive(words, WIDTH, cutoffs) for cutoffs in TRIED_CUTOFFS}
    for name, ms in measure(out, made, batches).items():
        print(f"{name}: train {ms['train']:.1f} ms, test {ms['test']:.1f} ms", flush=True)
