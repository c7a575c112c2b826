"""The models, and the decoder that they share.

    llrnn_lm.py            recurrent language model (recurrent_decoder.py)
    llrnn_lbl.py           log-bilinear language model
    llrnn_lstm.py          recurrent translation (attention_decoder.py)
    llrnn_transformer.py   fairseq's Transformer with our output
    llrnn_bag.py           texts with labels: bag of words (label_decoder.py)
    llrnn_classifier.py    texts with labels: recurrent
    log_linear_decoder.py  a fairseq decoder that ends in a LogLinearHead
    search_memory.py       what a decoder keeps from one search step to the next
    options.py             options of decoders with embeddings of their own
    experts.py             --expert
    frozen_lm.py           another model as a background
"""
