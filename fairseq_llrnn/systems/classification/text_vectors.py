"""One vector of a text: the mean of its words' vectors, or a recurrent network's states, pooled.

Sizes: B texts, L words, D width of a word's vector, H width of a text's. Sources: Joulin et al. 2017 (fastText), the
mean; Conneau et al. 2017, maximum and mean over the states of a network that reads in both directions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.networks.recurrent import RecurrentEncoder

POOLINGS = ("max", "mean", "last")


class BagOfWords(nn.Module):
    """The mean of the vectors of a text's words, </s> among them, so that a text without words has a vector, too.

    Args:
        num_words, pad: of the dictionary. size: D, and H. embedding: tokens (B, L) -> (B, L, D), zero at padding; None:
            a table with a row per word. sparse_gradients: those of the table have rows of the batch's words
            and no other; torch's Adagrad and SGD take them.
    """

    def __init__(
        self,
        num_words: int,
        pad: int,
        size: int,
        dropout: float = 0.0,
        embedding: nn.Module | None = None,
        sparse_gradients: bool = False,
    ) -> None:
        super().__init__()
        self.sparse_gradients = sparse_gradients
        self.pad, self.output_size, self.dropout = pad, size, dropout
        self.embedding = nn.Embedding(num_words, size, padding_idx=pad) if embedding is None else embedding
        if isinstance(self.embedding, nn.Embedding):
            nn.init.uniform_(self.embedding.weight, -1.0 / size, 1.0 / size)  # as fastText does
            nn.init.zeros_(self.embedding.weight[pad])

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, L) -> (B, H)"""
        if isinstance(self.embedding, nn.Embedding):  # without a tensor of (B, L, D)
            mean = functional.embedding_bag(
                tokens, self.embedding.weight, mode="mean", padding_idx=self.pad, sparse=self.sparse_gradients
            )
        else:
            mean = self.embedding(tokens).sum(1) / tokens.ne(self.pad).sum(1, keepdim=True)
        return functional.dropout(mean, self.dropout, self.training)


class PooledStates(nn.Module):
    """The states of a recurrent encoder at all words of a text, pooled: their maximum, their mean, or the last ones."""

    def __init__(self, encoder: RecurrentEncoder, pooling: str = "max") -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise ValueError(f"pooling: expected one of {POOLINGS}, found {pooling!r}")
        self.encoder, self.pooling, self.output_size = encoder, pooling, encoder.output_size

    @property
    def embedding(self) -> nn.Module:
        """What reads the words."""
        return self.encoder.embedding

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, L) -> (B, H)"""
        states, last = self.encoder(tokens)
        if self.pooling == "last":
            return last
        valid = tokens.ne(self.encoder.pad).unsqueeze(-1)
        if self.pooling == "mean":
            return (states * valid).sum(1) / valid.sum(1)
        return states.masked_fill(~valid, -torch.inf).amax(1)
