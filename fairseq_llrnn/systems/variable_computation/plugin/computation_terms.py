"""What a network of these cells says of each word that it reads, for the criterion and for explanations."""

from __future__ import annotations

from torch import Tensor

from fairseq_llrnn.networks.cells import equivalent_rnn
from fairseq_llrnn.networks.recurrent import Run
from fairseq_llrnn.output.normalisers import Detail
from fairseq_llrnn.plugin.models.log_linear_decoder import Term
from fairseq_llrnn.systems.variable_computation.computation_target import ComputationTarget
from fairseq_llrnn.systems.variable_computation.views import COMPUTATION


def computation_terms(target: ComputationTarget, num_layers: int, run: Run, tokens: Tensor) -> list[Term]:
    """How much was computed to read the tokens (B, T): a share, a width, and the penalty."""
    assert run.shares is not None and run.multiplications is not None
    return [
        Term(COMPUTATION, run.shares.detach().mean(-1), detail=_detail),
        Term("rnn_dimension", run.multiplications * equivalent_rnn(1, num_layers) ** 2, squares=True),
        Term("computation_penalty", target.penalty(run.shares, tokens), in_loss=True),
    ]


def _detail(share: float) -> Detail:
    return Detail(COMPUTATION, share, "computes", ((f"{share:.2f} of its dimensions to read it",),))
