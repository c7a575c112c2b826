"""Recurrent networks for a log-linear output layer.

recurrent.py  kinds of cells, stacks of recurrent layers, encoders of sources, attention
"""
