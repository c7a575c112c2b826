"""llrnn_adagrad: Adagrad (Duchi et al. 2011) that takes sparse gradients. What a row of zeros would do, it does not do.

So a training is the same with sparse gradients and with dense ones.
"""

from dataclasses import dataclass
from typing import Any

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import register_optimizer
from omegaconf import II
from torch import Tensor

from fairseq_llrnn.plugin.announced import registered
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
