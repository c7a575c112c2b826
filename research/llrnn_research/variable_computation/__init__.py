"""Recurrent cells that choose at every step how many of their dimensions they compute (README.md): vcgru and vcrnn.

    cells.py                registration in networks/recurrent.py
    variable_cells.py       the cells
    explain.py              `llrnn explain --computation`, a picture
"""

COMPUTATION = "computation"  # name of the share m of the dimensions, in logs and explanations
