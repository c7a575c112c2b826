"""Source words by their characters, beside a target that is read so, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from fairseq_llrnn.features.dictionary import OpenWords
from fairseq_llrnn.systems.characters.embedding import CharacterEmbedding
from fairseq_llrnn.systems.characters.network import CharacterNetwork, CharacterOptions


class SourceCharacters(CharacterEmbedding):
    """Of models that read both sides by characters.

    In older checkpoints, options of sizes hold for the input alone, and the source has the thesis' small network. Their
    weights tell them apart: in ours both sides have the same sizes.
    """

    def __init__(self, words: OpenWords, options: CharacterOptions, padding_idx: int) -> None:
        super().__init__(words, options, padding_idx)
        self.older = CharacterOptions(size=options.size)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        start, now = f"{prefix}network.", self.network.embedding.weight
        shapes = _shapes({name[len(start) :]: w for name, w in state_dict.items() if name.startswith(start)})
        older = CharacterNetwork(self.spellings.num_symbols, self.older)
        if shapes == _shapes(older.state_dict()) != _shapes(self.network.state_dict()):
            self.network = older.to(now)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _shapes(weights: Mapping[str, Any]) -> dict[str, list[int]]:
    """Of a network over characters, whatever its alphabet."""
    tensors = {name: list(weight.shape) for name, weight in weights.items() if isinstance(weight, Tensor)}
    return {name: shape[1:] if name == "embedding.weight" else shape for name, shape in tensors.items()}
