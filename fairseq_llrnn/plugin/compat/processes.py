"""Several processes that train one model have to be joined; fairseq joins those of torchrun only if it counts GPUs.

fairseq takes the number of GPUs that it sees for the number of processes (--distributed-world-size). Where that is 1
(on CPUs, or with one GPU in each of several machines), it does not look at torchrun's variables: every process would
train a model of its own and overwrite the checkpoints of the others.
"""

from __future__ import annotations

import os

import torch.distributed

from fairseq_llrnn.errors import OptionError

JOINED = (
    "--distributed-init-method env:// --distributed-no-spawn --distributed-world-size $WORLD_SIZE "
    "--distributed-rank $RANK --device-id $LOCAL_RANK"
)


def refuse_separate_processes() -> None:
    """To be called by a process that trains. Raises OptionError where it is one of several, and not joined to them."""
    size = os.environ.get("WORLD_SIZE", "")  # set by torchrun, and by what starts processes as it does
    joined = torch.distributed.is_available() and torch.distributed.is_initialized()
    if size.isdecimal() and int(size) > 1 and not joined:
        raise OptionError(
            f"WORLD_SIZE={size}: expected {size} processes that train one model, found one that was not told of the "
            "others: each would train alone and overwrite the same checkpoints; start them with "
            f"examples/cluster/worker.sh, or give each process {JOINED} (docs/guides/scaling.md)"
        )
