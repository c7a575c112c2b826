"""Sizes of the network that spells (speller.py), without its imports."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SpellerSizes:
    """The sizes of the network that spells (speller.py)."""

    embed_dim: int = 32  # E
    hidden_size: int = 128  # D
    dropout: float = 0.3  # on the input and output of the LSTM
