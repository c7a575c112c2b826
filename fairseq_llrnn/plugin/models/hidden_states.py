"""What a decoder's network hands over: hidden states, and what else it has to say of each position.

Sizes: B batch, T time, H hidden width, L source length, X width of what unknown words are spelled from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from fairseq_llrnn.networks.cells import equivalent_rnn
from fairseq_llrnn.networks.computation_target import ComputationTarget
from fairseq_llrnn.networks.recurrent import Run

COMPUTATION = "computation"  # the name of the share m of the dimensions


@dataclass(frozen=True)
class Term:
    """Something that a network says of every position, for the criterion (plugin/tasks/criterion.py).

    The log shows its mean over the positions under its name, or, of `squares`, the root of the mean.
    """

    name: str
    values: Tensor  # (B, T); those of padding do not count
    in_loss: bool = False  # add the values to the loss of training: nats, with gradients
    squares: bool = False


@dataclass(frozen=True)
class HiddenStates:
    """Of every position, or of the last one in a search."""

    hidden: Tensor  # (B, T, H) or (B, 1, H)
    attention: Tensor | None = None  # on the source, (B, T, L) or (B, 1, L)
    terms: Sequence[Term] = ()
    spelling: Tensor | None = None  # what unknown words are spelled from, (B, T, X); None: from `hidden`


def computation_terms(run: Run, num_layers: int, target: ComputationTarget | None, tokens: Tensor) -> list[Term]:
    """How much cells of variable computation computed as they read the tokens (B, T); nothing of other cells."""
    if run.shares is None or run.multiplications is None:
        return []
    terms = [
        Term(COMPUTATION, run.shares.detach().mean(-1)),
        Term("rnn_dimension", run.multiplications * equivalent_rnn(1, num_layers) ** 2, squares=True),
    ]
    if target is not None:
        terms.append(Term("computation_penalty", target.penalty(run.shares, tokens), in_loss=True))
    return terms
