"""What is wrong with a checkpoint, in one line: it wants to run code, is damaged, or fits no model built for it."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

from fairseq_llrnn.errors import DataError, LLRNNError


def explain_load_errors(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function whose first argument is a checkpoint's path: what is wrong with the file becomes DataError.

    A damaged file can end in any error: torch tries to read it as a zip archive, a tar archive, and a bare pickle.
    """

    @functools.wraps(load)
    def wrapper(path: str, *args: Any, **passed_on: Any) -> Any:  # the signature belongs to fairseq
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


def explain_misfit(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function whose first argument are paths: weights that fit no model built for them become DataError."""

    @functools.wraps(load)
    def wrapper(paths: list[str], *args: Any, **passed_on: Any) -> Any:  # the signature belongs to fairseq
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
