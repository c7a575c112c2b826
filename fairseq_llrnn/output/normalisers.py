"""The log-linear output: p(x | K) ∝ b(K, x) exp(a(K)ᵀ φ(x)), a(K) = W h + c, and ways to sum over its classes.

Sizes: N positions or hypotheses, V words, S signatures, J context classes, F features, H hidden width, H' the same with
what sources of classes add, K classes asked about. Probabilities are natural logarithms. Source: Dymetman & Xiao 2016,
§2 (equation 2 and §2.2); the signature form is derived in docs/design.md: scores over S signatures, hidden Eᵀ + Φ c +
log_mass with E = Φ W, then the share inside the class. Softmax is the special case φ = one-hot, b = 1: then E = W, and
this is a linear layer, bit for bit.

    Exact                log Z is a sum over all signatures: here, the default
    Sampled(n)           over a random part of them, in training (sampled.py)
    …                    whatever else a head is made with (`LogLinearHead(normaliser=)`)

A normaliser is a module of the head, made once. For each batch or search, `compose_rows` returns an object whose rows
are composed: `Normalised`. All normalisers have this interface.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, BoundBackground
from fairseq_llrnn.backgrounds.class_weights import ClassWeights, in_groups, log_shares
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.functional import log_linear_nll
from fairseq_llrnn.output.feature_weights import (
    SparseRows,
    at_least_float32,
    draw_weights,
    row_scores,
    row_scores_beside,
)

if TYPE_CHECKING:
    from fairseq_llrnn.output.class_source import Head
    from fairseq_llrnn.output.records import Batch


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


def class_log_probs(scores: Tensor, log_mass: Tensor | ClassWeights) -> Tensor:
    """log p(σ | K) for every signature: scores (…, S) -> (…, S); −inf where nothing is possible.

    Args:
        log_mass: broadcasts to the scores; or masses of N rows, for scores (N, S), which change.
    """
    weighed = scores + log_mass.to(scores.dtype) if isinstance(log_mass, Tensor) else log_mass.added_to(scores)
    log_probs = functional.log_softmax(weighed, dim=-1)
    # NaN in a row where nothing is possible, which is seldom: to look costs a twentieth of what masks would
    if torch.compiler.is_compiling() or bool(log_probs[..., 0].isnan().any()):
        return log_shares(weighed)
    return log_probs


def best_words_of(
    log_probs: Tensor, chosen: Tensor, best: Tensor, background: BoundBackground, state: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """The k most probable words of the k classes whose best members are best: log p and tokens, (N, k) each.

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
        shares, members = background.select_rows(row).best_members(state[row], full.unsqueeze(1), k)
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
        initial_scale: of LogLinearHead.
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
        self.row_rms = None if initial_scale is None else initial_scale / hidden_size**0.5
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights again; biases are 0."""
        draw_weights(self.weight, self.rows, self.row_rms)
        nn.init.zeros_(self.bias)

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


# Added to the score that a signature's own row would have, where another score stands in its place: its exponential is
# 0 in any precision.
OUT_OF_REACH = -1e5


@dataclass(frozen=True)
class Distribution:
    """p(σ | K) of N hypotheses or positions."""

    log_probs: Tensor  # (N, S + J)

    def log_probs_of(self, classes: Tensor) -> Tensor:
        """log p of some classes of each hypothesis: (N, K) -> (N, K)."""
        return self.log_probs.gather(1, classes)

    def best_words(self, background: BoundBackground, state: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k most probable words, exactly, without a V-sized tensor: log p and tokens, (N, k) each.

        A word among the k best lies in one of the k classes whose best members are best: if its class were not among
        them, k other classes would each hold a better word.
        """
        each, share = in_groups(self.log_probs, background.best_share(state).to(self.log_probs.dtype))
        best = (each + share).view_as(self.log_probs)
        values, chosen = best.topk(min(k, best.size(-1)), dim=-1)  # shape: (N, C)
        return best_words_of(self.log_probs.gather(1, chosen), chosen, values, background, state, k)


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
        """log p(target | K) at every position, for training: (N,) float32 (float64 for float64 parameters).

        Args:
            hidden: (N, H'). classes: of the targets, (N,); S + j for slot j.
            masses: log B_K(σ) of the signatures, N rows. log_share: log b(K, x) − log B_K(σ(x)) of the targets, (N,).
            is_counted: (N,) bool: which of them are added up with one weight, the others with none; None: any weights.
        """
        ...

    def smoothing_gain(
        self, hidden: Tensor, classes: Tensor, log_q: Tensor, log_mass: Tensor, slots: SlotScores | None = None
    ) -> Tensor:
        """What label smoothing adds to log p(target), in units of its ε (`ExactRows.smoothing_gain`): (B, T).

        Args:
            hidden: (B, T, H'). classes: (B, T). log_q: log Σ_{x∈σ} q(x), up to a constant; broadcasts to (B, T, S + J).
            log_mass: of the signatures, likewise. slots: (B, T, J).
        """
        ...

    def distribution(
        self, hidden: Tensor, slots: SlotScores | None, class_weights: ClassWeights, temperature: float | Tensor = 1.0
    ) -> Distribution:
        """p(σ | K): hidden (N, H'), masses of N rows and S + J classes.

        Args:
            temperature: divides the scores; the background is not tempered.
        """
        ...


