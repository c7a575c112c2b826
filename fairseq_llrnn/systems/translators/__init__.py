"""The first neural translators, under a log-linear output layer (docs/guides/architectures.md).

    plugin/                   --arch llrnn_rctm, llrnn_encoder_decoder, llrnn_seq2seq, llrnn_rnnsearch
    sentence_convolutions.py  sentences as a vector, or as vectors of n-grams, by convolutions
    target_length.py          how long a translation will be
    convolutional_source.py   these as an encoder
    maxout.py                 a layer of maxout units
"""
