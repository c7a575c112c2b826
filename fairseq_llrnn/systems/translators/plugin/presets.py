"""Named architectures of the literature that are llrnn_lstm with other options."""

from argparse import Namespace

from fairseq.models import register_model_architecture

from fairseq_llrnn.plugin.announced import registered
from fairseq_llrnn.plugin.models.options import set_defaults


@registered(register_model_architecture, "llrnn_lstm", "llrnn_seq2seq")
def seq2seq(args: Namespace) -> None:
    """Sutskever et al. 2014: four layers of LSTMs, the source from its end, one vector between the two sides."""
    set_defaults(args, cell="lstm", attention="none", reverse_source=True, encoder_layers=4, decoder_layers=4)


@registered(register_model_architecture, "llrnn_lstm", "llrnn_rnnsearch")
def rnnsearch(args: Namespace) -> None:
    """Bahdanau et al. 2015: GRUs, an encoder that reads in both directions, additive attention."""
    set_defaults(args, cell="gru", attention="additive", encoder_bidirectional=True, decoder_layers=1)
