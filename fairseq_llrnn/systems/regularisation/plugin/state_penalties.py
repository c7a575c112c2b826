"""Dropout of a recurrent network's own matrices, and penalties of its states.

Sizes: B batch, T time, H hidden width. Source: Merity, Keskar & Socher 2018, "Regularizing and optimizing LSTM language
models", §2 (DropConnect, after Wan et al. 2013) and §4.5 (activation regularisation, and temporal activation
regularisation).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.networks.recurrent import Run
from fairseq_llrnn.output.feature_weights import at_least_float32
from fairseq_llrnn.plugin.models.log_linear_decoder import Term


def with_dropped_weights(probability: float, layer: nn.Module, x: Tensor, before: Any) -> Any:
    """Call a layer, in training with dropout of the state-to-state weights, the same at all time steps."""
    if not layer.training:
        return layer(x, before)
    dropped = {
        name: functional.dropout(weight, probability)
        for name, weight in layer.named_parameters()
        if "weight_hh" in name
    }
    if not dropped:
        raise OptionError(
            f"--weight-drop: expected a cell with a state-to-state matrix named weight_hh…, found none in "
            f"{type(layer).__name__}; leave it out"
        )
    return functional_call(layer, dropped, (x, before))


def state_penalties(activation: float, change: float, run: Run, tokens: Tensor) -> list[Term]:
    """Return the two penalties of each position, (B, T), in nats, except for those with weight 0.

    Args:
        activation: weight of the mean square of a state of the last layer, after dropout.
        change: weight of the mean square of the difference from the previous state, without dropout, 0 at the first
            position.
    """
    terms = []
    if activation:
        squares = at_least_float32(run.hidden).pow(2).mean(-1)
        terms.append(Term("activation_penalty", activation * squares, in_loss=True, is_penalty=True))
    if change:
        steps = at_least_float32(run.undropped).diff(dim=1).pow(2).mean(-1)
        terms.append(Term("change_penalty", change * functional.pad(steps, (1, 0)), in_loss=True, is_penalty=True))
    return terms
