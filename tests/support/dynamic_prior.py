"""Priors for tests of search: one whose background looks at the last word, and ones with a handful of words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

import torch
from tiny_world import Setting, World, evaluated
from torch import Tensor

from fairseq_llrnn.backgrounds.background import Background
from fairseq_llrnn.prior.prior import Prior

LINES = ["le chat voit la mer", "une pomme verte tient bien", "le roi", "la tour froide rend un petit pont"]


class AfterLastWord(Background):
    """b(K, x) depends on the last word: a table of log weights (V, V), and nothing but the slow defaults."""

    table: Tensor

    def __init__(self, class_of: Tensor, num_classes: int, table: Tensor, start: int) -> None:
        super().__init__(class_of, num_classes)
        self.register_buffer("table", table, persistent=False)
        self.first = start

    def start(self, n: int) -> Tensor:
        return self.class_of.new_full((n,), self.first)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return tokens

    def log_weights(self, state: Tensor) -> Tensor:
        return self.table[state]


class PriorAfterLastWord(Prior):
    """A prior whose background looks at the last word; some words forbid some others."""

    def background(self, has_source: bool = True) -> Background:
        generator = torch.Generator().manual_seed(3)
        size = len(self.symbols)
        table = torch.randn(size, size, generator=generator) * 2
        forbidden = torch.rand(size, size, generator=generator) < 0.2
        forbidden |= torch.isneginf(torch.from_numpy(self.log_weights))
        forbidden[:, self.symbols.index("</s>")] = False
        return AfterLastWord(
            torch.from_numpy(self.output.class_of.copy()),
            self.output.num_classes,
            table.masked_fill(forbidden, float("-inf")),
            self.symbols.index("</s>"),
        )


def dynamic(prior: Prior) -> PriorAfterLastWord:
    return PriorAfterLastWord(**{f.name: getattr(prior, f.name) for f in fields(Prior)})


def make(world: World, *options: str, prior: str = "prior", background: str = "static", seed: int = 7) -> Setting:
    loaded = Prior.load(world.prior(prior))
    loaded = dynamic(loaded) if background == "dynamic" else loaded
    return evaluated([*world.train_args(prior), *options], loaded, seed=seed)


def few_words(prior: Prior, words: Sequence[str]) -> Prior:
    """The prior with mass on `words` and the end of sentence only."""
    log_weights = prior.log_weights.copy()
    for i, symbol in enumerate(prior.symbols):
        if symbol not in (*words, "</s>"):
            log_weights[i] = -math.inf
    kept = {f.name: getattr(prior, f.name) for f in fields(Prior)}
    return type(prior)(**{**kept, "log_weights": log_weights})


def by_definition(setting: Setting, prefix: list[int], temperature: float = 1.0) -> Tensor:
    """log p(· | prefix) over all V words: a = W h + c, then log b + aᵀφ / temperature, normalised. (V,) float64."""
    decoder, prior = setting.model.decoder, setting.task.prior
    with torch.no_grad():
        previous = torch.tensor([[setting.task.dictionary.eos(), *prefix]])
        hidden, _ = decoder(previous)
        adaptor = (decoder.head.output.weight @ hidden[0, -1] + decoder.head.output.bias).double()
        phi = torch.from_numpy(prior.output.features.dense()[prior.output.class_of]).double()
        background = decoder.head.background.bind()
        state = background.start(1)
        for token in prefix:
            state = background.advance(state, torch.tensor([token]))
        log_b = background.view(state).log_weights[0].double()
        return torch.log_softmax(phi @ adaptor / temperature + log_b, dim=0)
