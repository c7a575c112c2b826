"""Recurrent cells that choose at every step how many of their dimensions they compute (README.md): vcgru and vcrnn.

    variable_cells.py       the cells
    computation_target.py   the penalty that teaches them how much
    computation_picture.py  how much was computed at each token, as a picture

Importing this package adds the cells to fairseq_llrnn.networks.cells.CELLS.
"""

from torch import nn

from fairseq_llrnn.networks.cells import CELLS, Cell


def _gru(input_size: int, hidden_size: int) -> nn.Module:
    from fairseq_llrnn.systems.variable_computation.variable_cells import VCGRU

    return VCGRU(input_size, hidden_size)


def _rnn(input_size: int, hidden_size: int) -> nn.Module:
    from fairseq_llrnn.systems.variable_computation.variable_cells import VCRNN

    return VCRNN(input_size, hidden_size)


CHOOSES = "that chooses at every step how many of its dimensions it computes"
CELLS["vcgru"] = Cell(_gru, states=1, gates=3, constant="gru", about=f"a GRU {CHOOSES}")
CELLS["vcrnn"] = Cell(_rnn, states=1, gates=1, constant="rnn", about=f"Elman's, {CHOOSES}")
