"""Sparse gradients of parameters (--tree-sparse-gradients): sums over processes, and optimisers that take them.

Sizes: F rows of a parameter, K of them with a gradient (in a process), H their width.

`reduce_gradients` adds up sparse gradients of several processes that train together, where fairseq's legacy_ddp adds
up dense ones. Each process sends the rows that its batch has changed, and gets those of all others. All add them up
in the same order, so that their weights remain the same.

A `SparseOptimizer` does what fairseq does not: it multiplies sparse gradients and clips them. An update leaves rows
without a gradient as they are, and what the optimiser remembers of them.

llrnn_adagrad is Adagrad (Duchi et al. 2011), to which a row of zeros does nothing. So a training is the same with
sparse gradients and with dense ones.

llrnn_adam is Adam (Kingma & Ba 2015); it takes sparse gradients as torch's SparseAdam does.

Dense gradients are updated as by fairseq's adam. The rows of a sparse one keep means of gradients as of their last
update, where adam's would have decayed since, and have moved the row on: in a small vocabulary little differs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq import utils
from fairseq.dataclass import FairseqDataclass
from fairseq.distributed import utils as distributed_utils
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.adam import Adam
from omegaconf import II
from torch import Tensor, distributed

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.compat.safe_checkpoints import evaluate

NONE, SPARSE, DENSE = 0, 1, 2


def reduce_gradients(weights: Sequence[Tensor], group: Any, reduce_dense: Callable[[], None]) -> None:
    """Put the mean over all processes in the place of each gradient.

    A gradient that is sparse in one process and none in another remains sparse; where another has a dense one, it
    becomes dense.

    Args:
        group: of the processes. reduce_dense: does so for all weights that require a gradient, whose own is dense.
    """
    kinds = _kinds(weights, group)
    sparse = [weight for weight, kind in zip(weights, kinds, strict=True) if kind == SPARSE]
    for weight, kind in zip(weights, kinds, strict=True):
        if kind == DENSE and weight.grad is not None and weight.grad.is_sparse:
            weight.grad = weight.grad.to_dense()
    for weight in sparse:
        weight.requires_grad_(False)
    try:
        reduce_dense()
    finally:
        for weight in sparse:
            weight.requires_grad_(True)
    for weight in sparse:
        weight.grad = _mean(weight, group)


def _kinds(weights: Sequence[Tensor], group: Any) -> list[int]:
    """For each weight the largest kind that its gradient has in any process."""
    of_process = [NONE if weight.grad is None else SPARSE if weight.grad.is_sparse else DENSE for weight in weights]
    kinds = torch.tensor(of_process, device=weights[0].device)
    largest: list[int] = distributed_utils.all_reduce(kinds, group, "max").tolist()
    return largest


def _mean(weight: Tensor, group: Any) -> Tensor:
    """Of the sparse gradients of all processes: a sparse tensor (F, H) with each row once."""
    rows, values = torch.empty(0, dtype=torch.int64, device=weight.device), weight.new_empty((0, *weight.shape[1:]))
    if weight.grad is not None:
        gradient = weight.grad.coalesce()
        # where batches run out, fairseq gives a process one of another again, and multiplies its gradients by 0
        some = gradient.values().flatten(1).any(1)
        rows, values = gradient.indices()[0, some], gradient.values()[some]
    many = [int(each) for each in distributed_utils.all_gather(rows.new_tensor([len(rows)]), group)]
    gathered = torch.cat(_gathered(rows, many, group)), torch.cat(_gathered(values, many, group))
    return torch.sparse_coo_tensor(
        gathered[0].unsqueeze(0), gathered[1] / len(many), weight.shape, check_invariants=False
    ).coalesce()


def _gathered(tensor: Tensor, many: Sequence[int], group: Any) -> list[Tensor]:
    """The tensors (K, …) of all processes, of so many rows: what is sent has as many in all."""
    filled = tensor.new_zeros((max(many), *tensor.shape[1:]))
    filled[: len(tensor)] = tensor
    return [each[:k] for each, k in zip(distributed_utils.all_gather(filled, group), many, strict=True)]


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


@register_optimizer("llrnn_adagrad", dataclass=LLRNNAdagradConfig)
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


@register_optimizer("llrnn_adam", dataclass=LLRNNAdamConfig)
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
