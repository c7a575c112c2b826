"""The kinds of recurrent cells, and what a step of each costs.

Sizes: B batch, T time, D input width, H hidden width, G states per cell (LSTM 2: h and c; else 1).
A layer is called as torch's own: layer(x (B, T, D), before) -> (B, T, H), after; the states are (1, B, H), a tuple of
them where G > 1. Source of the unit in which cells are compared: Jernite 2018, section 2.5 ("equivalent RNN").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from torch import nn

from fairseq_llrnn.registry import load_all, lost


@dataclass(frozen=True)
class Cell:
    """A kind of cell: how a layer of it is made, and what that layer is like."""

    build: Callable[[int, int], nn.Module]  # D, H -> a layer
    states: int  # G
    gates: int  # products of a step, each of a D×H matrix with the input and an H×H matrix with the state
    constant: str | None = None  # of a cell whose computation varies: the one that computes everything
    about: str = ""  # what --help says of its name

    def multiplications(self, input_size: int, hidden_size: int) -> int:
        """Those of a step of a layer in which every dimension counts."""
        return self.gates * hidden_size * (input_size + hidden_size)


_CELLS = {
    "gru": Cell(partial(nn.GRU, batch_first=True), states=1, gates=3),
    "lstm": Cell(partial(nn.LSTM, batch_first=True), states=2, gates=4),
    "rnn": Cell(partial(nn.RNN, batch_first=True), states=1, gates=1, about="Elman's"),  # Elman 1990
}


def register_cell(name: str, cell: Cell) -> None:
    """Register a kind of cell, in a module that registry.py finds in the group `cells`."""
    _CELLS[name] = cell


def all_cells() -> Mapping[str, Cell]:
    """All kinds, by name: those of this file, of systems and of other packages."""
    load_all("cells")
    return dict(sorted(_CELLS.items()))


def find_cell(name: str) -> Cell:
    """The kind of that name. Raises ValueError where there is none."""
    cell = _CELLS.get(name) or all_cells().get(name)
    if cell is None:
        reason = lost(name)
        raise ValueError(
            f"cell: expected one of {', '.join(all_cells())}, found {name!r}" + (f"; {reason}" if reason else "")
        )
    return cell


def equivalent_rnn(multiplications: float, num_layers: int = 1) -> float:
    """The width of an Elman network of as many layers and multiplications a step; its input is as wide as its state."""
    return math.sqrt(multiplications / (2 * num_layers))
