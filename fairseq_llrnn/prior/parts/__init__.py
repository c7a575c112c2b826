"""The parts of priors in this package: one file each, with the name of the part (prior/part.py)."""
