"""--cell mogrifier (README.md): an LSTM whose input and state gate each other before every step.

    cells.py        adds it to networks/recurrent.py
    mogrifier.py    the layer
"""
