"""Recurrent networks: kinds of cells, a stack of layers, an encoder of sources, and attention.

Sizes: B batch, T time, D input width, H hidden width, R layers, G states per cell (2 for LSTMs, h and c, else 1).
L source length, E width of an encoder's states (twice the layer's if bidirectional).

A layer is called like torch's own, with a fused kernel over the whole sequence: layer(x (B, T, D), before) -> (B, T,
H), after. The states are (1, B, H), or a tuple of them if G > 1.

Sources of the networks: Gal & Ghahramani 2016 (one dropout mask for all time steps of a sequence). Sutskever et al.
2014 (reversal), Cho et al. 2014 (one summary vector of the sentence), Bahdanau et al. 2015 (both directions, additive
attention), Luong et al. 2015 (§3.1: dot, general, and the combination tanh(W [context; h])).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.registry import load_all, lost


@dataclass(frozen=True)
class Cell:
    """A kind of cell: the function that makes a layer, and properties of the layer."""

    build: Callable[[int, int], nn.Module]  # D, H -> a layer
    states: int  # G
    gates: int  # products of a step, each of a D×H matrix with the input and an H×H matrix with the state
    constant: str | None = None  # for a cell with variable computation: the cell that computes everything
    about: str = ""  # its description in --help
    forgets: bool = False  # whether the second H elements of bias_hh are an LSTM's forget gate

    def multiplications(self, input_size: int, hidden_size: int) -> int:
        """Return the number of multiplications of a step of a layer that computes every dimension."""
        return self.gates * hidden_size * (input_size + hidden_size)


_CELLS = {
    "gru": Cell(partial(nn.GRU, batch_first=True), states=1, gates=3),
    "lstm": Cell(partial(nn.LSTM, batch_first=True), states=2, gates=4, forgets=True),
    "rnn": Cell(partial(nn.RNN, batch_first=True), states=1, gates=1, about="Elman's"),  # Elman 1990
}


def register_cell(name: str, cell: Cell) -> None:
    """Register a kind of cell, in a module that registry.py finds in the group `cells`."""
    _CELLS[name] = cell


def all_cells() -> Mapping[str, Cell]:
    """Return all kinds, by name: of this file, of systems and of other packages."""
    load_all("cells")
    return dict(sorted(_CELLS.items()))


def find_cell(name: str) -> Cell:
    """Return the kind of that name. Raises ValueError if there is none."""
    cell = _CELLS.get(name) or all_cells().get(name)
    if cell is None:
        reason = lost(name)
        raise ValueError(
            f"cell: expected one of {', '.join(all_cells())}, found {name!r}" + (f"; {reason}" if reason else "")
        )
    return cell


ATTENTIONS = ("dot", "general", "additive")


def dropout(x: Tensor, p: float, training: bool, variational: bool) -> Tensor:
    """Apply dropout to (B, T, D). The variational kind draws one mask per sequence for all time steps."""
    if not training or p == 0.0:
        return x
    if not variational:
        return functional.dropout(x, p, training=True)
    mask = x.new_empty((x.size(0), 1, x.size(2))).bernoulli_(1.0 - p).div_(1.0 - p)
    return x * mask


def initialise(layers: nn.Module, cell: str, hidden_size: int) -> None:
    """Draw small uniform weights. The forget gates of LSTMs are initially open (Jozefowicz et al. 2015)."""
    for name, parameter in layers.named_parameters():
        nn.init.uniform_(parameter, -0.1, 0.1)
        if find_cell(cell).forgets and "bias_hh" in name:
            parameter.data[hidden_size : 2 * hidden_size].fill_(1.0)


@dataclass(frozen=True)
class Run:
    """The result of a network, and its amount of computation if that varies."""

    hidden: Tensor  # (B, T, H)
    state: Tensor  # after the last step, (B, G, R, H)
    undropped: Tensor  # hidden before its dropout, (B, T, H)
    shares: Tensor | None = None  # share of the dimensions that each layer computed, (B, T, R), with gradients
    multiplications: Tensor | None = None  # of all layers, (B, T)


class RecurrentNetwork(nn.Module):
    """A stack of recurrent layers.

    Attributes:
        terms: functions of a run and its input tokens (B, T) that return terms for a criterion.
        call_layer: function that calls a layer with its input and the state before it.

    Args:
        input_size: D. hidden_size: H. num_layers: R. cell: a name of `all_cells`.
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
        self.terms: list[Callable[[Run, Tensor], Sequence[Any]]] = []
        self.call_layer: Callable[[nn.Module, Tensor, Any], Any] = nn.Module.__call__
        self.cell = cell
        self.num_states = kind.states  # G
        self.varies = kind.constant is not None
        self.dropouts = [dropout_in] + [dropout_between] * (num_layers - 1)
        self.dropout_out = dropout_out
        self.variational = variational
        # one module per layer, each a fused kernel, with dropout and layer norm in between
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
            x: (B, T, D). state: (B, G, R, H) from the previous call. None: zeros.

        Returns:
            hidden states (B, T, H) and the state after the last step (B, G, R, H).
        """
        run = self.run(x, state)
        return run.hidden, run.state

    def run(self, x: Tensor, state: Tensor | None = None) -> Run:
        """As `forward`, and return the amount of computation of cells for which it varies."""
        after: list[Tensor] = []
        shares, multiplications = list[Tensor](), list[Tensor]()
        for i, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            x = dropout(x, self.dropouts[i], self.training, self.variational)
            before = None
            if state is not None:
                # shape of each: (1, B, H), as torch requires
                parts = [s.unsqueeze(0).contiguous() for s in state[:, :, i].unbind(1)]
                before = tuple(parts) if self.num_states > 1 else parts[0]
            if self.varies:
                x, last, computed = layer.run(x, before)  # type: ignore[operator]
                shares.append(computed.share)
                multiplications.append(computed.multiplications)
            else:
                x, last = self.call_layer(layer, x, before)
            parts = list(last) if self.num_states > 1 else [last]
            after.append(torch.stack([s.squeeze(0) for s in parts], dim=1))  # shape: (B, G, H)
            x = norm(x)
        dropped = dropout(x, self.dropout_out, self.training, self.variational)
        of_shares = torch.stack(shares, -1) if shares else None
        total = torch.stack(multiplications).sum(0) if multiplications else None
        return Run(dropped, torch.stack(after, dim=2), x, of_shares, total)


def flip_valid(x: Tensor, lengths: Tensor) -> Tensor:
    """Reverse the first lengths[i] elements of every row and keep the rest: (B, L, …) -> (B, L, …)."""
    position = torch.arange(x.size(1), device=x.device).unsqueeze(0)  # shape: (1, L)
    last = lengths.unsqueeze(1) - 1  # shape: (B, 1)
    index = torch.where(position <= last, last - position, position)
    return x[torch.arange(x.size(0), device=x.device).unsqueeze(1), index]


def roll_rows(x: Tensor, shifts: Tensor) -> Tensor:
    """Roll row i of (B, L, …) by shifts[i] places to the right: (B, L, …), (B,) -> (B, L, …)."""
    index = (torch.arange(x.size(1), device=x.device) - shifts.unsqueeze(1)) % x.size(1)  # shape: (B, L)
    return x[torch.arange(x.size(0), device=x.device).unsqueeze(1), index]


def word_table(num_words: int, size: int, pad: int) -> nn.Embedding:
    """Return a table with a row per word: small uniform numbers, zeros for padding."""
    table = nn.Embedding(num_words, size, padding_idx=pad)
    nn.init.uniform_(table.weight, -0.1, 0.1)
    nn.init.zeros_(table.weight[pad])
    return table


class RecurrentEncoder(nn.Module):
    """Embedding -> recurrent layers -> one state per source token and a summary of the sentence.

    Args:
        num_words, pad: of the source dictionary. reverse: the first direction reads the sentence from its end.
        dropout_in, dropout_between, dropout_out: on the input, between layers, on the output. variational: one mask
            per sequence.
        embedding: tokens (B, L) -> (B, L, D), zero at padding. None: a table with a row per word.
    """

    def __init__(
        self,
        num_words: int,
        pad: int,
        embed_size: int,
        hidden_size: int,
        num_layers: int,
        cell: str = "lstm",
        bidirectional: bool = True,
        reverse: bool = False,
        dropout_in: float = 0.0,
        dropout_between: float = 0.0,
        dropout_out: float = 0.0,
        variational: bool = False,
        embedding: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.pad = pad
        self.reverse = reverse
        self.dropouts = [dropout_in] + [dropout_between] * (num_layers - 1)
        self.dropout_out = dropout_out
        self.variational = variational
        self.output_size = hidden_size * (2 if bidirectional else 1)
        self.embedding = word_table(num_words, embed_size, pad) if embedding is None else embedding
        # One module per direction and layer: each is a fused kernel over padded batches. On a CPU, packed sequences
        # have no such kernel.
        directions = 2 if bidirectional else 1
        self.layers = nn.ModuleList(
            nn.ModuleList(
                find_cell(cell).build(embed_size if i == 0 else self.output_size, hidden_size)
                for _ in range(directions)
            )
            for i in range(num_layers)
        )
        initialise(self.layers, cell, hidden_size)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Read sentences, padded on either side.

        Args:
            tokens: (B, L).

        Returns:
            states (B, L, E), each at its token's position, zero on padding; the summary (B, E) of each sentence, the
                last state of each direction.
        """
        valid = tokens.ne(self.pad)
        lengths = valid.sum(1)  # shape: (B,)
        before = valid.long().argmax(1)  # shape: (B,), padding on the left
        x = roll_rows(self.embedding(tokens), -before)
        last = (lengths - 1).view(-1, 1, 1)
        summary = x.new_zeros(0)
        for directions, p in zip(self.layers, self.dropouts, strict=True):
            x = dropout(x, p, self.training, self.variational)
            assert isinstance(directions, nn.ModuleList)
            outputs, finals = [], []
            for i, layer in enumerate(directions):
                backward = (i == 1) != self.reverse
                output, _ = layer(flip_valid(x, lengths) if backward else x)
                finals.append(output.gather(1, last.expand(-1, 1, output.size(2))).squeeze(1))
                outputs.append(flip_valid(output, lengths) if backward else output)
            x = torch.cat(outputs, dim=-1)  # shape: (B, L, E)
            summary = torch.cat(finals, dim=-1)  # shape: (B, E)
        x = roll_rows(x, before) * valid.unsqueeze(-1)
        return dropout(x, self.dropout_out, self.training, self.variational), summary


