"""Recurrent cells that choose at every step how many of their dimensions they compute: VCRNN and VCGRU.

Sizes: B batch, T time, D input width, H hidden width, K matrices side by side (VCRNN 1, VCGRU 3). Source: Jernite 2018,
section 2.4 (Jernite et al. 2017), equations 2.8 to 2.14:

    m_t = σ(u·h + v·x_t + b)                                    the scheduler: the share of the dimensions
    e_i = Thres(σ(λ (m_t H − i))), i = 1 … H                    the soft mask, sharper with λ
    h'  = e ⊙ g(e ⊙ h, e ⊙ x_t) + (1 − e) ⊙ h                   g: the step of an ordinary cell

Thres maps values below THRESHOLD to 0 and above 1 − THRESHOLD to 1, so that only the first n dimensions, n about m_t H,
take part in a step. Without a gradient only these are computed, at a cost of n² instead of H², with the same result. In
a batch, n is the largest of all rows.

The thesis has inputs of width H. Here an input of another width D is projected first (`project`, without bias). The
thesis' equations have no biases. Here g has one for each gate, as in torch's cells. The Elman step is tanh, as in
torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.networks.recurrent import RecurrentNetwork

THRESHOLD = 1e-3  # ε of equation 2.9


@dataclass(frozen=True)
class Sharpness:
    """λ of the mask. It grows with training updates from a tenth of `final`, and stays constant after `updates`."""

    final: float = 1.0
    updates: int = 0

    def after(self, updates: int) -> float:
        share = min(1.0, updates / self.updates) if self.updates else 1.0
        return self.final * (0.1 + 0.9 * share)


@dataclass(frozen=True)
class Computation:
    """How much a layer computed at each step."""

    share: Tensor  # m, (B, T), at least float32, with its gradient
    width: Tensor  # n, the dimensions that take part in the step, (B, T), integers
    multiplications: Tensor  # with factors that may be nonzero, (B, T)


def soft_mask(reach: Tensor, index: Tensor, sharpness: float) -> Tensor:
    """Return e (B, n) of m H (B, 1) and 1 … n (equation 2.9)."""
    mask = torch.sigmoid(sharpness * (reach - index))
    return functional.threshold(mask, THRESHOLD, 0.0).where(mask <= 1.0 - THRESHOLD, 1.0)


def masked_in(reach: Tensor, sharpness: float) -> Tensor:
    """Return the number of dimensions with a mask above 0, unlimited by H: σ(λ (m H − i)) > ε solved for i."""
    return (reach + math.log((1.0 - THRESHOLD) / THRESHOLD) / sharpness).floor()


class VariableCell(nn.Module):
    """A layer with a step defined by a subclass.

    Args:
        input_size: D.
        hidden_size: H.
        gates: K.
    """

    updates: Tensor

    def __init__(self, input_size: int, hidden_size: int, gates: int) -> None:
        super().__init__()
        self.hidden_size, self.gates = hidden_size, gates
        self.project = None if input_size == hidden_size else nn.Linear(input_size, hidden_size, bias=False)
        self.weight_ih = nn.Parameter(torch.empty(gates, hidden_size, hidden_size))  # V
        self.weight_hh = nn.Parameter(torch.empty(gates, hidden_size, hidden_size))  # U
        self.bias = nn.Parameter(torch.empty(gates, hidden_size))
        self.from_state = nn.Parameter(torch.empty(hidden_size))  # u
        self.from_input = nn.Parameter(torch.empty(hidden_size))  # v
        self.from_start = nn.Parameter(torch.zeros(1))  # b
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)
        self.sharpness = Sharpness()
        # of training; stored in checkpoints, which thus keep their λ
        self.register_buffer("updates", torch.zeros((), dtype=torch.long))

    def set_num_updates(self, num_updates: int) -> None:
        """Set the number of updates. fairseq calls it before every update, also of a resumed training."""
        self.updates.fill_(num_updates)

    def forward(self, x: Tensor, before: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run like torch's layers: (B, T, D), (1, B, H) -> (B, T, H), (1, B, H)."""
        hidden, last, _ = self.run(x, before)
        return hidden, last

    def run(self, x: Tensor, before: Tensor | None = None) -> tuple[Tensor, Tensor, Computation]:
        """Run like `forward`, and also return how much was computed."""
        x = x if self.project is None else self.project(x)
        h = x.new_zeros(x.size(0), self.hidden_size) if before is None else before[0]
        # the input's part of the scheduler needs no mask: all steps together, (B, T, 1), at least float32
        exact = torch.promote_types(x.dtype, torch.float32)
        of_input = (x.to(exact) * self.from_input.to(exact)).sum(-1, keepdim=True) + self.from_start.to(exact)
        sharpness = self.sharpness.after(int(self.updates))
        reduced = not torch.is_grad_enabled()
        u = self.from_state.to(exact)
        index = torch.arange(1, self.hidden_size + 1, device=x.device, dtype=exact)
        n = self.hidden_size
        hidden, shares = [], []
        for x_t, of_input_t in zip(x.unbind(1), of_input.unbind(1), strict=True):
            share = torch.sigmoid(of_input_t + (h.to(exact) * u).sum(-1, keepdim=True))  # m, (B, 1)
            reach = share * self.hidden_size
            if reduced:
                n = min(self.hidden_size, max(0, int(masked_in(reach.max(), sharpness))))
            mask = soft_mask(reach, index[:n], sharpness).to(h.dtype)
            h = self._first(n, x_t, h, mask) if reduced else self._step(x_t, h, mask)
            hidden.append(h)
            shares.append(share)
        share = torch.cat(shares, 1)
        width = masked_in(share.detach() * self.hidden_size, sharpness).clamp(0, self.hidden_size).long()
        return torch.stack(hidden, 1), h.unsqueeze(0), Computation(share, width, self.multiplications(width))

    def multiplications(self, width: Tensor) -> Tensor:
        """Return the possibly nonzero multiplications of steps with width n, (B, T): n×n matrices, scheduler,
        projection.
        """
        project = 0 if self.project is None else self.project.weight.numel()
        return 2 * self.gates * width**2 + 2 * self.hidden_size + project

    def _step(self, x: Tensor, h: Tensor, mask: Tensor) -> Tensor:
        """Compute all dimensions of a step, masked: x, h and e (B, H) -> (B, H)."""
        return self.step(mask * x, h, mask, self.weight_ih, self.weight_hh, self.bias)

    def _first(self, n: int, x: Tensor, h: Tensor, mask: Tensor) -> Tensor:
        """Compute only the first n dimensions of a step, and keep the others; e (B, n)."""
        if n == 0:
            return h
        weights = self.weight_ih[:, :n, :n], self.weight_hh[:, :n, :n], self.bias[:, :n]
        return torch.cat([self.step(mask * x[:, :n], h[:, :n], mask, *weights), h[:, n:]], 1)

    def step(self, x: Tensor, h: Tensor, mask: Tensor, from_x: Tensor, from_h: Tensor, bias: Tensor) -> Tensor:
        """Return the next state.

        Args:
            x: masked, (B, n).
            h: not masked, (B, n).
            mask: e, (B, n).
            from_x, from_h: V and U, (K, n, n).
            bias: (K, n).
        """
        raise NotImplementedError


