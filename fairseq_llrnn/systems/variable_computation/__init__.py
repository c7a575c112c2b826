"""Recurrent cells that choose at every step how many of their dimensions they compute (README.md): vcgru and vcrnn.

    cells.py                adds them to networks/recurrent.py
    variable_cells.py       the cells
"""
