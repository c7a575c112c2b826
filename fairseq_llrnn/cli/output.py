"""stdout that cannot take what is written to it: a full disk, or a reader that went away."""

import os
import sys


def output_error() -> OSError | None:
    """What keeps stdout from taking what it holds back; None where nothing does."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return error
    return None


def drop_output() -> None:
    """Let go what stdout holds back, so that Python does not try again as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def has_place(error: OSError) -> bool:
    """Whether an error is about a file that has a name, and so not about stdout."""
    return error.filename is not None
