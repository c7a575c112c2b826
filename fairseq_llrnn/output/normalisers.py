"""The log-linear output: p(x | K) ∝ b(K, x) exp(a(K)ᵀ φ(x)), a(K) = W h + c, and sums over its classes.

Sizes: N positions or hypotheses, V words, S signatures, J context classes, F features, H hidden width, H' = H plus the
columns of class sources, K queried classes. Probabilities are natural logarithms. Source: Dymetman & Xiao 2016, §2
(equation 2 and §2.2). docs/design.md derives the signature form: scores over S signatures, hidden Eᵀ + Φ c + log_mass
with E = Φ W, plus the log share inside the class. Softmax is the special case φ = one-hot, b = 1: then E = W, and the
result equals a linear layer's bit for bit.

    Exact                log Z sums all signatures; the default
    Sampled(n)           log Z sums a random sample, in training (sampled.py)
    …                    others: `LogLinearHead(normaliser=)`

A normaliser is a module of the head. For each batch or search, `compose_rows` returns an object with composed rows,
`Normalised`. All normalisers share this interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import View
from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, ClassWeights, in_groups, log_shares
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.functional import log_linear_nll
from fairseq_llrnn.output.feature_weights import (
    SparseRows,
    at_least_float32,
    draw_weights,
    row_scores,
    row_scores_with,
)


@dataclass(frozen=True)
class SlotScores:
    """Classes S … S + J − 1, without rows among the signatures: slots of a sentence, and other context classes."""

    scores: Tensor  # aᵀφ, (N, J)
    log_mass: Tensor  # (N, J)
    replaced: int | None = None  # the signature that the last class replaces

    def places(self, classes: Tensor, static: int) -> Tensor:
        """Return classes with the replaced signature mapped to the last class. static: S."""
        if self.replaced is None:
            return classes
        return classes.masked_fill(classes == self.replaced, static + self.scores.size(-1) - 1)


def class_log_probs(scores: Tensor, log_mass: Tensor | ClassWeights) -> Tensor:
    """Return log p(σ | K) of every signature: scores (…, S) -> (…, S), with −inf if nothing is possible.

    Args:
        log_mass: broadcasts to the scores, or class weights of N rows, for scores (N, S), which are changed in place.
    """
    weighed = scores + log_mass.to(scores.dtype) if isinstance(log_mass, Tensor) else log_mass.added_to(scores)
    log_probs = functional.log_softmax(weighed, dim=-1)
    # NaN means that nothing is possible in a row, which is rare: this check costs a twentieth of masking
    if torch.compiler.is_compiling():
        return log_shares(weighed)
    if bool(log_probs[..., 0].isnan().any()):
        check_scores(weighed.amax(-1), "LogLinearHead", may_be_empty=True)
        return log_shares(weighed)
    return log_probs


def check_scores(largest: Tensor, name: str, may_be_empty: bool = False) -> None:
    """Raise DataError if a row has the score NaN or ∞, or −∞ alone unless it may be empty.

    Args:
        largest: the largest score of each row, of any shape. name: the first words of the message.
    """
    wrong = largest[~(largest.isfinite() | largest.isneginf() if may_be_empty else largest.isfinite())]
    if len(wrong):
        found = "−inf for all tokens" if bool(wrong[0].isneginf()) else "NaN or infinity"
        raise DataError(
            f"{name}: expected finite scores, found {found}; look for weights and hidden states of the network that "
            "are not finite, or compute in float32, as float16 overflows"
        )


def best_words_of(log_probs: Tensor, chosen: Tensor, best: Tensor, view: View, k: int) -> tuple[Tensor, Tensor]:
    """Return the k most probable words of the k classes with the best members: log p and tokens, (N, k) each.

    Args:
        log_probs, chosen: log p(σ | K) and indices of these classes, (N, C). best: log p of their best members.
    """
    tokens = view.only_member(chosen)
    several = (tokens < 0) & ~best.isneginf()
    row, _ = several.nonzero(as_tuple=True)
    # k, or enough to make k in all; most of the best classes have a single member, which is already included
    more = (k if len(row) > 0 else -(-k // best.size(1))) - 1
    values = functional.pad(best.unsqueeze(2), (0, more), value=NEGATIVE_INFINITY)
    tokens = functional.pad(tokens.clamp_min(0).unsqueeze(2), (0, more))
    if len(row) > 0:
        shares, tokens[several] = view.best(chosen[several], k, row)
        values[several] = log_probs[several].unsqueeze(1) + shares.to(log_probs.dtype)
    result, place = values.flatten(1).topk(min(k, values[0].numel()), dim=-1)
    return result, tokens.flatten(1).gather(1, place)


UNSCALED = 1.6  # the bound of weights without an initial scale, times √H: 0.1 at H = 256


class LogLinearOutput(nn.Module):
    """The output layer over a table of signature features and a background.

    `weight` (F, H) and `bias` (F,) map the hidden state to the adaptor a(K) (F,). Only `adaptor` and the norm form the
    adaptor itself. Everything else uses the composed rows E = Φ W.

    Args:
        features: S rows, φ(σ).
        class_of: (V,) the signature of every word.
        hidden_size: H.
        initial_scale: as in LogLinearHead.
    """

    class_of: Tensor

    def __init__(
        self, features: FeatureTable, class_of: Tensor, hidden_size: int, initial_scale: float | None = 1.0
    ) -> None:
        super().__init__()
        self.rows = SparseRows(features)
        self.register_buffer("class_of", class_of, persistent=False)
        self.weight = nn.Parameter(torch.empty(features.num_features, hidden_size))
        self.bias = nn.Parameter(torch.empty(features.num_features))
        self.initial_scale = initial_scale
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights again, and set the biases to 0."""
        width = self.weight.size(1) ** 0.5
        if self.initial_scale is None:
            draw_weights(self.weight, self.rows, None, UNSCALED / width)
        else:
            draw_weights(self.weight, self.rows, self.initial_scale / width)
        nn.init.zeros_(self.bias)

    def composed(self, subset: Tensor | None = None, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return E = Φ W (S, H) and Φ c (S,). Compute them once per batch.

        Args:
            subset: classes (K,), for (K, H) and (K,). default: all of them.
            weight: W with more columns, (F, H').
        """
        weight = self.weight if weight is None else weight
        bias = at_least_float32(self.bias).unsqueeze(1)
        if subset is not None:
            return self.rows.compose_subset(weight, subset), self.rows.compose_subset(bias, subset).squeeze(1)
        return self.rows.compose(weight), self.rows.compose(bias).squeeze(1)

    def class_scores(self, hidden: Tensor, composed: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Return aᵀφ(σ), without the background: (…, H) -> (…, S), at least float32. A temperature may divide it."""
        rows, bias = self.composed() if composed is None else composed
        return row_scores(hidden, rows, bias)

    def adaptor(self, hidden: Tensor) -> Tensor:
        """Return a(K) = W h + c, one weight per feature: (…, H) -> (…, F), at least float32."""
        h, weight, bias = self._precise(hidden)
        return h @ weight.T + bias

    def adaptor_norm(self, hidden: Tensor, p: float = 2.0) -> Tensor:
        """Return ‖a(K)‖ₚ at every position: (N, H) -> (N,). It measures the distance of p(· | K) from the background
        (paper §2.2).

        For p = 2 it uses the H×H Gram matrix of W, so that no N×F matrix is formed.
        """
        if p != 2.0:
            return torch.linalg.vector_norm(self.adaptor(hidden), ord=p, dim=-1)
        h, weight, bias = self._precise(hidden)
        squared = ((h @ (weight.T @ weight)) * h).sum(-1) + 2.0 * (h @ (weight.T @ bias)) + bias @ bias
        # shape: (N,); rounding can take a tiny square below zero
        return squared.clamp_min(1e-12).sqrt()

    def _precise(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return hidden, weight and bias in one dtype of at least float32."""
        precise = torch.promote_types(self.weight.dtype, torch.float32)
        return hidden.to(precise), self.weight.to(precise), self.bias.to(precise)


# Added to the score of a replaced signature: its exponential is 0 in any precision.
OUT_OF_REACH = -1e5


@dataclass(frozen=True)
class Distribution:
    """p(σ | K) of N hypotheses or positions."""

    log_probs: Tensor  # (N, S + J)

    def log_probs_of(self, classes: Tensor) -> Tensor:
        """Return log p of classes (N, K) of each hypothesis: (N, K)."""
        return self.log_probs.gather(1, classes)

    def best_words(self, view: View, k: int) -> tuple[Tensor, Tensor]:
        """Return the k most probable words, exactly, without a V-sized tensor: log p and tokens, (N, k) each.

        The k best words lie in the k classes with the best members: a word in another class has k better words, one in
        each of these classes.
        """
        grouped, share = in_groups(self.log_probs, view.best_share.to(self.log_probs.dtype))
        best = (grouped + share).view_as(self.log_probs)
        values, chosen = best.topk(min(k, best.size(-1)), dim=-1)  # shape: (N, C)
        return best_words_of(self.log_probs.gather(1, chosen), chosen, values, view, k)


class Normalised(Protocol):
    """p(σ | K) of a batch or a search."""

    def log_prob(
        self,
        hidden: Tensor,
        classes: Tensor,
        class_weights: ClassWeights,
        log_share: Tensor,
        slots: SlotScores | None = None,
        is_counted: Tensor | None = None,
    ) -> Tensor:
        """Return log p(target | K) at every position, for training: (N,) float32 (float64 for float64 parameters), in
        nats.

        Args:
            hidden: (N, H'). classes: of the targets, (N,); S + j for slot j.
            class_weights: log B_K(σ) of the signatures, N rows.
            log_share: log b(K, x) − log B_K(σ(x)) of the targets, (N,).
            is_counted: (N,) bool: positions that are summed with equal weights, the others with weight zero. None: any
                weights.
        """
        ...

    def smoothing_gain(
        self, hidden: Tensor, classes: Tensor, log_q: Tensor, log_mass: Tensor, slots: SlotScores | None = None
    ) -> Tensor:
        """Return the term that label smoothing adds to log p(target), in units of its ε: (B, T)
        (`ExactRows.smoothing_gain`).

        Args:
            hidden: (B, T, H'). classes: (B, T). log_q: log Σ_{x∈σ} q(x), up to a constant; broadcasts to (B, T, S + J).
            log_mass: of the signatures; broadcasts in the same way. slots: (B, T, J).
        """
        ...

    def distribution(
        self, hidden: Tensor, slots: SlotScores | None, class_weights: ClassWeights, temperature: float | Tensor = 1.0
    ) -> Distribution:
        """Return p(σ | K): hidden (N, H'), class weights of N rows and S + J classes.

        Args:
            temperature: divides the scores; the background is not tempered.
        """
        ...


@dataclass(frozen=True)
class Detail:
    """More facts about a position, for the models that have them.

    Attributes:
        name, facts: in JSON.
        label, items: a line of the table; numbers in an item are probabilities.
    """

    name: str
    facts: Any
    label: str
    items: tuple[tuple[str | float, ...], ...]


@dataclass(frozen=True)
class ClassPath:
    """How a normaliser computes the probability of a class, if not by one sum over all classes.

    Attributes:
        log_background: log p of the class by the masses alone.
        terms: terms of its score other than its features.
        normaliser: the remaining part of log p, instead of −log Z.
    """

    log_background: float
    terms: Sequence[tuple[str, float]]
    normaliser: float
    detail: Detail


class HeadModule(nn.Module):
    """A module of a head."""

    name: ClassVar[str]  # in the head, and so of its weights in a checkpoint
    option: ClassVar[str] = ""  # its name in messages; "": as `name`

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None:
        """Check or convert its weights in a checkpoint. prefix: of the head's names, ends in a dot."""


class Normaliser(HeadModule):
    """A way to sum over the classes (module docstring)."""

    rows_are_features: ClassVar[bool] = True  # whether all rows are composed of feature weights
    counts: ClassVar[bool] = False  # whether it changes after updates, by statistics of training batches
    sparse_gradients = False  # whether gradients of feature weights are sparse tensors

    def compose_rows(self, output: LogLinearOutput, weight: Tensor, replaced: int | None) -> Normalised:
        """Return composed rows for a batch or a search.

        Args:
            weight: (F, H') of `output`, with the columns of class sources.
            replaced: the signature whose score a source replaces. None: there is none.
        """
        raise NotImplementedError

    def explained(self, batch: Any, tokens: Tensor) -> dict[str, Any]:
        """Return arguments of explain/explanation.py for a batch of one sentence, by name.

        Args:
            batch: a Batch of records.py. tokens: (T,) of the sentence.

        Returns:
            `scores`, (T, S + J), and `paths`, a ClassPath for each token, if log p is not one sum over the classes:
                then the scores are log p(σ | K) minus the masses.
        """
        scores = batch.rows.normalised.scores(batch.hidden.flatten(0, 1), batch.slots)
        return {"scores": scores}


class Exact(Normaliser):
    """log Z is a sum over all signatures."""

    name, option = "exact", "all signatures"

    def __init__(self, head: object) -> None:
        super().__init__()

    def compose_rows(self, output: LogLinearOutput, weight: Tensor, replaced: int | None) -> ExactRows:
        return ExactRows(output, output.composed(weight=weight), replaced)


class ExactRows:
    """Composed rows of all signatures."""

    def __init__(
        self, output: LogLinearOutput, composed: tuple[Tensor, Tensor] | None = None, replaced: int | None = None
    ) -> None:
        """composed: (S, H') and (S,), of LogLinearOutput.composed. By default, they are computed here."""
        rows, bias = output.composed() if composed is None else composed
        if replaced is not None:
            bias = bias.index_fill(0, torch.tensor([replaced], device=bias.device), OUT_OF_REACH)
        self.output, self.composed = output, (rows, bias)

    def log_prob(
        self,
        hidden: Tensor,
        classes: Tensor,
        class_weights: ClassWeights | Tensor,
        log_share: Tensor | None,
        slots: SlotScores | None = None,
        is_counted: Tensor | None = None,
    ) -> Tensor:
        rows, bias = self.composed
        of_slots = None if slots is None else slots.scores + slots.log_mass.to(slots.scores.dtype)
        return -log_linear_nll(hidden, classes, rows, class_weights, log_share, bias, of_slots, is_counted)

    def smoothing_gain(
        self,
        hidden: Tensor,
        classes: Tensor,
        log_q: Tensor,
        log_mass: Tensor | None = None,
        slots: SlotScores | None = None,
    ) -> Tensor:
        """Return E_q[aᵀφ] − aᵀφ(target).

        The smoothed objective is (1 − ε) log p(target) + ε Σ_x q(x) log p(x), usually with a uniform q (Szegedy et al.
        2016). In its difference to log p(target), log Z cancels. log b is left out: `LogLinearHead` adds it if the
        background learns.
        """
        rows, bias = self.composed
        rows, hidden = rows.to(bias.dtype), hidden.to(bias.dtype)
        q = log_q.detach().to(bias.dtype).softmax(-1)  # broadcasts like log_q
        if slots is None:
            return (hidden * (q @ rows - rows[classes])).sum(-1) + q @ bias - bias[classes]
        static = len(rows)
        inside, slot = classes.clamp_max(static - 1), (classes - static).clamp_min(0)
        of_class = (hidden * rows[inside]).sum(-1) + bias[inside]
        of_slot = slots.scores.gather(-1, slot.unsqueeze(-1)).squeeze(-1)
        words, others = q[..., :static], q[..., static:]
        expected = (hidden * (words @ rows)).sum(-1) + words @ bias + (others * slots.scores).sum(-1)
        return expected - torch.where(classes < static, of_class, of_slot)

    def scores(self, hidden: Tensor, slots: SlotScores | None) -> Tensor:
        """Return aᵀφ of all classes, without the background: (N, H') -> (N, S + J), at least float32."""
        if slots is None:
            return row_scores(hidden, *self.composed)
        if slots.replaced is None:
            return row_scores_with(hidden, *self.composed, slots.scores)
        scores, context = row_scores(hidden, *self.composed), slots.scores
        place = torch.tensor([slots.replaced], device=scores.device)
        scores = scores.index_copy(-1, place, context[:, -1:].to(scores.dtype))
        return torch.cat([scores, context[:, :-1]], dim=-1) if context.size(1) > 1 else scores

    def distribution(
        self, hidden: Tensor, slots: SlotScores | None, class_weights: ClassWeights, temperature: float | Tensor = 1.0
    ) -> Distribution:
        scores = self.scores(hidden, slots)
        scores = scores if isinstance(temperature, float) and temperature == 1.0 else scores / temperature
        return Distribution(class_log_probs(scores, class_weights))
