"""The networks that end in a log-linear output layer.

    recurrent.py  a stack of them over a sequence, with a state for searches; encoders of sources, attention on them
"""
