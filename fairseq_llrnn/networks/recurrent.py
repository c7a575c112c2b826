"""Recurrent networks with fused kernels over the whole sequence and a state that beam search can reorder.

Sizes: B batch, T time, D input width, H hidden width, L layers, G states per cell (LSTM 2: h and c; else 1).
Source of the variational option: Gal & Ghahramani 2016 (one dropout mask for all time steps of a sequence).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.networks.cells import find_cell
from fairseq_llrnn.networks.variable_computation import Sharpness, VariableCell


def dropout(x: Tensor, p: float, training: bool, variational: bool) -> Tensor:
    """Dropout of (B, T, D); the variational kind draws one mask per sequence and uses it at every time step."""
    if not training or p == 0.0:
        return x
    if not variational:
        return functional.dropout(x, p, training=True)
    mask = x.new_empty((x.size(0), 1, x.size(2))).bernoulli_(1.0 - p).div_(1.0 - p)
    return x * mask


def initialise(layers: nn.Module, cell: str, hidden_size: int) -> None:
    """Small uniform weights; the forget gates of LSTMs are open at the start (Jozefowicz et al. 2015)."""
    for name, parameter in layers.named_parameters():
        nn.init.uniform_(parameter, -0.1, 0.1)
        if cell == "lstm" and "bias_hh" in name:
            parameter.data[hidden_size : 2 * hidden_size].fill_(1.0)


@dataclass(frozen=True)
class Run:
    """What a network computed, and how much where that varies."""

    hidden: Tensor  # (B, T, H)
    state: Tensor  # after the last step, (B, G, L, H)
    shares: Tensor | None = None  # of the dimensions that each layer computed, (B, T, L), with gradients
    multiplications: Tensor | None = None  # of all layers, (B, T)


class RecurrentNetwork(nn.Module):
    """A stack of recurrent layers.

    Args:
        input_size: D. hidden_size: H. num_layers: L. cell: a name of cells.py.
        dropout_in, dropout_between, dropout_out: on the input, between layers, on the output.
        variational: one mask per sequence. layer_norm: normalise each layer's output.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        cell: str = "lstm",
        dropout_in: float = 0.0,
        dropout_between: float = 0.0,
        dropout_out: float = 0.0,
        variational: bool = False,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        kind = find_cell(cell)
        self.cell = cell
        self.num_states = kind.states  # G
        self.dropouts = [dropout_in] + [dropout_between] * (num_layers - 1)
        self.dropout_out = dropout_out
        self.variational = variational
        # one module per layer, so that dropout of either kind and layer norm fit in between; each is one fused kernel
        self.layers = nn.ModuleList(
            kind.build(input_size if i == 0 else hidden_size, hidden_size) for i in range(num_layers)
        )
        self.norms = nn.ModuleList(
            nn.LayerNorm(hidden_size) if layer_norm else nn.Identity() for _ in range(num_layers)
        )
        initialise(self.layers, cell, hidden_size)

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run over a sequence, or one step of it.

        Args:
            x: (B, T, D). state: (B, G, L, H) from the previous call; zeros where None.

        Returns:
            hidden states (B, T, H) and the state after the last step (B, G, L, H).
        """
        run = self.run(x, state)
        return run.hidden, run.state

    def run(self, x: Tensor, state: Tensor | None = None) -> Run:
        """As `forward`; of cells of variable computation also how much they computed."""
        after: list[Tensor] = []
        shares, multiplications = list[Tensor](), list[Tensor]()
        for i, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            x = dropout(x, self.dropouts[i], self.training, self.variational)
            before = None
            if state is not None:
                # shape of each: (1, B, H), as torch wants them
                parts = [s.unsqueeze(0).contiguous() for s in state[:, :, i].unbind(1)]
                before = tuple(parts) if self.num_states > 1 else parts[0]
            if isinstance(layer, VariableCell):
                assert not isinstance(before, tuple)
                x, last, computation = layer.run(x, before)
                shares.append(computation.share)
                multiplications.append(layer.multiplications(computation))
            else:
                x, last = layer(x, before)
            parts = list(last) if self.num_states > 1 else [last]
            after.append(torch.stack([s.squeeze(0) for s in parts], dim=1))  # shape: (B, G, H)
            x = norm(x)
        x = dropout(x, self.dropout_out, self.training, self.variational)
        of_shares = torch.stack(shares, -1) if shares else None
        total = torch.stack(multiplications).sum(0) if multiplications else None
        return Run(x, torch.stack(after, dim=2), of_shares, total)

    def sharpen(self, sharpness: Sharpness) -> None:
        """Give the cells of variable computation the λ of their masks. Raises ValueError for a network of others."""
        for layer in self.layers:
            if not isinstance(layer, VariableCell):
                raise ValueError(f"expected a cell of variable computation, found {self.cell!r}")
            layer.sharpness = sharpness
