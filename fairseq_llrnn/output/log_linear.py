"""The log-linear output layer: p(x | K) ∝ b(K, x) exp(a(K)ᵀ φ(x)), with a(K) = W h + c.

Sizes: N positions, V words, S signatures, F features, H hidden width. Probabilities are natural logarithms. Source:
Dymetman & Xiao 2016, §2 (equation 2 and §2.2); the signature form is derived in docs/design.md: scores over S
signatures, hidden Eᵀ + Φ c + log_mass with E = Φ W, then the share inside the class. Softmax is the special case φ =
one-hot, b = 1: then E = W, and this is a linear layer, bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.backgrounds.masses import Masses
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.output.feature_weights import SparseRows, at_least_float32, row_scores


@dataclass(frozen=True)
class SlotScores:
    """Classes S … S + J − 1, which have no row among the signatures: slots of a sentence, and others of a context."""

    scores: Tensor  # aᵀφ of every one, (N, J)
    log_mass: Tensor  # (N, J)
    replaced: int | None = None  # the signature in whose place the last of them stands

    def places(self, classes: Tensor, static: int) -> Tensor:
        """Classes of words, with the last one where they are of the signature that it replaces; static: S."""
        if self.replaced is None:
            return classes
        return classes.masked_fill(classes == self.replaced, static + self.scores.size(-1) - 1)


def class_log_probs(scores: Tensor, log_mass: Tensor | Masses) -> Tensor:
    """log p(σ | K) for every signature: scores (…, S) -> (…, S).

    Args:
        log_mass: broadcasts to the scores; or masses of N rows, for scores (N, S).
    """
    if isinstance(log_mass, Tensor):
        return functional.log_softmax(scores + log_mass.to(scores.dtype), dim=-1)
    shared = log_mass.shared.to(scores.dtype)
    if len(shared) in (1, len(scores)):
        return functional.log_softmax(log_mass.correct(scores + shared), dim=-1)
    grouped = scores.unflatten(0, (len(shared), -1)) + shared.unsqueeze(1)
    return functional.log_softmax(grouped.flatten(0, 1), dim=-1)


def best_words(classes: Tensor, background: Background, state: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k most probable words, exactly, without a V-sized tensor: log p(σ | K) (N, S) -> log p and tokens (N, k).

    A word among the k best lies in one of the k classes whose best members are best: if its class were not among
    them, k other classes would each hold a better word.
    """
    best = classes + background.best_share(state).to(classes.dtype)
    values, chosen = best.topk(min(k, best.size(-1)), dim=-1)  # shape: (N, C)
    return best_words_of(classes.gather(1, chosen), chosen, values, background, state, k)


def best_words_of(
    log_probs: Tensor, chosen: Tensor, best: Tensor, background: Background, state: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """As `best_words`, of the k classes whose best members are best.

    Args:
        log_probs, chosen: log p(σ | K), and which classes these are, (N, C). best: log p of their best members.
    """
    tokens = background.only_member(state, chosen)
    several = (tokens < 0) & ~best.isneginf()
    row, _ = several.nonzero(as_tuple=True)
    # k, or as many as make k in all; a class of one member, as most of the best are, has given its best already
    more = (k if len(row) > 0 else -(-k // best.size(1))) - 1
    values = functional.pad(best.unsqueeze(2), (0, more), value=NEGATIVE_INFINITY)
    tokens = functional.pad(tokens.clamp_min(0).unsqueeze(2), (0, more))
    if len(row) > 0:
        full = chosen[several]
        shares, members = background.for_rows(row).best_members(state[row], full.unsqueeze(1), k)
        values[several] = log_probs[several].unsqueeze(1) + shares.squeeze(1).to(log_probs.dtype)
        tokens[several] = members.squeeze(1)
    result, where = values.flatten(1).topk(min(k, values[0].numel()), dim=-1)
    return result, tokens.flatten(1).gather(1, where)


class LogLinearOutput(nn.Module):
    """The output layer over a table of signature features and a background.

    `weight` (F, H) and `bias` (F,) map the hidden state to the adaptor a(K) (F,). The adaptor itself is only formed by
    `adaptor` and by the norm: everything else works with the composed rows E = Φ W.

    Args:
        features: S rows, φ(σ).
        class_of: (V,) the signature of every word.
        hidden_size: H.
    """

    class_of: Tensor

    def __init__(self, features: FeatureTable, class_of: Tensor, hidden_size: int) -> None:
        super().__init__()
        self.rows = SparseRows(features)
        self.register_buffer("class_of", class_of, persistent=False)
        self.weight = nn.Parameter(torch.empty(features.num_features, hidden_size))
        self.bias = nn.Parameter(torch.zeros(features.num_features))
        nn.init.uniform_(self.weight, -0.1, 0.1)

    def composed(self, subset: Tensor | None = None, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """E = Φ W (S, H) and Φ c (S,): compute once per batch.

        Args:
            subset: the classes (K,) whose rows are asked for, (K, H) and (K,); by default all of them.
            weight: W with more columns, (F, H').
        """
        weight = self.weight if weight is None else weight
        bias = at_least_float32(self.bias).unsqueeze(1)
        if subset is not None:
            return self.rows.compose_subset(weight, subset), self.rows.compose_subset(bias, subset).squeeze(1)
        return self.rows.compose(weight), self.rows.compose(bias).squeeze(1)

    def class_scores(self, hidden: Tensor, composed: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """aᵀφ(σ), the background left out: (…, H) -> (…, S), at least float32. A temperature may divide it."""
        rows, bias = self.composed() if composed is None else composed
        return row_scores(hidden, rows, bias)

    def adaptor(self, hidden: Tensor) -> Tensor:
        """a(K) = W h + c, one weight per feature: (…, H) -> (…, F), at least float32.

        To look at, and for norms other than 2.
        """
        h, weight, bias = self._precise(hidden)
        return h @ weight.T + bias

    def adaptor_norm(self, hidden: Tensor, p: float = 2.0) -> Tensor:
        """‖a(K)‖ₚ at every position: (N, H) -> (N,). The distance of p(· | K) from the background (paper §2.2).

        For p = 2 through the H×H Gram matrix of W, so that no N×F matrix is formed.
        """
        if p != 2.0:
            return torch.linalg.vector_norm(self.adaptor(hidden), ord=p, dim=-1)
        h, weight, bias = self._precise(hidden)
        squared = ((h @ (weight.T @ weight)) * h).sum(-1) + 2.0 * (h @ (weight.T @ bias)) + bias @ bias
        # shape: (N,); rounding can take a tiny square below zero
        return squared.clamp_min(1e-12).sqrt()

    def _precise(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """hidden, weight and bias in one dtype of at least float32, whatever the products of the network are in."""
        precise = torch.promote_types(self.weight.dtype, torch.float32)
        return hidden.to(precise), self.weight.to(precise), self.bias.to(precise)
