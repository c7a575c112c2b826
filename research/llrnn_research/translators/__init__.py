"""Early neural translation models with a log-linear output layer (docs/guides/translation.md).

    plugin/                   --arch llrnn_rctm, llrnn_encoder_decoder, llrnn_seq2seq, llrnn_rnnsearch
    convolutional_source.py   convolutional models of a source, and the length of a translation
"""
