"""In fairseq's commands, too, an error that is the user's to fix is one line, not a stack trace.

Also where fairseq wrapped it: its trainer turns whatever happens while it loads weights into one exception.
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
# Options that name a checkpoint or a prior. Those before which a command line has a data folder may be flags.
PLACES = ("--path", "--prior", "--source-prior")
OF_FAIRSEQ = (  # messages of fairseq about a resumed training, and how to fix it
    ("Cannot load model parameters from checkpoint",
     "Give --arch and the sizes with which the checkpoint was trained, or another --save-dir"),
    ("Optimizer does not match", "Or give the optimizer of the checkpoint"),
    ("Criterion does not match", "Or give the criterion of the checkpoint"),
)  # fmt: skip
COMMAND = "FAIRSEQ_LLRNN_COMMAND"  # in the environment, which the processes have that the command starts: its id


class PlainErrors:
    """An exception hook that prints our errors in one line, and leaves all others to the hook before it."""

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
    """Return the message of an error that is the user's to fix, in one line; None: it is another error.

    It is an error of ours, also if another one was raised while it was handled, or one of OF_FAIRSEQ.
    """
    ours: BaseException | None = error
    while ours is not None and not isinstance(ours, LLRNNError):
        ours = ours.__cause__ or (None if ours.__suppress_context__ else ours.__context__)
    if ours is None:
        return next((as_one_line(f"{error} {fix}") for begin, fix in OF_FAIRSEQ if str(error).startswith(begin)), None)
    message = with_option(ours, values_of(sys.argv[1:], PLACES))
    return message + (as_one_line(f" ({error})") if ours is not error else "")


def values_of(words: Sequence[str], names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Some options of a command line, in its order, each with its value; an empty one where nothing follows."""
    for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
        option, equals, value = word.partition("=")
        if option in names:
            yield option, value if equals else following


def leave_if_others_run(status: int) -> None:
    """End the process at once if daemon threads are left.

    fairseq reads batches ahead in such a thread. Python stops them where they are, which inside torch's C++ is an abort
    (`terminate called …`) or no end at all.
    """
    if any(thread.daemon and thread.is_alive() for thread in threading.enumerate()):
        atexit._run_exitfuncs()  # temporary files, logs, processes: all but the threads
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def enter_command() -> None:
    """To be called when a command line names a task or criterion of ours: from then on, the process is such a command.

    The next errors of ours are one line, and checkpoints of unknown tasks are read safely, too (task_checkpoints.py).
    """
    os.environ[COMMAND] = str(os.getpid())
    say_errors_plainly()


def say_errors_plainly() -> None:
    """From here on, errors of ours that are not caught are one line."""
    if not isinstance(sys.excepthook, PlainErrors):
        sys.excepthook = PlainErrors(sys.excepthook)


def callers() -> Iterator[dict[str, Any]]:
    """The names of the modules that are calling, the nearest first; a command of fairseq's may be run as a file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame.f_globals
        frame = frame.f_back


def runs_fairseq() -> bool:
    """Whether this process is one of fairseq's commands."""
    command = Path(sys.argv[0])
    return command.name.startswith("fairseq-") or command.parent.name == "fairseq_cli"


def in_command() -> bool:
    """Whether this process is such a command, or one of its workers (several GPUs)."""
    return os.environ.get(COMMAND) in (str(os.getpid()), str(os.getppid()))
