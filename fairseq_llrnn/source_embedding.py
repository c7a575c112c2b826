"""Embeddings of source words for an encoder, by their features in a prior of the source language.

    read = SourceEmbedding(Prior.load("data-bin/prior.de"), 256)
    vectors = read(read.encode(["ein Haus steht dort ."]))                   # (B, L) -> (B, L, 256)
    read = SourceEmbedding(prior, 256, other_embedding)                      # the sum of both embeddings

Sizes: B batch, L source length, V words, D width. e(x) = Σ_f ψ_f(x) U_f, as for target words in a decoder. A prior
built with input_top_words all gives every word its own row in addition to those of its features. Padding is the zero
vector, and strings outside the dictionary are `<unk>`. The module `other_embedding` may embed them as well. The
background and other parts of the prior are unused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.features.dictionary import PAD, UNK, plain
from fairseq_llrnn.head.checks import check_fingerprint, fingerprint_of
from fairseq_llrnn.head.inputs import numbers
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.prior.prior import Prior

FINGERPRINT = "source_prior_fingerprint"  # the end of its name in a checkpoint
OPTION = "--source-prior"
CALLED = "source prior"


class SourceEmbedding(nn.Module):
    """Ids of source words -> ψ-embeddings, instead of a table with a row per word (module docstring)."""

    source_prior_fingerprint: Tensor

    def __init__(
        self, prior: Prior, size: int, other_embedding: nn.Module | None = None, row_rms: float | None = None
    ) -> None:
        """
        Args:
            prior: of the source's dictionary.
            size: D.
            other_embedding: another embedding of that width, with its `words`.
            row_rms: as for FeatureInput.
        """
        super().__init__()
        self.prior = prior
        self.num_words, self.unk = len(prior.symbols), prior.index(UNK)
        self.embedding_dim, self.padding_idx = size, prior.index(PAD)  # torch's names, which fairseq's encoders use
        class_of = torch.from_numpy(prior.input.class_of.copy())
        self.features = FeatureEmbedding(prior.input.features, class_of, size, row_rms=row_rms)
        self.characters = other_embedding  # its name in checkpoints
        self.register_buffer(FINGERPRINT, fingerprint_of(prior))

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, L) -> (B, L, D)"""
        tokens = plain(tokens)
        vectors: Tensor = self.features(tokens.masked_fill(tokens >= self.num_words, self.unk))
        if self.characters is not None:
            vectors = vectors + self.characters(tokens)
        return vectors * tokens.ne(self.padding_idx).unsqueeze(-1)

    def encode(self, lines: Sequence[str]) -> Tensor:
        """Return the token ids of tokenised sentences, each with `</s>`, padded on the right: (B, L)."""
        words: Any = self.prior.session.target if self.characters is None else self.characters.words
        index = None if self.characters is None else words.index
        return numbers(lines, words, index).to(self.features.weight.device)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        check_source_prior(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def unused_parts(prior: Prior) -> list[str]:
    """Return the names of the parts of a prior that an encoder does not use."""
    parts = [name for name, part in zip(prior.names, prior.parts, strict=True) if part.kind != "guesses"]
    return ["its background", *parts]


def check_source_prior(embedding: nn.Module, state: Mapping[str, Any], prefix: str) -> None:
    """Check that weights of an encoder were trained with this source prior, or both without one.

    Args:
        embedding: of the encoder. state: of a checkpoint. prefix: of the encoder's weights.

    Raises:
        PriorError: with the difference.
    """
    saved = next((state[name] for name in state if name.startswith(prefix) and name.endswith(FINGERPRINT)), None)
    if isinstance(embedding, SourceEmbedding):
        if saved is None:
            raise PriorError(
                f"{OPTION}: the checkpoint was trained without {OPTION}; leave it out, or set another --save-dir to "
                "train from scratch"
            )
        check_fingerprint(embedding.source_prior_fingerprint, saved, embedding.prior.folder, CALLED)
    elif saved is not None:
        raise PriorError(
            f"the checkpoint was trained with a prior of the source's words; pass it with {OPTION}, or set another "
            "--save-dir to train from scratch"
        )
