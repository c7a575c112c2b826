"""Encoders, the words of a sentence -> one vector, and classifiers over such vectors (Jernite 2018, section 5.4).

Sizes: B sentences or examples, L words of the longest, E width of a word's vector, D width of a sentence's, R
relations.

CBOW is the sum of the words' vectors (E = D). GRU and BiGRU take the maximum of their states over the words in each
dimension. Word vectors come from a table with a row per word, or from features or characters (source_embedding.py).
Dropout applies to word vectors; the thesis has none.

The classifiers are bilinear (eq. 5.1 to 5.3):

    ORDER         p(flipped | l, r) = σ(lᵀ M r)                          M (D, D)       (5.1)
    NEXT          p(i | c, p) ∝ exp(cᵀ M p_i)                            M (3D, D)      (5.2)
    CONJUNCTION   p(c | l, r) ∝ exp(lᵀ M_c r)                            M (R, D, D)    (5.3)

c is the concatenation of the three context sentences, so M has 3D rows (the thesis has D).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.networks.recurrent import RecurrentEncoder
from llrnn_research.discourse.data import CONTEXT, RELATIONS

CBOW, GRU, BIGRU = "cbow", "gru", "bigru"
KINDS = (CBOW, GRU, BIGRU)
INITIAL = 0.1  # initial weights are in (−0.1, 0.1), the smallest range in the thesis


class SumOfWords(nn.Module):
    """The CBOW encoder."""

    def __init__(self, embedding: nn.Module, size: int, dropout: float = 0.0) -> None:
        """embedding: tokens (B, L) -> (B, L, D), zero at padding. size: D."""
        super().__init__()
        self.embedding, self.output_size, self.dropout = embedding, size, dropout

    def forward(self, tokens: Tensor) -> Tensor:
        """Return sentence vectors: (B, L), padded -> (B, D)."""
        vectors = functional.dropout(self.embedding(tokens), self.dropout, self.training)
        return vectors.sum(1)


class MaximumOfStates(nn.Module):
    """The GRU and BiGRU encoders."""

    def __init__(self, network: RecurrentEncoder) -> None:
        super().__init__()
        self.network, self.output_size = network, network.output_size

    @property
    def embedding(self) -> nn.Module:
        return self.network.embedding

    def forward(self, tokens: Tensor) -> Tensor:
        """Return sentence vectors: (B, L), padded, at least one word per row -> (B, D)."""
        states, _ = self.network(tokens)
        return states.masked_fill(tokens.eq(self.network.pad).unsqueeze(-1), -math.inf).amax(1)


def build_encoder(
    kind: str, embedding: nn.Module, pad: int, embed_size: int, size: int, dropout: float = 0.0
) -> SumOfWords | MaximumOfStates:
    """Return an encoder.

    Args:
        kind: of KINDS.
        embedding: tokens -> vectors of width `embed_size`, zero at padding.
        size: D, equal to `embed_size` for CBOW, and even for BiGRU.
        dropout: of word vectors, in training.
    """
    if kind == CBOW:
        return SumOfWords(embedding, size, dropout)
    is_bidirectional = kind == BIGRU
    hidden = size // 2 if is_bidirectional else size
    network = RecurrentEncoder(
        0, pad, embed_size, hidden, 1, "gru", bidirectional=is_bidirectional, dropout_in=dropout, embedding=embedding
    )
    return MaximumOfStates(network)


class Classifiers(nn.Module):
    """A classifier matrix for each objective."""

    def __init__(self, objectives: Sequence[str], size: int) -> None:
        """size: D."""
        super().__init__()
        shapes = {"order": (size, size), "next": (CONTEXT * size, size), "conjunction": (len(RELATIONS), size, size)}
        self.matrices = nn.ParameterDict(
            {name: nn.Parameter(torch.empty(shapes[name]).uniform_(-INITIAL, INITIAL)) for name in objectives}
        )

    def forward(self, objective: str, sentences: Tensor) -> Tensor:
        """Return the logits of all answers: (B, sentences of an example, D) -> (B, answers)."""
        matrix = self.matrices[objective]
        if objective == "next":
            context = sentences[:, :CONTEXT].flatten(1)  # shape: (B, 3D)
            return torch.einsum("bd,bpd->bp", context @ matrix, sentences[:, CONTEXT:])
        left, right = sentences.unbind(1)
        if objective == "conjunction":
            return torch.einsum("rbd,bd->br", left @ matrix, right)
        flipped = ((left @ matrix) * right).sum(1)
        return torch.stack([torch.zeros_like(flipped), flipped], 1)
