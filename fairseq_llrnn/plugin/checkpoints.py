"""Checkpoints are data: they are read without executing what they hold.

torch ≥ 2.6 reads with `weights_only=True` and refuses every class it does not know; fairseq's checkpoints hold one such
class, argparse.Namespace, which carries plain values only. We allow that one and turn a refusal, or a damaged file,
into one clear message.
"""

from __future__ import annotations

import argparse
import functools
import pickle
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch
from fairseq import checkpoint_utils

from fairseq_llrnn.errors import DataError, LLRNNError


def explain_load_errors(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function whose first argument is a checkpoint's path: its failures become DataError."""

    @functools.wraps(load)
    def wrapper(path: str, *args: Any, **passed_on: Any) -> Any:  # the signature belongs to the host
        try:
            return load(path, *args, **passed_on)
        except pickle.UnpicklingError as error:
            if "weights only" not in str(error).lower():
                raise DataError(_damaged(path, error)) from None
            raise DataError(
                f"{path}: refused: expected a checkpoint of tensors and plain values, found a pickle that wants "
                f"to run other code ({_culprit(str(error))}); nothing of it was executed. Use one that fairseq saved"
            ) from None
        except EOFError as error:
            raise DataError(_damaged(path, error)) from None
        except RuntimeError as error:
            if "PytorchStreamReader" not in str(error) and "zip" not in str(error):
                raise
            raise DataError(_damaged(path, error)) from None

    return wrapper


def _damaged(path: str, error: Exception) -> str:
    reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
    return (
        f"{path}: expected a whole checkpoint, found one that is cut short or damaged ({reason}); "
        "copy it again, or go on from an earlier checkpoint with --restore-file"
    )


def _culprit(message: str) -> str:
    for line in message.splitlines():
        if "GLOBAL" in line or "global" in line:
            return line.strip()[:160]
    return "an unknown class"


def install() -> None:
    """Make every fairseq command in this process load checkpoints safely and say clearly why it does not."""
    torch.serialization.add_safe_globals([argparse.Namespace])
    if not hasattr(checkpoint_utils.load_checkpoint_to_cpu, "__wrapped__"):
        checkpoint_utils.load_checkpoint_to_cpu = explain_load_errors(checkpoint_utils.load_checkpoint_to_cpu)
    _say_user_errors_plainly()


def _say_user_errors_plainly() -> None:
    """In fairseq's commands, too, an error that is the user's to mend is one line, not a stack trace."""
    before = sys.excepthook
    if getattr(before, "says_llrnn_errors", False):
        return

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, LLRNNError):
            print(f"fairseq_llrnn: error: {error}", file=sys.stderr)
        else:
            before(kind, error, trace)

    hook.says_llrnn_errors = True  # type: ignore[attr-defined]
    sys.excepthook = hook
