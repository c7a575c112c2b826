"""Slow, obvious versions of the mathematics, by enumeration: what the fast ones must equal."""

import math
from collections.abc import Sequence
from functools import cached_property

import torch
from sparse_masses import sparse_masses
from torch import Tensor

from fairseq_llrnn.backgrounds.background import Background, View
from fairseq_llrnn.backgrounds.class_weights import ClassWeights


def log_linear_by_hand(
    adaptor: Sequence[float], rows: Sequence[dict[int, float]], weights: Sequence[float]
) -> list[float]:
    """p(x) ∝ b(x) exp(aᵀφ(x)), word by word in plain Python floats."""
    scores = [b * math.exp(sum(adaptor[f] * v for f, v in row.items())) for row, b in zip(rows, weights, strict=True)]
    total = math.fsum(scores)
    return [s / total for s in scores]


def plain_log_probs(hidden: Tensor, weight: Tensor, bias: Tensor, phi: Tensor, log_weights: Tensor) -> Tensor:
    """log p(x | K) for every word by the definition: (N, V).

    Args:
        hidden: (N, H). weight: (F, H). bias: (F,). phi: dense (V, F). log_weights: log b, (N, V) or (1, V).
    """
    return ((hidden @ weight.T + bias) @ phi.T + log_weights).log_softmax(dim=-1)


class HashBackground(Background):
    """A background that depends on the last two tokens; only the slow defaults of the contract answer for it.

    Weights come from a fixed random table, so that any mistake in advancing or reordering states shows.
    """

    def __init__(self, class_of: Tensor, num_classes: int, seed: int = 0) -> None:
        super().__init__(class_of, num_classes)
        generator = torch.Generator().manual_seed(seed)
        table = torch.randn((7, class_of.numel()), generator=generator, dtype=torch.float64)
        table[:, 1] = float("-inf")  # one forbidden word
        table[3, 3] = float("-inf")  # and one that only some contexts forbid
        self.register_buffer("table", table, persistent=False)

    def start(self, n: int) -> Tensor:
        return self.class_of.new_zeros((n, 2))

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return torch.stack([state[:, 1], tokens + 1], dim=1)

    def log_weights(self, state: Tensor) -> Tensor:
        return self.table[(3 * state[:, 0] + 5 * state[:, 1]) % 7]


class SparseHashView(View):
    """Masses as corrections, found from the dense ones; every second entry comes in two parts."""

    @cached_property
    def class_mass(self) -> ClassWeights:
        mass = super().class_mass.dense()
        shared = mass.new_zeros(1, self.num_classes)
        constant = mass[:, -1]
        different = mass - shared - constant.unsqueeze(1)
        rows, classes = (~torch.isneginf(different)).nonzero(as_tuple=True)
        added = different[rows, classes]
        halves = added / 2
        return sparse_masses(
            shared, torch.cat([rows, rows[::2]]), torch.cat([classes, classes[::2]]),
            torch.cat([torch.where(torch.arange(len(added)) % 2 == 0, halves, added), halves[::2]]),
            torch.isneginf(mass).any(1), constant,
        )  # fmt: skip


class SparseHashBackground(HashBackground):
    """The same background with sparse masses."""

    view_type: type[View] = SparseHashView

    def view(self, states: Tensor, hidden: Tensor | None = None, remaining: int | None = None) -> View:
        return self.view_type(self, states, hidden, remaining)
