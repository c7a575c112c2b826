"""The networks that end in a log-linear output layer.

    cells.py      kinds of recurrent cells
    recurrent.py  a stack of them over a sequence, with a state for searches; encoders of sources, attention on them
"""
