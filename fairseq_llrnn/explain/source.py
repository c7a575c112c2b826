"""What the source sentence had to say about each word of its translation.

Sizes: T positions of the translation, L positions of the source with its </s>, S signatures. Probabilities are natural
logarithms. Source tokens are named by their place, from 0: a word that comes twice has two. What the slots of a source
offer is in explain/slots.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background

Places = tuple[tuple[int, float], ...]  # (place in the source, value), the largest value first


@dataclass(frozen=True)
class SourceEvidence:
    """One position of a translation."""

    log_background: float  # log b₀(K, token) / Σ_x b₀(K, x): what the background says without the source
    attention: Places | None  # the places the model looked at before the token; None: it has no attention
    translations: Places | None  # the places s with t(token | s) > 0; None: the prior has no lexical translations


@torch.inference_mode()
def source_evidence(
    table: LexicalTable | None,
    background: Background,
    source: Tensor,
    tokens: Tensor,
    attention: Tensor | None,
    top: int,
    outside: Tensor | None = None,
) -> list[SourceEvidence]:
    """What the source says of every token.

    Args:
        table: of lexical translations, where there are any.
        background: b₀, which knows of no source. source: (L,) indices of the source's tokens. tokens: (T,) indices of
            the translation's. attention: (T, L) of the model. top: how many places (fewer where there are fewer).
        outside: (T,) bool, which tokens are strings outside the vocabulary, whatever `tokens` has for them: without the
            source they are impossible.
    """
    said: list[dict[int, float]] | None = None
    if table is not None:
        said = [dict(table.row(s)) for s in source.tolist()]
    log_weights = _log_weights(background, tokens)
    if outside is not None:
        log_weights = log_weights.masked_fill(outside, NEGATIVE_INFINITY)
    return [
        SourceEvidence(
            log_background=log_weight,
            attention=None if attention is None else _largest_first(enumerate(attention[t].tolist()), top),
            translations=None
            if said is None
            else _largest_first(((s, row[token]) for s, row in enumerate(said) if token in row), top),
        )
        for t, (token, log_weight) in enumerate(zip(tokens.tolist(), log_weights.tolist(), strict=True))
    ]


def _log_weights(background: Background, tokens: Tensor) -> Tensor:
    """log of the normalised background of each token after those before it: (T,) -> (T,)."""
    previous = tokens.roll(1).unsqueeze(0)  # the first one is not read
    states, masses = background.along(previous)
    log_weight = masses.of_classes(background.class_of[tokens]) + background.log_share(states, tokens)
    return log_weight - masses.dense().logsumexp(1)


def _largest_first(values: Iterable[tuple[int, float]], top: int) -> Places:
    return tuple(sorted(values, key=lambda item: -item[1])[:top])
