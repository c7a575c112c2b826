"""Recurrent cells that choose at every step how many of their dimensions they compute (README.md): vcgru and vcrnn.

    cells.py                adds them to networks/recurrent.py
    variable_cells.py       the cells
    explain.py              in `llrnn explain`, as a picture
"""

COMPUTATION = "computation"  # the name of the share m of the dimensions, in logs and explanations
