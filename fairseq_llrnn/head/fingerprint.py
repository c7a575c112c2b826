"""The prior that weights were trained beside: they mean nothing beside another one."""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.prior.prior import Prior


def fingerprint_of(prior: Prior) -> Tensor:
    """Its bytes for a checkpoint, as floating point: so averages of checkpoints and of updates are the same again."""
    return torch.tensor(list(bytes.fromhex(prior.fingerprint)), dtype=torch.float32)


def check_fingerprint(own: Tensor, saved: Tensor | None, folder: str | None) -> None:
    """Raise PriorError where a checkpoint's is that of another prior. fairseq refuses weights that have none.

    Args:
        folder: where the own prior was read, by --prior or because it is the data directory's.
    """
    if saved is not None and _hex(saved) != _hex(own):
        raise PriorError(
            f"the checkpoint was trained with another prior than {folder or 'the one given'} (fingerprints "
            f"{_hex(saved)[:12]}… and {_hex(own)[:12]}…); to train anew, say another --save-dir; to use the "
            "checkpoint, give the prior of its training with --prior"
        )


def _hex(fingerprint: Tensor) -> str:
    return "".join(f"{byte:02x}" for byte in fingerprint.flatten().float().round().long().tolist())
