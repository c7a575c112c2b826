"""What makes probabilities of hidden states, rows and masses: one contract for all ways to sum over the classes.

Sizes: N positions or hypotheses, S signatures, J context classes, H' hidden width (with what sources of classes add),
K classes asked about. Probabilities are natural logarithms.

    Exact                log Z is a sum over all signatures: here, the default
    Sampled(n)           over a random part of them, in training (output/sampled_log_linear.py)
    …                    whatever else a head is made with (`LogLinearHead(normaliser=)`)

A normaliser is a module of the head, made once. For each batch or search it answers `over` with an object whose rows
are composed: `Normalised`. Who asks does not know which of them answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.masses import Masses
from fairseq_llrnn.functional import log_linear_nll
from fairseq_llrnn.output.log_linear import LogLinearOutput, SlotScores, best_words, class_log_probs

if TYPE_CHECKING:
    from fairseq_llrnn.output.class_source import Head
    from fairseq_llrnn.output.records import Batch

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

    def best_words(self, background: Background, state: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k most probable words, exactly, without a V-sized tensor: log p and tokens, (N, k) each."""
        return best_words(self.log_probs, background, state, k)


class Normalised(Protocol):
    """p(σ | K) of a batch or a search."""

    def log_prob(
        self, hidden: Tensor, classes: Tensor, masses: Masses, log_share: Tensor, slots: SlotScores | None = None
    ) -> Tensor:
        """log p(target | K) at every position, for training: (N,) float32 (float64 for float64 parameters).

        Args:
            hidden: (N, H'). classes: of the targets, (N,); S + j for slot j.
            masses: log B_K(σ) of the signatures, N rows. log_share: log b(K, x) − log B_K(σ(x)) of the targets, (N,).
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
        self, hidden: Tensor, slots: SlotScores | None, masses: Masses, temperature: float | Tensor = 1.0
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
    sparse_gradients = False  # whether gradients of the weights of features are sparse tensors

    def over(self, output: LogLinearOutput, weight: Tensor, replaced: int | None) -> Normalised:
        """Rows for a batch or a search. Made where the parameters are to be seen used.

        Args:
            weight: (F, H') of `output`, with the columns that sources of classes add.
            replaced: the signature in whose place a source has a score; None: there is none.
        """
        raise NotImplementedError

    def after(self, updates: int, updates_per_epoch: int) -> int | None:
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

    def over(self, output: LogLinearOutput, weight: Tensor, replaced: int | None) -> ExactRows:
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
        masses: Masses | Tensor,
        log_share: Tensor | None,
        slots: SlotScores | None = None,
    ) -> Tensor:
        rows, bias = self.composed
        of_slots = None if slots is None else slots.scores + slots.log_mass.to(slots.scores.dtype)
        return -log_linear_nll(hidden, classes, rows, masses, log_share, bias, of_slots)

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
        (Szegedy et al. 2016). In its difference to log p(target), log Z cancels; log b is left out, since the network
        cannot change it. Where b has parameters itself, the likelihood alone trains them: q is taken as given.
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
        scores = self.output.class_scores(hidden, self.composed)
        if slots is None:
            return scores
        context = slots.scores
        if slots.replaced is not None:
            place = torch.tensor([slots.replaced], device=scores.device)
            scores = scores.index_copy(-1, place, context[:, -1:].to(scores.dtype))
            context = context[:, :-1]
        return torch.cat([scores, context], dim=-1) if context.size(1) else scores

    def distribution(
        self, hidden: Tensor, slots: SlotScores | None, masses: Masses, temperature: float | Tensor = 1.0
    ) -> Distribution:
        scores = self.scores(hidden, slots)
        scores = scores if isinstance(temperature, float) and temperature == 1.0 else scores / temperature
        return Distribution(class_log_probs(scores, masses))
