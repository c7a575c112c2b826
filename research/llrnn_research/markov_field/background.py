"""A field as a background: the distribution of the next word given the last K words.

Sizes: V words of the prior, R kinds of tokens of the field, K order, D width, N hypotheses, n contexts.

From left to right, the next word has exactly p(tᵢ = x | earlier words) ∝ exp(θ⁰_x + Σ_l θˡ(tᵢ₋ₗ, x)) · β(x, tᵢ₋₁, …,
tᵢ₋ₖ₊₁). β sums over all continuations, and has R^K values. Here β is approximated by a product of one factor for each
of its words. Then only the factor of x matters, whose logarithm is the *future potential* ρ:

    q(x | tᵢ₋₁, …, tᵢ₋ₖ)  ∝  exp( θ⁰_x + ρ_x + Σ_l θˡ(tᵢ₋ₗ, x) )

    e^ρ_x    ∝  Π_l Σ_y g_l(y) exp θˡ(x, y)                       effect of x on the words after it
    g_l(y)   =  exp(θ⁰_y + ρ_y) · Π_{l' ≠ l} c_l'(y)              their weights without x
    c_l(y)   =  Σ_x μ(x) exp θˡ(x, y)                             other words, averaged over the marginals μ

For K = 1 this is the eigenvector of exp(θ⁰_y + θ¹(x, y)) with the largest eigenvalue, and q is exact in a long text.
For K > 1, q approximates the field's conditional, and is itself a distribution.

In a `MarkovBackground`, words that the field lacks share the weight of <unk>, equally with <unk>. Words of the field
only are dropped, and so are words that b₀ forbids, so b need not sum to one.

    b(K, x)  =  q(row(x) | rows of the last K words) · share(x)
"""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, Background
from llrnn_research.markov_field.potentials import Potentials
from llrnn_research.markov_field.pseudo_likelihood import batches
from llrnn_research.markov_field.star import MEMORY, Exponentials

ITERATIONS, TOLERANCE = 500, 1e-8


def future_potential(potentials: Potentials, marginals: Tensor, memory: int = MEMORY) -> Tensor:
    """Return ρ, (R,), with mean 0 under the marginals μ, (R,), of a token. Forbidden tokens are ignored."""
    exponentials = Exponentials(potentials, 1.0, memory)
    edges = range(potentials.order)
    means = [exponentials.log_columns(edge, marginals.log()) for edge in edges]  # log c_l
    rho = torch.zeros_like(potentials.unary)
    for _ in range(ITERATIONS):
        next_rho = torch.zeros_like(rho)
        for edge in edges:
            others = [mean for other, mean in enumerate(means) if other != edge]
            next_rho += exponentials.log_rows(edge, sum(others, potentials.unary + rho))
        next_rho -= marginals @ next_rho
        change = float((next_rho - rho).abs().max())
        rho = next_rho
        if change < TOLERANCE:
            break
    return rho


def next_log_probs(potentials: Potentials, rho: Tensor, before: Tensor) -> Tensor:
    """Return log q of all tokens: `before` (n, K), the last token first -> (n, R)."""
    scores = potentials.unary + rho
    for edge in range(potentials.order):
        scores = scores + potentials.rows(edge, before[:, edge])
    return scores - scores.logsumexp(1, keepdim=True)


def log_probs_left_to_right(potentials: Potentials, rho: Tensor, window: Tensor) -> Tensor:
    """Return log q of the last token of each row given those before it: (N, K+1) -> (N,)."""
    parts = []
    for batch in batches(window, potentials.size):
        log_q = next_log_probs(potentials, rho, batch[:, :-1].flip(1))
        parts.append(log_q.gather(1, batch[:, -1:]).squeeze(1))
    return torch.cat(parts) if parts else rho.new_zeros(0)


class MarkovBackground(Background):
    """A background whose state is the rows of the last K words, the last first, padded with separators: (N, K)."""

    row_of: Tensor  # (V,) int64
    log_shares_of_rows: Tensor  # (V,) −inf forbids
    unary: Tensor  # (R,) θ⁰ + ρ
    left: Tensor  # (K, R, D), or θˡ itself: (K, R, R)
    right: Tensor | None  # (K, R, D)

    def __init__(
        self, class_of: Tensor, num_classes: int, row_of: Tensor, log_share: Tensor, field: Potentials, separator: int
    ) -> None:
        """
        Args:
            class_of, row_of, log_share: (V,).
            field: with θ⁰ + ρ in place of θ⁰.
            separator: the row of </s>.
        """
        super().__init__(class_of, num_classes)
        self.register_buffer("row_of", row_of, persistent=False)
        self.register_buffer("log_shares_of_rows", log_share, persistent=False)
        self.register_buffer("unary", field.unary, persistent=False)
        self.register_buffer("left", torch.stack(field.left), persistent=False)
        self.register_buffer("right", None if field.right is None else torch.stack(field.right), persistent=False)
        self.separator = separator

    def start(self, n: int) -> Tensor:
        return self.row_of.new_full((n, len(self.left)), self.separator)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        after = torch.cat([self.row_of[tokens].unsqueeze(1), state[:, :-1]], dim=1)
        return after.masked_fill((tokens == END).unsqueeze(1), self.separator)

    def possible_words(self) -> Tensor:
        return self.log_shares_of_rows.isfinite()

    def log_weights(self, state: Tensor) -> Tensor:
        right = None if self.right is None else tuple(self.right)
        field = Potentials(self.unary, tuple(self.left), right)
        log_q = next_log_probs(field, torch.zeros_like(self.unary), state)
        weights = log_q[:, self.row_of] + self.log_shares_of_rows
        return weights.masked_fill(self.log_shares_of_rows == NEGATIVE_INFINITY, NEGATIVE_INFINITY)
