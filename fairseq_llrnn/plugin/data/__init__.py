"""Data sets that the tasks give to training."""