class GlobalAttention(nn.Module):
    """h, source -> the attentional state tanh(W [context; h]) and the weights.

    Args:
        kind: the comparison of a state with a source state. "dot" needs H = E.
    """

    def __init__(self, kind: str, hidden_size: int, source_size: int) -> None:
        super().__init__()
        self.kind = kind
        compared = hidden_size if kind == "additive" else source_size
        self.query = nn.Identity() if kind == "dot" else nn.Linear(hidden_size, compared, bias=False)
        if kind == "additive":
            self.key = nn.Linear(source_size, hidden_size)
            self.energy = nn.Linear(hidden_size, 1, bias=False)
        self.combine = nn.Linear(source_size + hidden_size, hidden_size, bias=False)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def forward(self, hidden: Tensor, source: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
        """Attend to the source.

        Args:
            hidden: (B, T, H). source: (B, L, E). padding: (B, L) bool, true at padding.

        Returns:
            attentional states (B, T, H); weights (B, T, L), zero on padding and summing to one.
        """
        query = self.query(hidden)
        if self.kind == "additive":
            # shape: (B, T, L, H)
            scores = self.energy(torch.tanh(query.unsqueeze(2) + self.key(source).unsqueeze(1))).squeeze(-1)
        else:
            scores = query @ source.transpose(1, 2)
        scores = scores.masked_fill(padding.unsqueeze(1), float("-inf"))
        # the softmax in at least float32, for products of any dtype
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        weights = scores.softmax(-1).to(source.dtype)
        joined = torch.cat([weights @ source, hidden], dim=-1)
        return torch.tanh(self.combine(joined)), weights
