"""The version of the package, for pyproject.toml, signatures of priors and checkpoints. It imports nothing."""

__version__ = "0.1.0"
