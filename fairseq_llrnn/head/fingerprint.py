"""The prior that weights were trained beside: they mean nothing beside another one."""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError, PriorError
from fairseq_llrnn.prior.prior import Prior

MOST_BYTES = 64  # of a fingerprint in a checkpoint, which is anybody's; ours have 32


def fingerprint_of(prior: Prior) -> Tensor:
    """Its bytes for a checkpoint, as floating point: so averages of checkpoints and of updates are the same again."""
    return torch.tensor(list(bytes.fromhex(prior.fingerprint)), dtype=torch.float32)


def check_fingerprint(own: Tensor, saved: object, folder: str | None, called: str = "prior") -> None:
    """Raise PriorError where a checkpoint's is that of another prior. fairseq refuses weights that have none.

    Args:
        saved: what the checkpoint holds; None: nothing.
        folder: where the own prior was read, by its option or because it is the data directory's.
        called: the kind of prior, by which its option is called.

    Raises:
        DataError: as of `in_hex`.
    """
    if saved is not None and in_hex(saved) != in_hex(own):
        raise PriorError(
            f"the checkpoint was trained with another {called} than {folder or 'the one given'} (fingerprints "
            f"{in_hex(saved)[:12]}… and {in_hex(own)[:12]}…); to train anew, say another --save-dir; to use the "
            f"checkpoint, give the {called} of its training with --{called.replace(' ', '-')}"
        )


def in_hex(fingerprint: object, checkpoint: str = "the checkpoint") -> str:
    """What a checkpoint holds as its fingerprint, (n,), as `Prior.fingerprint` has it.

    Raises:
        DataError: no short row of numbers.
    """
    if not isinstance(fingerprint, Tensor) or fingerprint.dim() != 1 or fingerprint.numel() > MOST_BYTES:
        kind = type(fingerprint).__name__
        found = f"the shape {tuple(fingerprint.shape)}" if isinstance(fingerprint, Tensor) else kind
        raise DataError(
            f"{checkpoint}: expected up to {MOST_BYTES} numbers as the fingerprint of its prior, found "
            f"{found}; use one that fairseq saved"
        )
    return "".join(f"{byte:02x}" for byte in fingerprint.float().round().long().tolist())
