"""Optimisers for fairseq that take sparse gradients, of which an update needs few rows.

    llrnn_adagrad.py, llrnn_adam.py  the optimisers
    sparse_gradients.py              what both need
    gathered_gradients.py            sparse gradients of several processes, added up
"""
