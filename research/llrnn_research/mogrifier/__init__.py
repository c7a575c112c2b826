"""--cell mogrifier (README.md): an LSTM whose input and state gate each other before every step.

    cells.py        registration in networks/recurrent.py
    mogrifier.py    the layer
"""
