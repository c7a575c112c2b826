"""What the system brings for fairseq; importing it announces the architectures.

    llrnn_rctm.py             a recurrent language model beside convolutions of the source
    llrnn_encoder_decoder.py  recurrent translation through one vector
"""

from fairseq.models import register_model, register_model_architecture

from fairseq_llrnn.plugin.announced import announce

for name in ("llrnn_rctm", "llrnn_encoder_decoder"):
    announce(register_model, f"{__name__}.{name}", name)
announce(register_model_architecture, f"{__name__}.llrnn_encoder_decoder", "llrnn_seq2seq", "llrnn_rnnsearch")
