#!/usr/bin/env python3
"""Compare sampled and exact training with very many signatures: every word has its own real-valued features.

    python scripts/bench_sampled_training.py [--quick] [--threads 1] [--samples 1000 5000]

Sizes: V words (as many signatures), F features, A features of each word, C contexts, H hidden, N positions of a batch.

The language is synthetic: every word has A of F real-valued features, the background is Zipf's, and p(x | context) ∝
b(x) exp(aᵀφ(x)) with a random a for each of C contexts. The trained parameters are a vector h (H) for each context, and
the output layer. Targets are sampled from the language, the same for all contestants. Every contestant has the same
processor time, independent of other load. The exact loss (nats, over all V words) is measured at the end, and after as
many steps as exact training made. "optimum" is the language's own loss on the same held-out targets, "background" that
of b, from which training starts.

The last line is one JSON object: the speed of each sample size over exact training (steps per second), and the exact
loss of each after the same time, in nats above the optimum. `same_steps` is after as many steps as the exact one made.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # if the package is not installed

from measuring import add_threads_option, clock

from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.normalisers import ExactRows, LogLinearOutput
from fairseq_llrnn.output.sampled import ClassSampler, SampledOutput

V, F, A, C, H, N = 100_000, 300, 20, 200, 64, 512
HELD_OUT, BATCHES = 1000, 256
RATE, STRENGTH = 0.01, 1.5
SECONDS, QUICK_SECONDS = 60.0, 6.0


class Language:
    """Words with features, a background, and contexts with different distributions over them."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        # A different features: one of each stretch of F / A
        indices = rng.integers(F // A, size=(V, A)) + np.arange(A) * (F // A)
        values = rng.standard_normal(V * A).astype(np.float32)
        names = tuple(f"Vector:{i}" for i in range(F))
        self.features = FeatureTable(names, np.arange(V + 1) * A, indices.ravel().astype(np.int64), values)
        weights = 1.0 / np.arange(1, V + 1)
        self.log_background = torch.from_numpy(np.log(weights / weights.sum())).float()
        generator = torch.Generator().manual_seed(2)
        phi = LogLinearOutput(self.features, torch.arange(V), 1).rows
        adaptors = torch.randn(F, C, generator=generator) * (STRENGTH / A**0.5)
        scores = phi.compose(adaptors).T + self.log_background  # shape: (C, V)
        self.log_probs = scores.log_softmax(1)
        self.generator = generator

    def draw(self, many: int) -> tuple[Tensor, Tensor]:
        """Sample contexts and targets: (many,) each."""
        contexts = torch.randint(C, (many,), generator=self.generator)
        targets = torch.empty_like(contexts)
        for context, log_probs in enumerate(self.log_probs):
            places = (contexts == context).nonzero().squeeze(1)
            if len(places):
                targets[places] = torch.multinomial(log_probs.exp(), len(places), True, generator=self.generator)
        return contexts, targets


@dataclass
class Batches:
    """The batches of all contestants, in this order, repeated."""

    contexts: Tensor  # (batches, N)
    targets: Tensor


class Contestant:
    """A model that trains with samples of so many classes (0: with all of them)."""

    def __init__(self, language: Language, samples: int) -> None:
        torch.manual_seed(3)
        self.name = f"{samples:,} classes sampled" if samples else "exact"
        self.log_mass = language.log_background.unsqueeze(0)
        self.hidden = nn.Embedding(C, H)
        nn.init.normal_(self.hidden.weight, std=0.1)  # at first, p is the background
        self.output = LogLinearOutput(language.features, torch.arange(V), H, initial_scale=None)
        self.sampler = ClassSampler(language.log_background, samples) if samples else None
        parameters = [*self.hidden.parameters(), *self.output.parameters()]
        self.optimiser = torch.optim.Adam(parameters, lr=RATE)
        self.steps, self.seconds = 0, 0.0

    def log_prob(self, contexts: Tensor, targets: Tensor, sampled: bool) -> Tensor:
        hidden, share = self.hidden(contexts), torch.zeros(len(targets))
        if sampled and self.sampler is not None:
            drawn = SampledOutput(self.output, self.sampler.draw())
            return drawn.log_prob(hidden, targets, self.log_mass, share)
        return ExactRows(self.output).log_prob(hidden, targets, self.log_mass, share)

    def train(self, batches: Batches, seconds: float, most_steps: int | None = None) -> None:
        """Train until `seconds` of training in total, or so many steps."""
        while self.seconds < seconds and (most_steps is None or self.steps < most_steps):
            begin = clock()
            which = self.steps % len(batches.contexts)
            loss = -self.log_prob(batches.contexts[which], batches.targets[which], sampled=True).mean()
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            self.optimiser.step()
            self.steps += 1
            self.seconds += clock() - begin

    @torch.no_grad()
    def exact_loss(self, contexts: Tensor, targets: Tensor) -> float:
        return float(-self.log_prob(contexts, targets, sampled=False).mean())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SECONDS:g} seconds for each, not {SECONDS:g}")
    add_threads_option(parser)
    parser.add_argument("--samples", type=int, nargs="+", default=[1000, 5000])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    seconds = QUICK_SECONDS if args.quick else SECONDS
    language = Language()
    contexts, targets = language.draw(BATCHES * N)
    batches = Batches(contexts.view(-1, N), targets.view(-1, N))
    held_out = language.draw(HELD_OUT)
    optimum = float(-language.log_probs[held_out].mean())
    background = float(-language.log_background[held_out[1]].mean())
    print(f"{V:,} signatures, {F} features, H = {H}, N = {N}, {args.threads} threads")
    print(f"optimum {optimum:.3f} nats, background {background:.3f}")
    exact = Contestant(language, 0)
    exact.train(batches, seconds)
    above = exact.exact_loss(*held_out) - optimum
    rate = exact.steps / exact.seconds
    print(f"{exact.name:>24}: {rate:8.2f} steps/s, {exact.steps:5} steps, {above:.3f} nats above the optimum")
    figures: dict[str, dict[str, float]] = {"speed": {}, "loss": {"exact": above}, "same_steps": {"exact": above}}
    for samples in args.samples:
        one = Contestant(language, samples)
        one.train(batches, seconds, exact.steps)
        same = one.exact_loss(*held_out) - optimum
        one.train(batches, seconds)
        above = one.exact_loss(*held_out) - optimum
        faster = one.steps / one.seconds / rate
        print(
            f"{one.name:>24}: {rate * faster:8.2f} steps/s ({faster:.1f} times), {one.steps:5} steps, {above:.3f} nats "
            f"above the optimum, {same:.3f} after {exact.steps} steps"
        )
        figures["speed"][str(samples)] = faster
        figures["loss"][str(samples)], figures["same_steps"][str(samples)] = above, same
    print(json.dumps({name: {k: round(v, 4) for k, v in of.items()} for name, of in figures.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
