"""What a network reads of words: an embedding that the caller gives, by default of their features ψ.

Sizes: V words, R input signatures, D embedding width.

    LogLinearHead(prior, H, embedding=FeatureInput(D))        e(x) = Σ_f ψ_f(x) U_f
    LogLinearHead(prior, H, embedding=FeatureInput(H, tied=True))         … with the weights of the output
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import UNK
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.prior.prior import Prior

if TYPE_CHECKING:
    from fairseq_llrnn.head.head import LogLinearHead

ReadAs = Callable[[Tensor, Tensor], Tensor]  # ClassSource.read_as


class InputEmbedding(Protocol):
    """A module that a head reads with; `WordFeatures` says what is what."""

    name: ClassVar[str]  # of the module in the head, and so of its weights in a checkpoint
    embedding_dim: int  # D
    sparse_gradients: bool

    @property
    def read_as(self) -> ReadAs | None:
        """What tells strings outside the dictionary apart by their features."""
        ...

    @read_as.setter
    def read_as(self, read_as: ReadAs | None) -> None: ...

    def kept_rows(self) -> Tensor | None: ...

    def readable(self, tokens: Tensor, read: Tensor) -> Tensor: ...

    def __call__(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor: ...

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None: ...


class WordFeatures(FeatureEmbedding):
    """Embeds tokens by their features ψ; strings outside the dictionary as what they look like, or as `<unk>`."""

    name = "embedding"
    read_as: ReadAs | None = None  # of a source of classes that tells strings apart by their features

    def __init__(self, prior: Prior, size: int, weight: torch.nn.Parameter | None = None) -> None:
        """size: D. weight: (G, D), shared with another layer."""
        read = prior.input
        for part in prior.parts:
            read = part.readable(read)
        super().__init__(read.features, torch.from_numpy(read.class_of.copy()), size, weight)
        self.embedding_dim = size  # torch's name
        self.num_words, self.unk = len(prior.symbols), prior.index(UNK)

    def kept_rows(self) -> Tensor | None:
        """Those of all input signatures, (R, D), to hand to `forward` several times; None: it needs none."""
        none = self.sparse_gradients and torch.is_grad_enabled()
        return None if none else self.rows.compose(self.weight)

    def readable(self, tokens: Tensor, read: Tensor) -> Tensor:
        """The tokens as `forward` can read them; read: with <unk> for strings outside the dictionary."""
        return read if self.read_as is None else self.read_as(tokens, read)

    def forward(self, tokens: Tensor, table: Tensor | None = None) -> Tensor:
        """(…,) -> (…, D); table: of `kept_rows`, to use again."""
        vocabulary_size = self.num_words if self.read_as is None else self.class_of.numel()
        vectors: Tensor = super().forward(tokens.masked_fill(tokens >= vocabulary_size, self.unk), table)
        return vectors

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None:
        """Check, or change, what a checkpoint has of it; prefix: of the head's names, ends in a dot."""


class InputOf(Protocol):
    """Makes the embedding of a head."""

    option: ClassVar[str]  # what messages call it

    @property
    def size(self) -> int:
        """D"""
        ...

    def __call__(self, head: LogLinearHead) -> torch.nn.Module: ...


@dataclass(frozen=True)
class FeatureInput:
    """Makes the embedding of a head by features.

    Args:
        size: D. tied: whether it shares the weights per feature with the output; D must be H then.
    """

    size: int
    tied: bool = False
    option: ClassVar[str] = "--feature-input"

    def __call__(self, head: LogLinearHead) -> WordFeatures:
        """Raises OptionError where the weights cannot be shared."""
        prior = head.prior
        if self.tied and self.size != head.hidden_size:
            raise OptionError(f"FeatureInput: tied: expected the size {head.hidden_size}, which is hidden_size, found "
                              f"{self.size}")  # fmt: skip
        if self.tied and prior.input.features.names != prior.output.features.names:
            raise OptionError(
                "FeatureInput: tied: expected the same features in input and output, but the prior was built with "
                "other input features; build it without them, or do not tie"
            )
        return WordFeatures(prior, self.size, head.output.weight if self.tied else None)
