"""Why a model gave a word its probability: log p = log b + aᵀφ − log Z, term by term.

Sizes: T positions, V words, S signatures, F features, H hidden width. Probabilities are natural logarithms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.core.backgrounds.contract import Background
from fairseq_llrnn.core.features import SPECIAL, TOP_FORM, FeatureTable
from fairseq_llrnn.core.lexicon import feature_group
from fairseq_llrnn.core.log_linear import LogLinearOutput
from fairseq_llrnn.core.prior import Prior
from fairseq_llrnn.core.source_evidence import SourceEvidence

Weighed = tuple[tuple[str, float], ...]  # (name, value), the most important first


@dataclass(frozen=True)
class Explanation:
    """One position of a sentence. With b normalised, log_prob = log_background + Σ own_features + normaliser."""

    token: str
    log_prob: float  # log p(token | K); −inf where the background forbids it
    rank: int  # 1 + how many of the V words are more probable
    log_background: float  # log b(K, token) / Σ_x b(K, x)
    predictions: Weighed  # the most probable words and log p
    expected: tuple[tuple[str, float, float], ...]  # shared features, E_b[φ_f], E_p[φ_f]; the largest change first
    own_features: Weighed  # all features of the token and a_f φ_f(token), the largest |a_f φ_f| first
    strongest: Weighed  # features that words share (POS:VERB) and a_f, the largest |a_f| first
    strongest_words: Weighed  # likewise, features that are a single word's identity (TOPFORM:elle)
    normaliser: float  # −log Z, where Z = Σ_x b(K, x) exp(aᵀφ(x)) / Σ_x b(K, x); the same for every word
    source: SourceEvidence | None = None  # what the source had to say, where this is a translation


@torch.inference_mode()
def explain(
    prior: Prior, output: LogLinearOutput, background: Background, hidden: Tensor, tokens: Tensor, top: int
) -> Iterator[Explanation]:
    """Explain a sentence position by position: one V-sized row at a time, whatever its length.

    Args:
        hidden: (T, H) states of the network before each token. tokens: (T,) indices of the words.
        top: how many predictions and strongest features (fewer where there are fewer).
    """
    composed = output.composed()
    table = prior.output.features
    names, index = table.names, {name: f for f, name in enumerate(table.names)}
    is_identity = np.array([feature_group(name) in (TOP_FORM, SPECIAL) for name in names])
    shared, identities = np.flatnonzero(~is_identity), np.flatnonzero(is_identity)
    state = background.start(1)
    for t, token in enumerate(tokens.tolist()):
        if t > 0:
            state = background.advance(state, tokens[t - 1 : t])
        log_mass = background.log_mass(state)  # shape: (1, S)
        log_shares = background.log_shares(state)  # shape: (1, V)
        scores = output.class_scores(hidden[t : t + 1], composed)  # shape: (1, S)
        log_probs = background.word_log_probs(output.class_log_probs(scores, log_mass), state)[0]  # shape: (V,)
        adaptor = output.adaptor(hidden[t]).tolist()  # F
        under_background = _expectations(table, log_mass)
        under_model = _expectations(table, scores + log_mass)
        change = np.abs(under_model - under_background)
        total_mass = log_mass.logsumexp(-1).item()
        signature = int(output.class_of[token])
        row = table.row(signature)
        own = ((name, adaptor[index[name]] * value) for name, value in row.items())
        yield Explanation(
            token=prior.symbols[token],
            log_prob=log_probs[token].item(),
            rank=1 + int((log_probs > log_probs[token]).sum()),
            log_background=(log_mass[0, signature] + log_shares[0, token]).item() - total_mass,
            predictions=_predictions(prior, output, background, scores, log_mass, state, top),
            expected=tuple(
                (names[f], float(under_background[f]), float(under_model[f]))
                for f in shared[np.argsort(-change[shared], kind="stable")][:top]
            ),
            own_features=_strongest_first(own),
            strongest=_strongest_first((names[f], adaptor[f]) for f in shared)[:top],
            strongest_words=_strongest_first((names[f], adaptor[f]) for f in identities)[:top],
            normaliser=total_mass - (scores + log_mass).logsumexp(-1).item(),
        )


def _expectations(table: FeatureTable, class_scores: Tensor) -> np.ndarray:
    """E[φ] (F,) of the words' distribution whose classes have the scores (1, S)."""
    probabilities = class_scores[0].double().softmax(-1).cpu().numpy()
    entries = table.values * np.repeat(probabilities, np.diff(table.offsets))
    return np.bincount(table.indices, weights=entries, minlength=table.num_features)


def _strongest_first(weights: Iterable[tuple[str, float]]) -> Weighed:
    return tuple(sorted(weights, key=lambda item: -abs(item[1])))


def _predictions(
    prior: Prior,
    output: LogLinearOutput,
    background: Background,
    scores: Tensor,
    log_mass: Tensor,
    state: Tensor,
    top: int,
) -> Weighed:
    classes = output.class_log_probs(scores, log_mass)
    values, tokens = output.top_k(classes, background, state, min(top, len(prior.symbols)))
    found = zip(tokens[0].tolist(), values[0].tolist(), strict=True)
    return tuple((prior.symbols[token], value) for token, value in found if value > float("-inf"))
