"""Train one row of the tables: the same sentences in the same order for all, no dropout; Adagrad, or Adam for LSTMs.

Words that training lacks are read as <unk>, and are no targets: their probability is the background's.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from tree_models import OUTPUTS, Network, Output, World
from tree_texts import Text

from fairseq_llrnn import Prior
from fairseq_llrnn.errors import OptionError

TARGETS = 512  # of a batch
POINTS = 10  # of the curve, in an epoch
ADAGRAD_RATE = 0.05  # of log-bilinear models; tuned (docs/results/trees-and-classification.md)
ADAM_RATE = 0.003  # of LSTMs, not tuned: that of docs/results/small-texts.md
NETWORKS = ("lbl", "lstm")


def log_probs(network: Network, output: Output, text: Text, batch: Sequence[int]) -> Tensor:
    """Return log p of the targets of a batch that are known words: (N,)."""
    previous, targets = text.padded(batch)
    real = targets.ne(text.pad) & targets.ne(text.unk)
    return output.log_probs(network(previous)[real], targets[real])


@torch.inference_mode()
def perplexity(network: Network, output: Output, text: Text, every: int = 1) -> float:
    """Return the perplexity per known word and sentence end, of every `every`-th batch."""
    network.eval(), output.eval()
    nats, words = 0.0, 0
    for batch in text.batches(4 * TARGETS)[::every]:
        found = log_probs(network, output, text, batch)
        nats, words = nats - found.double().sum().item(), words + len(found)
    return math.exp(nats / words)


def world(out: Path, prior: Prior, seed: int) -> World:
    def embeddings() -> Tensor:
        path = out / "models" / f"lbl-adaptive-{seed}.pt"
        if not path.exists():
            raise OptionError(f"{path}: expected a trained model with the adaptive softmax, found none; train it first")
        found: Tensor = torch.load(path, weights_only=True)
        return found

    return World(prior, len(prior.symbols), embeddings, seed)


@dataclass(frozen=True)
class Training:
    """One model."""

    row: str
    network: str = "lbl"
    seed: int = 1
    epochs: int = 1
    part: float = 1.0  # of each epoch's batches
    given_rate: float | None = None  # None: the network's

    @property
    def rate(self) -> float:
        if self.given_rate is not None:
            return self.given_rate
        return ADAM_RATE if self.network == "lstm" else ADAGRAD_RATE

    def optimizers(self, network: Network, output: Output) -> list[torch.optim.Optimizer]:
        if self.network != "lstm":
            output.begin_sparse_gradients()
            return [torch.optim.Adagrad([*network.parameters(), *output.parameters()], lr=self.rate)]
        dense = [*network.body.parameters(), *output.parameters()]
        sparse = list(network.embedding.parameters())
        return [torch.optim.Adam(dense, lr=self.rate), torch.optim.SparseAdam(sparse, lr=self.rate)]

    @property
    def name(self) -> str:
        rate = "" if self.given_rate is None else f"-{self.given_rate:g}"
        return f"{self.network}-{self.row}{rate}-{self.seed}"


@dataclass
class Spent:
    """Seconds of this process, without evaluation."""

    seconds: float = 0.0
    tree_seconds: float = 0.0  # of these, for changes of a learned tree
    moved: int = 0  # words, in all changes
    updates: int = 0
    targets: int = 0


def check_same(training: Training, place: Path) -> None:
    found = json.loads(place.read_text(encoding="utf-8"))
    for name in ("epochs", "part"):  # which the model's name does not tell
        if found[name] != getattr(training, name):
            raise OptionError(
                f"{place}: expected results of --{name} {getattr(training, name):g}, found those of --{name} "
                f"{found[name]:g}; use another --out, after `prepare`"
            )


def train(training: Training, out: Path) -> None:
    """Train and measure one model, with points of the curve in between. Skip a finished model.

    Raises OptionError if it is finished with another number of epochs, or another part of them.
    """
    place = out / "models" / f"{training.name}.json"
    if place.exists():
        check_same(training, place)
        print(f"{training.name}: finished")
        return
    prior = Prior.load(out / "prior")
    texts = {split: Text.read(out / f"{split}.txt", prior) for split in ("train", "valid", "test")}
    torch.manual_seed(training.seed)
    network = Network(len(prior.symbols), training.network)
    output = OUTPUTS[training.row](world(out, prior, training.seed))
    optimizers = training.optimizers(network, output)
    curve: list[dict[str, float]] = []
    spent = Spent()
    for epoch in range(training.epochs):
        batches = texts["train"].batches(TARGETS, training.seed * 1000 + epoch)
        batches = batches[: round(training.part * len(batches))]
        points = {round(len(batches) * k / POINTS) for k in range(1, POINTS + 1)}
        for done, batch in enumerate(batches, start=1):
            update(network, output, optimizers, texts["train"], batch, done, len(batches), spent)
            if done in points:
                valid = perplexity(network, output, texts["valid"], every=4)
                point = {"epoch": epoch + training.part * done / len(batches), "valid": valid, "seconds": spent.seconds}
                curve.append(point)
                print("{}: epoch {epoch:.1f}, validation {valid:.2f}, {seconds:.0f} s".format(training.name, **point))
    parameters = sum(p.numel() for p in (*network.parameters(), *output.parameters()))
    facts = {**asdict(training), **asdict(spent), "rate": training.rate, "words": len(prior.symbols)}
    facts |= {"parameters": parameters, "curve": curve}
    facts |= {split: perplexity(network, output, texts[split]) for split in ("valid", "test")}
    place.parent.mkdir(parents=True, exist_ok=True)
    if training.row == "adaptive":
        torch.save(network.embedding.weight.data, place.with_suffix(".pt"))
    write_json(place, facts)
    print(f"{training.name}: validation {facts['valid']:.2f}, test {facts['test']:.2f}")


def update(
    network: Network,
    output: Output,
    optimizers: Sequence[torch.optim.Optimizer],
    text: Text,
    batch: Sequence[int],
    done: int,
    updates: int,
    spent: Spent,
) -> None:
    """Run update number `done` of so many in the epoch."""
    begun = time.process_time()
    network.train(), output.train()
    for optimizer in optimizers:
        optimizer.zero_grad()
    found = log_probs(network, output, text, batch)
    (-found.mean()).backward()
    for optimizer in optimizers:
        optimizer.step()
    ended = time.process_time()
    spent.moved += output.updated(done, updates)
    spent.tree_seconds += time.process_time() - ended
    spent.seconds += time.process_time() - begun
    spent.updates += 1
    spent.targets += len(found)


def write_json(path: Path, facts: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, path)
