"""How large the network that spells is, and what a prior calls it; importing this imports nothing else."""

from dataclasses import dataclass

KIND = "neural"  # of open vocabularies


@dataclass(frozen=True)
class SpellerSizes:
    """How large a speller is."""

    embed_dim: int = 32  # E
    hidden_size: int = 128  # D
    dropout: float = 0.3  # on what the LSTM reads and says
