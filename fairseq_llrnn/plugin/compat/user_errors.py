"""Print an error that the user can fix in one line without a stack trace, in fairseq's commands too.

This includes errors that fairseq wraps: its trainer turns every error while loading weights into one exception.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from fairseq_llrnn.errors import LLRNNError, as_one_line, with_option

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]
PLACES = ("--path", "--prior", "--source-prior")  # options that name a checkpoint or a prior
OF_FAIRSEQ = (  # beginnings of fairseq's messages about a resumed training, and their fixes
    ("Cannot load model parameters from checkpoint",
     "Use --arch and the sizes with which the checkpoint was trained, or another --save-dir"),
    ("Optimizer does not match", "Or use the optimizer of the checkpoint"),
    ("Criterion does not match", "Or use the criterion of the checkpoint"),
)  # fmt: skip
COMMAND = "FAIRSEQ_LLRNN_COMMAND"  # environment variable: the command's process id, for the processes it starts


class PlainErrors:
    """An exception hook that prints our errors in one line, and passes all others to the previous hook."""

    def __init__(self, before: Hook) -> None:
        self.before = before

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        message = what_users_did(error)
        if message is None:
            self.before(kind, error, trace)
        else:
            print(f"fairseq_llrnn: error: {message}", file=sys.stderr)
            leave_if_others_run(1)


def what_users_did(error: BaseException) -> str | None:
    """Return the message of an error that the user can fix, in one line, or None for another error.

    It is an error of ours, even if another one was raised while it was handled, or one of OF_FAIRSEQ.
    """
    user_error: BaseException | None = error
    while user_error is not None and not isinstance(user_error, LLRNNError):
        user_error = user_error.__cause__ or (None if user_error.__suppress_context__ else user_error.__context__)
    if user_error is None:
        return next((as_one_line(f"{error} {fix}") for begin, fix in OF_FAIRSEQ if str(error).startswith(begin)), None)
    message = with_option(user_error, values_of(sys.argv[1:], PLACES))
    return message + (as_one_line(f" ({error})") if user_error is not error else "")


def values_of(words: Sequence[str], names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the given options of a command line with their values, or an empty value at the end of the line."""
    for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
        option, equals, value = word.partition("=")
        if option in names:
            yield option, value if equals else following


def leave_if_others_run(status: int) -> None:
    """End the process at once if daemon threads are left.

    fairseq reads batches ahead in such a thread. Python stops it anywhere. Inside torch's C++ that is an abort
    (`terminate called …`), or the process never ends.
    """
    if any(thread.daemon and thread.is_alive() for thread in threading.enumerate()):
        atexit._run_exitfuncs()  # ends everything but the threads
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def enter_command() -> None:
    """Mark the process as a command of ours, when a command line names one of our tasks or criteria.

    From then on, our errors are one line, and checkpoints of unknown tasks are read safely, too (task_checkpoints.py).
    """
    os.environ[COMMAND] = str(os.getpid())
    say_errors_plainly()


def say_errors_plainly() -> None:
    """Print uncaught errors of ours in one line from now on."""
    if not isinstance(sys.excepthook, PlainErrors):
        sys.excepthook = PlainErrors(sys.excepthook)


def callers() -> Iterator[dict[str, Any]]:
    """Yield the globals of the calling modules, the nearest first. A command of fairseq may be run as a file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame.f_globals
        frame = frame.f_back


def runs_fairseq() -> bool:
    """Return whether this process is one of fairseq's commands."""
    command = Path(sys.argv[0])
    return command.name.startswith("fairseq-") or command.parent.name == "fairseq_cli"


def in_command() -> bool:
    """Return whether this process is a command of ours (`enter_command`), or one of its workers."""
    return os.environ.get(COMMAND) in (str(os.getpid()), str(os.getppid()))
