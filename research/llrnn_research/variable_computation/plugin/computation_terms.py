"""Terms of a network with variable computation for each word, for the criterion and for explanations.

Sizes: B batch, T time, L layers.

The penalty draws the computation of variable cells towards a target (Jernite 2018, equation 2.15).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_llrnn.networks.recurrent import Run
from fairseq_llrnn.output.normalisers import Detail
from fairseq_llrnn.plugin.models.log_linear_decoder import Term
from llrnn_research.variable_computation import COMPUTATION
from llrnn_research.variable_computation.variable_cells import equivalent_rnn


@dataclass(frozen=True)
class ComputationTarget:
    """Ω(m, m̄) = weight · |m − m̄| at every step, averaged over the layers.

    If there are boundaries (tokens such as the space of a text in characters), m̄ is 1 at each of them, and `target` at
    all other tokens. This guides the network to recompute its state with every word.
    """

    target: float  # m̄, a share of the dimensions
    weight: float  # in nats, for |m − m̄| = 1
    boundaries: Collection[int] = ()  # indices of tokens

    def penalty(self, shares: Tensor, tokens: Tensor) -> Tensor:
        """Return Ω of each position, (B, T), for shares m (B, T, L) and input tokens (B, T)."""
        target = torch.full_like(tokens, self.target, dtype=shares.dtype)
        if self.boundaries:
            marks = torch.tensor(sorted(self.boundaries), device=tokens.device)
            target = target.masked_fill(torch.isin(tokens, marks), 1.0)
        return self.weight * (shares - target.unsqueeze(-1)).abs().mean(-1)


def computation_terms(target: ComputationTarget, num_layers: int, run: Run, tokens: Tensor) -> list[Term]:
    """Return the computation for the tokens (B, T): a share, a width, and the penalty."""
    assert run.shares is not None and run.multiplications is not None
    return [
        Term(COMPUTATION, run.shares.detach().mean(-1), detail=_detail),
        Term("rnn_dimension", run.multiplications * equivalent_rnn(1, num_layers) ** 2, squares=True),
        Term("computation_penalty", target.penalty(run.shares, tokens), in_loss=True, is_penalty=True),
    ]


def _detail(share: float) -> Detail:
    return Detail(COMPUTATION, share, "computes", ((f"{share:.2f} of its dimensions to read it",),))
