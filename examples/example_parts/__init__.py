"""Modules that several examples share: the scripts of an example find them by the folder `examples` in their path."""
