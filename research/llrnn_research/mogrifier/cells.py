"""Register the cell in networks/recurrent.py. The layer is imported at first use."""

from torch import nn

from fairseq_llrnn.networks.recurrent import Cell, register_cell


def _mogrifier(input_size: int, hidden_size: int) -> nn.Module:
    from llrnn_research.mogrifier.mogrifier import MogrifierLSTM

    return MogrifierLSTM(input_size, hidden_size)


# five products more than an LSTM, each at most half as large as a gate's: at most 7
GATES = "an LSTM whose input and state gate each other"
register_cell("mogrifier", Cell(_mogrifier, states=2, gates=7, about=GATES, forgets=True))
