"""A network of characters that spells unknown words, mixed with the n-grams of their open class.

    network.py  the network, given the state of the model, and sampled or best strings
    spelled.py  its input and output
    lexicon_background.py  a lexicon in its background
    speller.py  registration as the speller of a kind of open vocabularies
"""

from dataclasses import dataclass

KIND = "neural"  # of open vocabularies


@dataclass(frozen=True)
class SpellerSizes:
    """The sizes of a speller."""

    embed_dim: int = 32  # E
    hidden_size: int = 128  # D
    dropout: float = 0.3  # on the input and output of the LSTM
