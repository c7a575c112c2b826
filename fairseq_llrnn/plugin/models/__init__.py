"""Models, and the decoder that they share.

    llrnn_lm.py              language models: recurrent, log-bilinear
    llrnn_transformer_lm.py  a Transformer language model
    llrnn_lstm.py            recurrent translation
    recurrent_models.py      decoders with a recurrent network, parts shared by recurrent translation models
    llrnn_transformer.py     fairseq's Transformer with a log-linear output
    log_linear_decoder.py    a fairseq decoder that ends in a LogLinearHead, the base of all models
    extensions.py            options and modules that systems and other packages add, range checks
    options.py               options of decoders with their own embeddings
    speller_options.py       options of the network that spells unknown words
    frozen_lm.py             another model as a background
"""
