"""Sparse gradients of parameters (--tree-sparse-gradients): sums over processes, and optimisers that support them.

Sizes: F rows of a parameter, K of them with a gradient (in a process), H their width.

`reduce_gradients` averages sparse gradients over the processes of distributed training, where fairseq's legacy_ddp
averages dense ones. Each process sends the rows that its batch has changed, and receives the rows of all others. All
sum them in the same order, so their weights remain equal.

A `SparseOptimizer` also multiplies and clips sparse gradients, which fairseq does not. An update leaves rows without a
gradient, and their optimiser state, unchanged.

llrnn_adagrad is Adagrad (Duchi et al. 2011). A row of zeros does not change its state, so sparse and dense gradients
give the same training.

llrnn_adam is Adam (Kingma & Ba 2015). It treats dense gradients as fairseq's adam does, and sparse ones as torch's
SparseAdam does. A row of a sparse gradient keeps its means since its last update. Adam would have decayed them in each
update and moved the row, which differs little in a small vocabulary.
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
    """Replace each gradient by its mean over all processes.

    A gradient that is sparse in one process and absent in another remains sparse. If it is dense in any process, it
    becomes dense.

    Args:
        group: the process group.
        reduce_dense: averages the dense gradients of all weights that require a gradient.
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
    """Return the largest kind of each weight's gradient over the processes."""
    of_process = [NONE if weight.grad is None else SPARSE if weight.grad.is_sparse else DENSE for weight in weights]
    kinds = torch.tensor(of_process, device=weights[0].device)
    largest: list[int] = distributed_utils.all_reduce(kinds, group, "max").tolist()
    return largest


def _mean(weight: Tensor, group: Any) -> Tensor:
    """Return the mean of the processes' sparse gradients: a sparse tensor (F, H) with each row once."""
    rows, values = torch.empty(0, dtype=torch.int64, device=weight.device), weight.new_empty((0, *weight.shape[1:]))
    if weight.grad is not None:
        gradient = weight.grad.coalesce()
        # after its last batch, a process repeats another one's batch with gradients multiplied by 0
        is_nonzero = gradient.values().flatten(1).any(1)
        rows, values = gradient.indices()[0, is_nonzero], gradient.values()[is_nonzero]
    sizes = [int(size) for size in distributed_utils.all_gather(rows.new_tensor([len(rows)]), group)]
    gathered = torch.cat(_gathered(rows, sizes, group)), torch.cat(_gathered(values, sizes, group))
    return torch.sparse_coo_tensor(
        gathered[0].unsqueeze(0), gathered[1] / len(sizes), weight.shape, check_invariants=False
    ).coalesce()


def _gathered(tensor: Tensor, sizes: Sequence[int], group: Any) -> list[Tensor]:
    """Return the tensors (K, …) of all processes with these numbers of rows, padded to equal size for the transfer."""
    filled = tensor.new_zeros((max(sizes), *tensor.shape[1:]))
    filled[: len(tensor)] = tensor
    return [rows[:k] for rows, k in zip(distributed_utils.all_gather(filled, group), sizes, strict=True)]


OPTION = "--tree-sparse-gradients"
NAMES = "llrnn_adagrad or llrnn_adam"


class LazyRows(torch.optim.Optimizer):
    """The step of the next optimiser class in the MRO, except that `update_rows` applies sparse gradients."""

    def step(self, closure: Any = None) -> Any:
        """Apply all gradients. closure: must be None, because fairseq computes the gradients before."""
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
        """Update distinct rows (K,) of a weight (F, H) and their state, with the gradient values (K, H)."""
        raise NotImplementedError


