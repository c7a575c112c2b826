"""The models, and the decoder that they share.

    llrnn_lm.py              language models: recurrent, log-bilinear
    llrnn_transformer_lm.py  a Transformer language model
    llrnn_lstm.py            recurrent translation
    recurrent_models.py      decoders with a recurrent network; what recurrent translation models share
    llrnn_transformer.py     fairseq's Transformer with our output
    log_linear_decoder.py    a fairseq decoder that ends in a LogLinearHead, and what every model does
    extensions.py            options that systems and other packages add, and what they make; values out of range
    options.py               options of decoders with embeddings of their own
    frozen_lm.py             another model as a background
"""
