"""Modules shared by several examples, whose scripts put the folder `examples` on their path."""
