"""llrnn_adam: Adam (Kingma & Ba 2015) that takes sparse gradients, as torch's SparseAdam does.

Dense gradients are updated as by fairseq's adam. The rows of a sparse one keep means of gradients as of their last
update, where adam's would have decayed since, and have moved the row on: in a small vocabulary little differs.

llrnn_adagrad: Adagrad (Duchi et al. 2011) that takes sparse gradients. What a row of zeros would do, it does not do.

So a training is the same with sparse gradients and with dense ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import register_optimizer
from fairseq.optim.adam import Adam
from omegaconf import II
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.announced import registered
from fairseq_llrnn.plugin.compat.safe_checkpoints import evaluate
from fairseq_llrnn.systems.output_trees.plugin.sparse_gradients import LazyRows, SparseOptimizer


class LazyAdagrad(LazyRows, torch.optim.Adagrad):
    """torch's Adagrad, whose own way with sparse gradients makes more tensors."""

    def update_rows(
        self, group: dict[str, Any], weight: Tensor, state: dict[str, Any], rows: Tensor, values: Tensor
    ) -> None:
        state["step"] += 1
        squares = state["sum"].index_select(0, rows).addcmul_(values, values)
        state["sum"].index_copy_(0, rows, squares)
        weight.index_add_(0, rows, values / squares.sqrt_().add_(group["eps"]), alpha=-group["lr"])


@dataclass
class LLRNNAdagradConfig(FairseqDataclass):
    """Options of llrnn_adagrad."""

    lr: list[float] = II("optimization.lr")


@registered(register_optimizer, "llrnn_adagrad", dataclass=LLRNNAdagradConfig)
class LLRNNAdagrad(SparseOptimizer):
    """Adagrad, for dense gradients and sparse ones."""

    lazy = LazyAdagrad

    @property
    def optimizer_config(self) -> dict[str, Any]:
        return {"lr": self.cfg.lr[0]}


class LazyAdam(LazyRows, Adam):
    """fairseq's Adam; what it remembers of a sparse parameter has the same form as that of a dense one."""

    def update_rows(
        self, group: dict[str, Any], weight: Tensor, state: dict[str, Any], rows: Tensor, values: Tensor
    ) -> None:
        if not state:
            state |= {"step": 0, "exp_avg": torch.zeros_like(weight), "exp_avg_sq": torch.zeros_like(weight)}
        state["step"] += 1
        (first, second), step = group["betas"], state["step"]
        mean = state["exp_avg"].index_select(0, rows).mul_(first).add_(values, alpha=1 - first)
        square = state["exp_avg_sq"].index_select(0, rows).mul_(second).addcmul_(values, values, value=1 - second)
        state["exp_avg"].index_copy_(0, rows, mean)
        state["exp_avg_sq"].index_copy_(0, rows, square)
        size = group["lr"] * math.sqrt(1 - second**step) / (1 - first**step)
        weight.index_add_(0, rows, mean.div_(square.sqrt_().add_(group["eps"])), alpha=-size)


@dataclass
class LLRNNAdamConfig(FairseqDataclass):
    """Options of llrnn_adam."""

    adam_betas: Any = field(default=(0.9, 0.999), metadata={"help": "betas of Adam"})
    adam_eps: float = field(default=1e-8, metadata={"help": "epsilon of Adam"})
    lr: list[float] = II("optimization.lr")


@registered(register_optimizer, "llrnn_adam", dataclass=LLRNNAdamConfig)
class LLRNNAdam(SparseOptimizer):
    """Adam, for dense gradients and, row by row, for sparse ones."""

    lazy = LazyAdam

    @property
    def optimizer_config(self) -> dict[str, Any]:
        betas: str | Sequence[float] = self.cfg.adam_betas
        values = evaluate(betas) if isinstance(betas, str) else betas
        return {"lr": self.cfg.lr[0], "betas": _betas(values), "eps": self.cfg.adam_eps}


def _betas(values: Any) -> tuple[float, float]:
    both = list(values) if isinstance(values, Sequence) else []
    if len(both) != 2 or not all(isinstance(beta, (int, float)) and 0 <= beta < 1 for beta in both):
        raise OptionError(
            f"--adam-betas {values!r}: expected two numbers of at least 0 and below 1, found something else; give e.g. "
            "'(0.9, 0.98)'"
        )
    return float(both[0]), float(both[1])
