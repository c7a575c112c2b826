"""A background whose temperature the network chooses: it alone learns where b is to be trusted.

Sizes: N positions, S signatures, E entries of masses, H hidden width. What a history K says of a signature is
r_K(σ) = log B_K(σ)/B₀(σ) less the factor that it gives all words of which it says nothing in particular (`constant` in
backgrounds/class_weights.py), where B are masses and B₀ those of the static weights. The masses become

    B(σ)  ∝  B₀(σ) exp(τ(K, σ) r_K(σ)),      τ(K, σ) = 1 + wᵀh + c + v_σ      (1/τ: temperature; w, c, v begin at zero)

and the shares of words inside a signature stay as they are: no network could change them. As a log-linear
model, r is one feature more, and τ − 1 its weight; but it counts as part of the background: it is in no norm of the
adaptor. τ is not bound to be positive, but τ r is bounded
to LARGEST, whatever has been learned; what is forbidden stays so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, ClassWeights
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.output.class_source import Head, check_row_sources

LARGEST = 1e5  # nats


OPTION = "--learn-background-temperature"


def learned_temperature(head: Head) -> LearnedTemperature:
    """What a head is given: `LogLinearHead(prior, H, masses=learned_temperature)`.

    Raises:
        OptionError: a prior whose masses are no row with entries, or classes that change with the context.
    """
    if not head.background.bind().sparse or head.has_source_strings:
        raise OptionError(
            f"{OPTION}: expected a prior with n-grams or an automaton, and without evidence; build one with "
            "`llrnn prior --background ngram:…` or `automaton:…`, or leave the option out"
        )
    check_row_sources(head, OPTION)
    return LearnedTemperature(head.hidden_size, head.output.rows.num_rows)


class LearnedTemperature(nn.Module):
    """τ(K, σ), from the hidden state and the signature."""

    name = "temperature"

    def __init__(self, hidden_size: int, num_classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(hidden_size))
        self.bias = nn.Parameter(torch.zeros(()))
        self.of_class = nn.Parameter(torch.zeros(num_classes))

    def applied(self, class_weights: ClassWeights, hidden: Tensor) -> ClassWeights:
        """The masses of N positions, which have entries; hidden: (N, H)."""
        entries = class_weights.entries
        if entries is None:
            return class_weights
        precise = torch.promote_types(self.weight.dtype, torch.float32)
        of_position = 1.0 + hidden.to(precise) @ self.weight.to(precise) + self.bias.to(precise)  # shape: (N,)
        power = of_position[entries.rows] + self.of_class[entries.classes].to(precise)  # shape: (E,)
        forbidden = entries.added.isneginf()
        changed = (entries.added.masked_fill(forbidden, 0.0) * power).clamp(-LARGEST, LARGEST)
        return replace(class_weights, entries=replace(entries, added=changed.masked_fill(forbidden, NEGATIVE_INFINITY)))

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None:
        """Weights of no learned temperature begin as zeros, and change nothing."""
        for part, value in self.state_dict().items():
            state_dict.setdefault(f"{prefix}{self.name}.{part}", torch.zeros_like(value))