@dataclass(frozen=True)
class Detail:
    """What only some models have to say of a position.

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
    """How a normaliser came to the class of a word, where it is not by one sum over all classes.

    Attributes:
        log_background: log p of the class by the masses alone.
        terms: what is part of its score beside its features.
        normaliser: what is left of log p, in the place of −log Z.
    """

    log_background: float
    terms: Sequence[tuple[str, float]]
    normaliser: float
    detail: Detail


class Normaliser(nn.Module):
    """A way to sum over the classes (module docstring)."""

    name: ClassVar[str]  # of the module in the head, and so of its weights in a checkpoint
    option: ClassVar[str]  # what messages call it
    rows_are_features: ClassVar[bool] = True  # whether all rows are made of the weights of features
    counts: ClassVar[bool] = False  # whether it changes, after updates, with what training says
    counting = True  # whether what training says of the batch at hand is to count
    sparse_gradients = False  # whether gradients of the weights of features are sparse tensors

    def compose_rows(self, output: LogLinearOutput, weight: Tensor, replaced: int | None) -> Normalised:
        """Rows for a batch or a search. Made where the parameters are to be seen used.

        Args:
            weight: (F, H') of `output`, with the columns that sources of classes add.
            replaced: the signature in whose place a source has a score; None: there is none.
        """
        raise NotImplementedError

    def update_if_due(self, updates: int, updates_per_epoch: int) -> int | None:
        """Change, if that is due after so many updates: how many classes have another place then."""
        return None

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None:
        """Check, or change, what a checkpoint has of it; prefix: of the head's names, ends in a dot."""

    def explained(self, batch: Batch, tokens: Tensor) -> dict[str, Any]:
        """Arguments of explain/explanation.py for a batch of one sentence, by name.

        Args:
            tokens: (T,) of the sentence.

        Returns: `scores`, (T, S + J), and, where log p is not one sum over the classes, `paths`: a ClassPath for each
        token, beside which scores are log p(σ | K) less the masses.
        """
        scores = batch.rows.classes.scores(batch.hidden.flatten(0, 1), batch.slots)  # type: ignore[attr-defined]
        return {"scores": scores}


NormaliserOf = Callable[["Head"], Normaliser]


class Exact(Normaliser):
    """log Z is a sum over all signatures."""

    name, option = "exact", "all signatures"

    def __init__(self, head: Head) -> None:
        super().__init__()

    def compose_rows(self, output: LogLinearOutput, weight: Tensor, replaced: int | None) -> ExactRows:
        return ExactRows(output, output.composed(weight=weight), replaced)


class ExactRows:
    """Rows of all signatures, composed."""

    def __init__(
        self, output: LogLinearOutput, composed: tuple[Tensor, Tensor] | None = None, replaced: int | None = None
    ) -> None:
        """composed: (S, H') and (S,), as LogLinearOutput.composed has them; by default, they are made here."""
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
        """E_q[aᵀφ] − aᵀφ(target).

        The smoothed objective is (1 − ε) log p(target) + ε Σ_x q(x) log p(x), with a uniform q in the usual one
        (Szegedy et al. 2016). In its difference to log p(target), log Z cancels. log b is left out: `LogLinearHead`
        adds it if the background learns.
        """
        rows, bias = self.composed
        rows, hidden = rows.to(bias.dtype), hidden.to(bias.dtype)
        q = log_q.detach().to(bias.dtype).softmax(-1)  # as wide as log_q is: one row serves many positions
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
        """aᵀφ of all classes: (N, H') -> (N, S + J), at least float32. Nothing is made of `log_mass`."""
        if slots is None:
            return row_scores(hidden, *self.composed)
        if slots.replaced is None:
            return row_scores_beside(hidden, *self.composed, slots.scores)
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
