"""The networks that end in a log-linear output layer.

    recurrent.py  LSTM and GRU over a sequence, with a state for searches
    encoder.py    recurrent encoder of source sentences
    attention.py  attention of a decoder on a source
"""
