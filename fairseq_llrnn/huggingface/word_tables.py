"""Tables of words that a network reads: by features, or with terms and strings outside the dictionary."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from fairseq_llrnn.features.dictionary import plain


class TargetWords(nn.Module):
    """The head's embeddings where a network expects a table of words. Padding is the zero vector."""

    def __init__(self, model: Any, scale: float = 1.0) -> None:
        """model: a LogLinearModel."""
        super().__init__()
        self._model = (model,)  # no part of this module; PEFT may give it another head
        self.scale = scale

    def forward(self, tokens: Tensor) -> Tensor:
        head = self._model[0].head
        vectors = head.embed(tokens) * tokens.ne(head.pad).unsqueeze(-1)
        return vectors if self.scale == 1.0 else vectors * self.scale


class SourceWords(nn.Embedding):
    """A table of the source's words, which reads terms and strings outside the dictionary as what they stand at."""

    def __init__(self, number: int, width: int, pad: int, unk: int | None, scale: float = 1.0) -> None:
        """unk: what strings outside the dictionary are read as. None: there are none."""
        super().__init__(number, width, pad)
        self.unk, self.scale = unk, scale

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = plain(tokens)
        if self.unk is not None:
            tokens = tokens.masked_fill(tokens >= self.num_embeddings, self.unk)
        vectors = super().forward(tokens)
        return vectors if self.scale == 1.0 else vectors * self.scale


def scale_of(table: nn.Module) -> float:
    """By what a table of words multiplies its rows."""
    return float(getattr(table, "scalar_embed_scale", getattr(table, "embed_scale", 1.0)))
