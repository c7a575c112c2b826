"""Recurrent cells, encoder, attention: the networks that end in a log-linear output layer."""
