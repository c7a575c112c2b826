"""A process that is killed at a chosen moment: before it opens, renames, makes or removes a file for the n-th time."""

import os
import signal
import sys
import traceback
from collections.abc import Callable

EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "fcntl.flock", "os.truncate"}


def killed_before(step: int, act: Callable[[], object]) -> bool:
    """Call `act` in a process of its own, which is killed before its `step`-th event (from 1); whether it was."""
    child = os.fork()
    if child == 0:
        count = 0

        def watch(event: str, _: object) -> None:
            nonlocal count
            if event not in EVENTS:
                return
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            act()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)