class SparseOptimizer(FairseqOptimizer):
    """A fairseq optimiser of a `LazyRows` class, with the arguments in `optimizer_config`."""

    lazy: type[LazyRows]

    def __init__(self, cfg: Any, params: list[Tensor]) -> None:
        super().__init__(cfg)
        self._optimizer = self.lazy(params, **self.optimizer_config)

    def all_reduce_grads(self, module: Any) -> None:
        """Average gradients over all processes of fairseq's legacy_ddp."""
        if hasattr(module, "all_reduce_grads"):
            reduce_gradients(list(self.params), module.process_group, module.all_reduce_grads)

    def multiply_grads(self, c: float | Tensor) -> None:
        """Multiply all gradients. fairseq would multiply a copy of a sparse gradient."""
        torch._foreach_mul_([_values(weight) for weight in self.params if weight.grad is not None], c)

    def clip_grad_norm(self, max_norm: float, aggregate_norm_fn: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Clip as fairseq does, with the values of sparse gradients."""
        return utils.clip_grad_norm_(
            [_Clipped(_values(weight)) for weight in self.params if weight.grad is not None],
            max_norm,
            aggregate_norm_fn,
        )


@dataclass(frozen=True)
class _Clipped:
    """The part of a parameter that fairseq's clipping uses."""

    grad: Tensor


def check_optimizer(optimizer: object, model: object) -> None:
    """Check that the optimiser and the distributed training support sparse gradients.

    Args:
        model: as wrapped by fairseq.

    Raises:
        OptionError: with the options to use.
    """
    if not isinstance(optimizer, SparseOptimizer):
        cfg: Any = getattr(optimizer, "cfg", None)
        name = getattr(cfg, "_name", None) or type(optimizer).__name__
        raise OptionError(
            f"{OPTION}: needs --optimizer {NAMES}, without --fp16, --bf16 and others that wrap it, found {name}; use "
            "one of them, or leave the option out"
        )
    together = distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1
    if together > 1 and not hasattr(model, "all_reduce_grads"):
        raise OptionError(
            f"{OPTION}: with {together} processes it needs --ddp-backend legacy_ddp, because other backends do not sum "
            "sparse gradients; add it, or leave the option out"
        )


def _values(weight: Tensor) -> Tensor:
    """Return the values of a weight's gradient without a copy. A sparse gradient is coalesced first."""
    assert weight.grad is not None
    if not weight.grad.is_sparse:
        return weight.grad
    weight.grad = weight.grad.coalesce()
    return weight.grad._values()


class LazyAdagrad(LazyRows, torch.optim.Adagrad):
    """torch's Adagrad with fewer temporary tensors for sparse gradients."""

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
    """Adagrad for dense and sparse gradients."""

    lazy = LazyAdagrad

    @property
    def optimizer_config(self) -> dict[str, Any]:
        return {"lr": self.cfg.lr[0]}


class LazyAdam(LazyRows, Adam):
    """fairseq's Adam; the state of a sparse parameter has the shape of a dense one's."""

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

    adam_betas: Any = field(default=(0.9, 0.999), metadata={"help": "betas of Adam (default: (0.9, 0.999))"})
    adam_eps: float = field(default=1e-8, metadata={"help": "epsilon of Adam"})
    lr: list[float] = II("optimization.lr")


@register_optimizer("llrnn_adam", dataclass=LLRNNAdamConfig)
class LLRNNAdam(SparseOptimizer):
    """Adam for dense gradients and, row by row, for sparse ones."""

    lazy = LazyAdam

    @property
    def optimizer_config(self) -> dict[str, Any]:
        betas: str | Sequence[float] = self.cfg.adam_betas
        values = evaluate(betas) if isinstance(betas, str) else betas
        return {"lr": self.cfg.lr[0], "betas": _betas(values), "eps": self.cfg.adam_eps}


def _betas(values: Any) -> tuple[float, float]:
    betas = list(values) if isinstance(values, Sequence) else []
    if len(betas) != 2 or not all(isinstance(beta, (int, float)) and 0 <= beta < 1 for beta in betas):
        raise OptionError(
            f"--adam-betas {values!r}: expected two numbers of at least 0 and below 1, e.g. '(0.9, 0.98)'"
        )
    return float(betas[0]), float(betas[1])
