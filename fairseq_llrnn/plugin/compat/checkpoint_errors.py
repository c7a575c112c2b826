"""One-line messages for a checkpoint that would run code, is damaged, or does not fit."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from omegaconf.errors import OmegaConfBaseException

from fairseq_llrnn.errors import DataError, LLRNNError, OptionError
from fairseq_llrnn.plugin.compat.checkpoint_sizes import GIVE, check_file, check_tensors, damage, is_text

LAST = "checkpoint_last.pt"  # fairseq's default of --restore-file, in --save-dir
# errors that damaged weights and options of a checkpoint can raise
OF_OPTIONS = (
    OmegaConfBaseException, RuntimeError, ValueError, TypeError, AttributeError, LookupError, AssertionError,
    ArithmeticError, MemoryError,
)  # fmt: skip


def explain_load_errors(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function whose first argument is a checkpoint's path: errors of the file become DataError.

    A damaged file can raise any error: torch tries to read it as a zip archive, a tar archive, and a bare pickle. If
    the second argument overrides options, the error is an OptionError about these.
    """

    @functools.wraps(load)
    def wrapper(path: str, arg_overrides: Any = None, **passed_on: Any) -> Any:  # as of load_checkpoint_to_cpu
        try:
            check_file(path)
            state = load(path, *([] if arg_overrides is None else [arg_overrides]), **passed_on)
            check_tensors(path, state)
            return state
        except (LLRNNError, FileNotFoundError, PermissionError):
            raise
        except Exception as error:  # MemoryError, too
            if is_text(path):
                raise DataError(f"{path}: expected a checkpoint, found a text; {GIVE}", path) from None
            shown, is_whole = _overrides(arg_overrides), damage(path) is None
            if shown and is_whole and not isinstance(error, pickle.UnpicklingError):
                raise _wrong_overrides(shown, path, in_one_line(error)) from None
            raise DataError(_diagnosis(path, error)) from None

    return wrapper


def _wrong_overrides(shown: str, path: str, reason: str) -> OptionError:
    return OptionError(
        f"--model-overrides {shown}: the model of {path} cannot be built with these options ({reason}); correct them, "
        "or remove --model-overrides"
    )


def no_such_model(path: str, error: Exception) -> DataError:
    """Return the error for a checkpoint whose model cannot be built from its options."""
    return DataError(
        f"{path}: expected weights that fit the model of its options, found {in_one_line(error)}; use a whole "
        "checkpoint, saved by this version"
    )


def _overrides(overrides: Any) -> str:
    """Return the value of --model-overrides. fairseq-validate adds all of its options to it."""
    if isinstance(overrides, dict) and "model_overrides" in overrides:
        text = str(overrides["model_overrides"])
        return "" if text == "{}" else text[:200]
    return "" if overrides is None or overrides == {} else repr(overrides)[:200]


def in_one_line(error: Exception) -> str:
    """Return the kind of an error, and its message, shortened."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text if len(text) < 160 else text[:160] + '…'}" if text else type(error).__name__


def _diagnosis(path: str, error: Exception) -> str:
    message = str(error)
    code = [line.strip() for line in message.splitlines() if "GLOBAL" in line or "reduce" in line]
    if isinstance(error, pickle.UnpicklingError) and code:
        return (
            f"{path}: refused: expected a checkpoint of tensors and plain values, found a pickle that would run "
            f"other code ({code[0][:160]}); nothing of it was executed. Use one that fairseq saved"
        )
    if isinstance(error, pickle.UnpicklingError) or "weights_only" in message:
        lines = [line.strip() for line in message.splitlines() if "Unsupported" in line or line.startswith("Cannot")]
        reason = lines[0].partition(". ")[0][:160] if lines else type(error).__name__
        return (
            f"{path}: refused: expected a checkpoint that fairseq saved, found a damaged one or another kind of file "
            f"({reason}); nothing of it was executed. Copy it again, or use an earlier one"
        )
    reason = message.splitlines()[0][:120] if message else type(error).__name__
    return (
        f"{path}: expected a whole checkpoint, found one that is cut short or damaged ({reason}); "
        "copy it again, or resume from an earlier checkpoint with --restore-file"
    )


@contextmanager
def explained_misfit(paths: Sequence[str], arg_overrides: Any) -> Iterator[None]:
    """Turn errors of loading these checkpoints inside the block, such as weights that do not fit, into DataError.

    If `arg_overrides` overrides options of the checkpoints, the error is an OptionError about these.
    """
    try:
        yield
    except OF_OPTIONS as error:
        misfits = _misfits(error)
        reason = misfits[0] if misfits else in_one_line(error)
        if overrides := _overrides(arg_overrides):
            raise _wrong_overrides(overrides, ":".join(paths), reason) from None
        if not misfits:
            raise no_such_model(":".join(paths), error) from None
        raise DataError(
            f"{':'.join(paths)}: expected weights that fit the data's dictionaries and the checkpoint's own "
            f"options, found {reason}; use models that were trained with the dictionaries of the data folder"
        ) from None


def _misfits(error: BaseException | None) -> list[str]:
    """Return torch's descriptions of the weights that do not fit a model, or none for another error."""
    first, *lines = str(error).splitlines() or [""]
    return [line.strip() for line in lines] if first.startswith("Error(s) in loading state_dict") else []
