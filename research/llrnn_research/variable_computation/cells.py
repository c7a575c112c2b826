"""Register the cells of variable computation in networks/recurrent.py. They are imported at first use."""

from torch import nn

from fairseq_llrnn.networks.recurrent import Cell, register_cell


def _gru(input_size: int, hidden_size: int) -> nn.Module:
    from llrnn_research.variable_computation.variable_cells import VCGRU

    return VCGRU(input_size, hidden_size)


def _rnn(input_size: int, hidden_size: int) -> nn.Module:
    from llrnn_research.variable_computation.variable_cells import VCRNN

    return VCRNN(input_size, hidden_size)


CHOOSES = "that chooses at every step how many of its dimensions it computes"
register_cell("vcgru", Cell(_gru, states=1, gates=3, constant="gru", about=f"a GRU {CHOOSES}"))
register_cell("vcrnn", Cell(_rnn, states=1, gates=1, constant="rnn", about=f"Elman's, {CHOOSES}"))