class VCRNN(VariableCell):
    """The variable Elman cell (equation 2.11)."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, gates=1)

    def step(self, x: Tensor, h: Tensor, mask: Tensor, from_x: Tensor, from_h: Tensor, bias: Tensor) -> Tensor:
        (of_x,), (of_h,) = products(x, from_x, bias), products(mask * h, from_h)
        return between(h, torch.tanh(of_x + of_h), mask)


class VCGRU(VariableCell):
    """The variable GRU (equations 2.12 to 2.14), with matrices for r, z and h̃."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, gates=3)

    def step(self, x: Tensor, h: Tensor, mask: Tensor, from_x: Tensor, from_h: Tensor, bias: Tensor) -> Tensor:
        masked = mask * h
        (r_x, z_x, new_x), (r_h, z_h) = products(x, from_x, bias), products(masked, from_h[:2])
        r, z = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
        (new_h,) = products(r * masked, from_h[2:])
        return between(h, torch.tanh(new_x + new_h), mask * z)


def between(h: Tensor, new: Tensor, share: Tensor) -> Tensor:
    """Return h + share · (new − h) in the precision of h, although products may be in half precision."""
    return torch.lerp(h, new.to(h.dtype), share.to(h.dtype))


def products(x: Tensor, weights: Tensor, bias: Tensor | None = None) -> Sequence[Tensor]:
    """Return x (B, n) times each of the matrices (K, n, n), plus their biases (K, n): K of (B, n).

    Whole matrices are stacked, and need one product. Corners of them are multiplied separately.
    """
    if weights.is_contiguous():
        flat = functional.linear(x, weights.flatten(0, 1), None if bias is None else bias.flatten())
        return flat.chunk(len(weights), 1)
    return [functional.linear(x, w, None if bias is None else bias[k]) for k, w in enumerate(weights)]


def sharpen(network: RecurrentNetwork, sharpness: Sharpness) -> None:
    """Set λ of the masks of a network's cells. Raises ValueError for a network with other cells."""
    for layer in network.layers:
        if not isinstance(layer, VariableCell):
            raise ValueError(f"expected a cell of variable computation, found {network.cell!r}")
        layer.sharpness = sharpness


def equivalent_rnn(multiplications: float, num_layers: int = 1) -> float:
    """Return the width of an Elman network with as many layers and multiplications a step, and an input as wide
    as its state (Jernite 2018, §2.5).
    """
    return math.sqrt(multiplications / (2 * num_layers))
