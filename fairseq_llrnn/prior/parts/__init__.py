"""The parts of priors that come with the package: one file each, with the name of the part (prior/part.py)."""
