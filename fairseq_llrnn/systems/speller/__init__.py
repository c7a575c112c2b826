"""A network of characters that spells unknown words, beside the n-grams of their open class.

    network.py  the network, given the state of the model; strings drawn, or the best ones
    spelled.py  what it reads and writes
    speller.py  registers it as the speller of a kind of open vocabularies
"""

from dataclasses import dataclass

KIND = "neural"  # of open vocabularies


@dataclass(frozen=True)
class SpellerSizes:
    """How large a speller is."""

    embed_dim: int = 32  # E
    hidden_size: int = 128  # D
    dropout: float = 0.3  # on what the LSTM reads and says
