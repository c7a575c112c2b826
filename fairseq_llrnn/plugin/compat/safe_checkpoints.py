"""Checkpoints are data: they are read without executing what they hold.

torch ≥ 2.6 reads with `weights_only=True` and refuses every class it does not know; fairseq's checkpoints hold
argparse.Namespace, which carries plain values only, and numpy's arrays of numbers. We allow those and turn a refusal,
or a damaged file, into one clear message. Options in it that the host would run as Python are evaluated by
expressions.py instead.
"""

from __future__ import annotations

import argparse
import functools
import pickle
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from omegaconf import OmegaConf

from fairseq_llrnn.errors import DataError, LLRNNError
from fairseq_llrnn.plugin.compat import safe_eval as expressions
from fairseq_llrnn.plugin.compat.dictionary_check import refuse_other_words

# numpy's arrays and numbers: --eval-bleu leaves its counts in a checkpoint's meters
_reconstruct, _scalar = np.zeros(1).__reduce__()[0], np.float64(0).__reduce__()[0]
NUMBERS: tuple[Any, ...] = (_reconstruct, _scalar, np.ndarray, np.dtype, *(type(np.dtype(code)) for code in "?bhilfd"))


def explain_load_errors(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function whose first argument is a checkpoint's path: what is wrong with the file becomes DataError.

    A damaged file can end in any error: torch tries to read it as a zip archive, a tar archive, and a bare pickle.
    """

    @functools.wraps(load)
    def wrapper(path: str, *args: Any, **passed_on: Any) -> Any:  # the signature belongs to the host
        try:
            return load(path, *args, **passed_on)
        except (LLRNNError, FileNotFoundError, PermissionError, IsADirectoryError, MemoryError):
            raise
        except Exception as error:
            raise DataError(_diagnosis(path, error)) from None

    return wrapper


def _diagnosis(path: str, error: Exception) -> str:
    message = str(error)
    wants_code = [line.strip() for line in message.splitlines() if "GLOBAL" in line or "reduce" in line]
    if isinstance(error, pickle.UnpicklingError) and wants_code:
        return (
            f"{path}: refused: expected a checkpoint of tensors and plain values, found a pickle that wants to run "
            f"other code ({wants_code[0][:160]}); nothing of it was executed. Use one that fairseq saved"
        )
    if isinstance(error, pickle.UnpicklingError) or "weights_only" in message:
        found = [line.strip() for line in message.splitlines() if "Unsupported" in line or line.startswith("Cannot")]
        reason = found[0].partition(". ")[0][:160] if found else type(error).__name__
        return (
            f"{path}: refused: expected a checkpoint that fairseq saved, found a damaged one or another kind of file "
            f"({reason}); nothing of it was executed. Copy it again, or use an earlier one"
        )
    reason = message.splitlines()[0][:120] if message else type(error).__name__
    return (
        f"{path}: expected a whole checkpoint, found one that is cut short or damaged ({reason}); "
        "copy it again, or go on from an earlier checkpoint with --restore-file"
    )


def forget_experts(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the host's load_checkpoint_to_cpu: code that the options in a checkpoint name with --expert is not theirs.

    A command runs the experts that its own user names, and never those of whoever wrote the checkpoint.
    """

    @functools.wraps(load)
    def wrapper(path: str, arg_overrides: dict[str, Any] | None = None, **passed_on: Any) -> Any:
        state = load(path, arg_overrides, **passed_on)
        if not (arg_overrides or {}).get("expert"):
            cfg = state.get("cfg")
            for options in (state.get("args"), None if cfg is None else cfg.get("task")):
                if options is not None and getattr(options, "expert", None) is not None:
                    options.expert = None
        return state

    return wrapper


def explain_misfit(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function whose first argument are paths: weights that fit no model built for them become DataError."""

    @functools.wraps(load)
    def wrapper(paths: list[str], *args: Any, **passed_on: Any) -> Any:  # the signature belongs to the host
        try:
            return load(paths, *args, **passed_on)
        except RuntimeError as error:
            found = str(error).splitlines()
            if not found or not found[0].startswith("Error(s) in loading state_dict"):
                raise
            raise DataError(
                f"{':'.join(paths)}: expected weights that fit the data's dictionaries and the checkpoint's own "
                f"options, found {found[1].strip() if len(found) > 1 else found[0]}; give models that were trained "
                "with the dictionaries of the data folder"
            ) from None

    return wrapper


def with_plain_options(broadcast: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the host's broadcast_object, by which the first of several processes shares a checkpoint with the others.

    What it sends is read as safely as a file; the one thing in it that this would refuse are the options as an
    omegaconf object, which no receiver looks at.
    """

    @functools.wraps(broadcast)
    def wrapper(obj: Any, *args: Any, **passed_on: Any) -> Any:  # the signature belongs to the host
        if isinstance(obj, dict) and OmegaConf.is_config(obj.get("cfg")):
            obj = {**obj, "cfg": OmegaConf.to_container(obj["cfg"], enum_to_str=True)}
        return broadcast(obj, *args, **passed_on)

    return wrapper


def install() -> None:
    """Make every fairseq command in this process load checkpoints safely and say clearly why it does not."""
    if hasattr(checkpoint_utils.load_checkpoint_to_cpu, "__wrapped__"):
        return
    torch.serialization.add_safe_globals([argparse.Namespace, distributed_utils._TensorPlaceholder, *NUMBERS])
    checkpoint_utils.load_checkpoint_to_cpu = explain_load_errors(
        forget_experts(checkpoint_utils.load_checkpoint_to_cpu)
    )
    checkpoint_utils.load_model_ensemble_and_task = refuse_other_words(checkpoint_utils.load_model_ensemble_and_task)
    checkpoint_utils.load_model_ensemble = explain_misfit(checkpoint_utils.load_model_ensemble)
    distributed_utils.broadcast_object = with_plain_options(distributed_utils.broadcast_object)
    expressions.install()
    _say_user_errors_plainly()


def _say_user_errors_plainly() -> None:
    """In fairseq's commands, too, an error that is the user's to mend is one line, not a stack trace.

    Also where the host wrapped it: its trainer turns whatever happens while it loads weights into one exception.
    """
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        ours: BaseException | None = error
        while ours is not None and not isinstance(ours, LLRNNError):
            ours = ours.__cause__ or (None if ours.__suppress_context__ else ours.__context__)
        if ours is None:
            before(kind, error, trace)
        else:
            print(f"fairseq_llrnn: error: {ours}" + (f" ({error})" if ours is not error else ""), file=sys.stderr)

    sys.excepthook = hook
