"""What an optimiser needs so that some parameters may have sparse gradients, those of --tree-sparse-gradients.

fairseq neither multiplies sparse gradients nor clips them, and adds up none of several processes
(gathered_gradients.py). An update leaves rows without a gradient as they are, and what the optimiser remembers of them.

Sizes: F rows of a parameter, K of them with a gradient, H their width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from fairseq import utils
from fairseq.optim import FairseqOptimizer
from torch import Tensor, distributed

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.systems.output_trees.plugin.gathered_gradients import reduce_gradients

OPTION = "--tree-sparse-gradients"
NAMES = "llrnn_adagrad or llrnn_adam"


class LazyRows(torch.optim.Optimizer):
    """The step of an optimiser's class behind this one, but for sparse gradients, whose rows are `update_rows`'."""

    def step(self, closure: Any = None) -> Any:
        """As that class does. closure: none; fairseq has computed all gradients before."""
        assert closure is None
        sparse = [
            (group, weight, weight.grad.coalesce())
            for group in self.param_groups
            for weight in group["params"]
            if weight.grad is not None and weight.grad.is_sparse
        ]
        for _, weight, _ in sparse:
            weight.grad = None
        super().step()
        for group, weight, grad in sparse:
            self.update_rows(group, weight.data, self.state[weight], grad.indices()[0], grad.values())
            weight.grad = grad

    def update_rows(
        self, group: dict[str, Any], weight: Tensor, state: dict[str, Any], rows: Tensor, values: Tensor
    ) -> None:
        """Change different rows (K,) of a weight (F, H), whose gradient is values (K, H), and their state."""
        raise NotImplementedError


class SparseOptimizer(FairseqOptimizer):
    """One for fairseq, of a LazyRows, with what its `optimizer_config` says."""

    lazy: type[LazyRows]

    def __init__(self, cfg: Any, params: list[Tensor]) -> None:
        super().__init__(cfg)
        self._optimizer = self.lazy(params, **self.optimizer_config)

    def all_reduce_grads(self, module: Any) -> None:
        """The mean over all processes, where fairseq's legacy_ddp joins them."""
        if hasattr(module, "all_reduce_grads"):
            reduce_gradients(list(self.params), module.process_group, module.all_reduce_grads)

    def multiply_grads(self, c: float | Tensor) -> None:
        """Multiply all gradients; fairseq's multiplies a copy of a sparse one, which changes nothing."""
        torch._foreach_mul_([_values(weight) for weight in self.params if weight.grad is not None], c)

    def clip_grad_norm(self, max_norm: float, aggregate_norm_fn: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """As fairseq's: of a sparse gradient, the values are clipped, and all others are zeros."""
        return utils.clip_grad_norm_(
            [_Clipped(_values(weight)) for weight in self.params if weight.grad is not None],
            max_norm,
            aggregate_norm_fn,
        )


@dataclass(frozen=True)
class _Clipped:
    """What fairseq's clipping asks of a parameter."""

    grad: Tensor


def check_optimizer(optimizer: object, model: object) -> None:
    """Refuse an optimiser that takes no sparse gradients, and processes that cannot add them up.

    Args:
        model: as fairseq has wrapped it.

    Raises:
        OptionError: with what would do.
    """
    if not isinstance(optimizer, SparseOptimizer):
        cfg: Any = getattr(optimizer, "cfg", None)
        name = getattr(cfg, "_name", None) or type(optimizer).__name__
        raise OptionError(
            f"{OPTION}: expected --optimizer {NAMES}, without --fp16, --bf16 and others that wrap it, found {name}; "
            "use one of them, or leave the option out"
        )
    together = distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1
    if together > 1 and not hasattr(model, "all_reduce_grads"):
        raise OptionError(
            f"{OPTION}: expected --ddp-backend legacy_ddp with {together} processes that train together, which alone "
            "adds up their sparse gradients, found another one; give it, or leave the option out"
        )


def _values(weight: Tensor) -> Tensor:
    """Those of a weight's gradient, in its own memory; a sparse one then has each row once."""
    assert weight.grad is not None
    if not weight.grad.is_sparse:
        return weight.grad
    weight.grad = weight.grad.coalesce()
    return weight.grad._values()
