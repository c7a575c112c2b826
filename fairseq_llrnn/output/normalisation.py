"""What makes probabilities of hidden states and masses: one contract for all ways to sum over the classes.

Sizes: N positions or hypotheses, S signatures, J context classes, H hidden width, K classes asked about. Probabilities
are natural logarithms. An object is made for one batch or one search, whose rows of weights are composed once:

    exact over signatures    ExactOutput (exact.py)
    over a random part       SampledOutput (sampled_log_linear.py), in training

Who asks does not know which of them answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.masses import Masses
from fairseq_llrnn.output.log_linear import SlotScores, best_words
from fairseq_llrnn.output.scored_class import ScoredClass


@dataclass(frozen=True)
class OtherScores:
    """Scores of what has no row among the signatures."""

    context: Tensor | None = None  # of the context classes, (…, J)
    opened: tuple[ScoredClass, Tensor] | None = None  # of open classes, (…, O), in the place of a signature's own

    def flat(self) -> OtherScores:
        """Those of all positions of a batch: (B, T, …) -> (B·T, …)."""
        context = None if self.context is None else self.context.flatten(0, 1)
        return OtherScores(context, None if self.opened is None else (self.opened[0], self.opened[1].flatten(0, 1)))

    def first(self) -> OtherScores:
        """Those of the first of T positions: (N, T, …) -> (N, …)."""
        context = None if self.context is None else self.context[:, 0]
        return OtherScores(context, None if self.opened is None else (self.opened[0], self.opened[1][:, 0]))


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


class Normalisation(Protocol):
    """p(σ | K) of a batch or a search, with rows that are made."""

    def target_log_prob(
        self,
        hidden: Tensor,
        targets: Tensor,
        log_mass: Masses,
        log_share: Tensor,
        slots: SlotScores | None = None,
    ) -> Tensor:
        """log p(target | K) for training: as LogLinearOutput.target_log_prob, (N,)."""
        ...

    def smoothing_gain(
        self, hidden: Tensor, targets: Tensor, log_q: Tensor, log_mass: Tensor, slots: SlotScores | None = None
    ) -> Tensor:
        """As LogLinearOutput.smoothing_gain, (…,). log_mass: broadcasts to (…, S)."""
        ...

    def distribution(
        self, hidden: Tensor, others: OtherScores, masses: Masses, temperature: float | Tensor = 1.0
    ) -> Distribution:
        """p(σ | K): hidden (N, H), masses of N rows and S + J classes.

        Args:
            temperature: divides the scores; the background is not tempered.
        """
        ...
