"""A learned temperature of the background: the network learns when to trust b.

Sizes: N positions, S signatures, E entries of class weights, H hidden width. With B the masses, B₀ those of the static
weights, and r_K(σ) = log B_K(σ)/B₀(σ) minus the factor that all words without an entry share (`constant` in
backgrounds/class_weights.py), the masses become

    B(σ)  ∝  B₀(σ) exp(τ(K, σ) r_K(σ)),      τ(K, σ) = 1 + wᵀh + c + v_σ      (1/τ: temperature; w, c, v start at zero)

The shares of words inside a signature do not change. In terms of a log-linear model, r is one more feature, with
weight τ − 1. It counts as part of the background, not of the adaptor's norm. τ may be negative, but τ r is bounded by
LARGEST. Forbidden words stay forbidden.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, ClassWeights
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.output.class_source import Head, check_row_sources
from fairseq_llrnn.output.normalisers import HeadModule

LARGEST = 1e5  # nats


OPTION = "--learn-background-temperature"


def learned_temperature(head: Head) -> LearnedTemperature:
    """Make the module for a head: `LogLinearHead(prior, H, mass_change=learned_temperature)`.

    Raises:
        OptionError: a prior whose class weights are not sparse, or with classes that change with the context.
    """
    bound = head.background.bind()
    if bound.root is None or bound.is_context_independent or head.has_source_strings:
        raise OptionError(
            f"{OPTION} needs a prior with n-grams, an automaton or a cache, and without evidence; build one with "
            "`llrnn prior --background ngram:…` or `automaton:…`, or leave the option out"
        )
    check_row_sources(head, OPTION)
    return LearnedTemperature(head.hidden_size, head.output.rows.num_rows)


class LearnedTemperature(HeadModule):
    """τ(K, σ), a function of the hidden state and the signature."""

    name = "temperature"

    def __init__(self, hidden_size: int, num_classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(hidden_size))
        self.bias = nn.Parameter(torch.zeros(()))
        self.of_class = nn.Parameter(torch.zeros(num_classes))

    def applied(self, class_weights: ClassWeights, hidden: Tensor) -> ClassWeights:
        """Return the class weights of N positions with changed entries. hidden: (N, H)."""
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
        """Add zeros to a checkpoint without a learned temperature. They change nothing."""
        for part, value in self.state_dict().items():
            state_dict.setdefault(f"{prefix}{self.name}.{part}", torch.zeros_like(value))
