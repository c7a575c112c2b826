"""The networks that end in a log-linear output layer.

    cells.py      kinds of recurrent cells
    recurrent.py  a stack of them over a sequence, with a state for searches; encoders of sources, attention on them
    variable_computation.py  cells that choose at every step how much they compute
    computation_target.py    the penalty that teaches them how much
    log_bilinear.py  the last few words, each by the matrix of its distance
"""
