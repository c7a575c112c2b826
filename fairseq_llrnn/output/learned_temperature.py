"""A background whose temperature the network chooses: it alone learns where b is to be trusted.

Sizes: N positions, S signatures, E entries of masses, H hidden width. What a history K says of a signature is
r_K(σ) = log B_K(σ)/B₀(σ) less the factor that it gives all words of which it says nothing in particular (`constant` in
backgrounds/masses.py), where B are masses and B₀ those of the static weights. The masses become

    B(σ)  ∝  B₀(σ) exp(τ(K, σ) r_K(σ)),      τ(K, σ) = 1 + wᵀh + c + v_σ      (1/τ: temperature; w, c, v begin at zero)

and the shares of words inside a signature stay as they are: no network could change them. As a log-linear
model, r is one feature more, and τ − 1 its weight; but it counts as part of the background: it is in no norm of the
adaptor, and the likelihood alone trains it where labels are smoothed. τ is not bound to be positive, but τ r is bounded
to LARGEST, whatever has been learned; what is forbidden stays so.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.masses import NEGATIVE_INFINITY, Masses

LARGEST = 1e5  # nats


class LearnedTemperature(nn.Module):
    """τ(K, σ), from the hidden state and the signature."""

    def __init__(self, hidden_size: int, num_classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(hidden_size))
        self.bias = nn.Parameter(torch.zeros(()))
        self.of_class = nn.Parameter(torch.zeros(num_classes))

    def applied(self, masses: Masses, hidden: Tensor) -> Masses:
        """The masses of N positions, which have entries; hidden: (N, H)."""
        entries = masses.entries
        if entries is None:
            return masses
        precise = torch.promote_types(self.weight.dtype, torch.float32)
        of_position = 1.0 + hidden.to(precise) @ self.weight.to(precise) + self.bias.to(precise)  # shape: (N,)
        power = of_position[entries.rows] + self.of_class[entries.classes].to(precise)  # shape: (E,)
        forbidden = entries.added.isneginf()
        changed = (entries.added.masked_fill(forbidden, 0.0) * power).clamp(-LARGEST, LARGEST)
        return replace(masses, entries=replace(entries, added=changed.masked_fill(forbidden, NEGATIVE_INFINITY)))
