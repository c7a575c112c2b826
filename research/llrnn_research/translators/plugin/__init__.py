"""The parts for fairseq. Importing this module announces the architectures.

    llrnn_rctm.py             a recurrent language model with convolutions of the source
    llrnn_encoder_decoder.py  recurrent translation through one vector
"""

from fairseq_llrnn.plugin.names import announce

announce(f"{__name__}.llrnn_rctm", f"{__name__}.llrnn_encoder_decoder")
