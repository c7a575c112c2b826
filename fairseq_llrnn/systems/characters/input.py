"""The input of a head and of an encoder from the characters of words, alone or with features.

Sizes: V words, D embedding width, h filters of characters (D = h for characters alone).

A head is given a `CharacterInput`, optionally with features ψ:

    LogLinearHead(prior, H, embedding=CharacterInput(CharacterOptions()))
    LogLinearHead(prior, H, embedding=CharacterInput(CharacterOptions(), FeatureInput(D)))      the sum of both
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from fairseq_llrnn.features.dictionary import OpenWords
from fairseq_llrnn.head.inputs import FeatureInput, ReadAs, WordFeatures
from fairseq_llrnn.systems.characters.network import CharacterEmbedding, CharacterOptions

if TYPE_CHECKING:
    from fairseq_llrnn.head.head import LogLinearHead


class CharacterWords(CharacterEmbedding):
    """An embedding of word ids, and of strings outside the dictionary, whose ids begin at V."""

    name = "characters"
    sparse_gradients = False

    def __init__(
        self, words: OpenWords, options: CharacterOptions, features: WordFeatures | None = None, scale: float = 1.0
    ) -> None:
        """features: their vectors, of the same width, are added. scale: as in CharacterEmbedding."""
        super().__init__(words, options, scale=scale)
        self.features, self.num_words = features, words.num_words
        self._modules["network"] = self._modules.pop("network")  # last, the order of optimizers in older checkpoints

    @property
    def input_id_of(self) -> ReadAs | None:
        """Return the features' mapping from strings to input ids."""
        return None if self.features is None else self.features.input_id_of

    @input_id_of.setter
    def input_id_of(self, input_id_of: ReadAs | None) -> None:
        if self.features is not None:
            self.features.input_id_of = input_id_of

    def kept_rows(self) -> Tensor | None:
        """Return the rows of WordFeatures.kept_rows, if there are features."""
        return None if self.features is None else self.features.kept_rows()

    def to_input_ids(self, tokens: Tensor, read: Tensor) -> Tensor:
        """Return input ids as WordFeatures does, but keep the ids of strings."""
        return torch.where(tokens >= self.num_words, tokens, read)

    def forward(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return vectors: (…,) -> (…, D). rows: from `kept_rows`, for repeated use."""
        spelled = super().forward(tokens)
        if self.features is None:
            return spelled
        words = tokens.masked_fill(tokens >= self.num_words, self.features.unk)
        by_features: Tensor = self.features(self.features.to_input_ids(tokens, words), rows)
        return spelled + by_features


@dataclass(frozen=True)
class CharacterInput:
    """Make the character embedding of a head.

    Args:
        features: further input, whose size is the width of both.
        scale: as in CharacterEmbedding.
    """

    options: CharacterOptions
    features: FeatureInput | None = None
    scale: float = 1.0
    option: ClassVar[str] = "--input-characters"

    @property
    def size(self) -> int:
        """Return D."""
        return self.options.output_size if self.features is None else self.features.size

    def __call__(self, head: LogLinearHead) -> CharacterWords:
        """Return the embedding. Raises OptionError as FeatureInput does."""
        words = head.prior.session.target
        if self.features is None:
            return CharacterWords(words, self.options, scale=self.scale)
        options = replace(self.options, size=self.features.size)
        return CharacterWords(words, options, self.features(head), self.scale)
