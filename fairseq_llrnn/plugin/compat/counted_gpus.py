"""Correct what fairseq derives from the number of visible GPUs.

fairseq takes it as the number of processes (--distributed-world-size). If it is 1 (on CPUs, or with one GPU in each of
several machines), fairseq ignores torchrun's variables: every process would train its own model and overwrite the
checkpoints of the others.

If one GPU is visible, fairseq puts the norm of all gradients on it, even with --cpu. torch then cannot clip them.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from typing import Any

import torch.distributed
from torch import Tensor

from fairseq_llrnn.errors import OptionError

JOINED = (
    "--distributed-init-method env:// --distributed-no-spawn --distributed-world-size $WORLD_SIZE "
    "--distributed-rank $RANK --device-id $LOCAL_RANK"
)


def check_single_process() -> None:
    """Raise OptionError if this training process is one of several, and not connected to them."""
    size = os.environ.get("WORLD_SIZE", "")  # set by torchrun and similar launchers
    joined = torch.distributed.is_available() and torch.distributed.is_initialized()
    if size.isdecimal() and int(size) > 1 and not joined:
        raise OptionError(
            f"WORLD_SIZE={size}: expected {size} processes that train one model, found one without a connection to the "
            "others: each would train alone and overwrite the same checkpoints; start them with "
            f"examples/cluster/worker.sh, or add to each process {JOINED} (docs/guides/scaling.md)"
        )


def clip_where_gradients_are(clip: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap fairseq.utils.clip_grad_norm_: keep the norm on the device of the gradients."""

    @functools.wraps(clip)
    def wrapper(params: Iterable[Tensor] | Tensor, max_norm: float, aggregate_norm_fn: Any = None) -> Tensor:
        params = [params] if isinstance(params, Tensor) else list(params)

        def move(norm: Tensor) -> Tensor:
            gradient = next(p.grad for p in params if p.grad is not None)
            return (norm if aggregate_norm_fn is None else aggregate_norm_fn(norm)).to(gradient.device)

        return clip(params, max_norm, move)

    return wrapper
