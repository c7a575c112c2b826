"""The first neural translators, under a log-linear output layer (docs/guides/translation.md).

    plugin/                   --arch llrnn_rctm, llrnn_encoder_decoder, llrnn_seq2seq, llrnn_rnnsearch
    convolutional_source.py   what convolutions make of a source; the length of a translation
"""
