"""What fairseq concludes from the number of GPUs that it sees.

It takes that for the number of processes (--distributed-world-size). Where it is 1 (on CPUs, or with one GPU in each of
several machines), it does not look at torchrun's variables: every process would train a model of its own and overwrite
the checkpoints of the others.

Where it sees one, it has the norm of all gradients there, also with --cpu: torch then refuses to clip them.
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
    """To be called by a process that trains. Raises OptionError where it is one of several, and not joined to them."""
    size = os.environ.get("WORLD_SIZE", "")  # set by torchrun, and by what starts processes as it does
    joined = torch.distributed.is_available() and torch.distributed.is_initialized()
    if size.isdecimal() and int(size) > 1 and not joined:
        raise OptionError(
            f"WORLD_SIZE={size}: expected {size} processes that train one model, found one that was not told of the "
            "others: each would train alone and overwrite the same checkpoints; start them with "
            f"examples/cluster/worker.sh, or give each process {JOINED} (docs/guides/scaling.md)"
        )


def clip_where_gradients_are(clip: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap fairseq.utils.clip_grad_norm_: the norm is on the device of the gradients."""

    @functools.wraps(clip)
    def wrapper(params: Iterable[Tensor] | Tensor, max_norm: float, aggregate_norm_fn: Any = None) -> Tensor:
        params = [params] if isinstance(params, Tensor) else list(params)

        def there(norm: Tensor) -> Tensor:
            gradient = next(p.grad for p in params if p.grad is not None)
            return (norm if aggregate_norm_fn is None else aggregate_norm_fn(norm)).to(gradient.device)

        return clip(params, max_norm, there)

    return wrapper
