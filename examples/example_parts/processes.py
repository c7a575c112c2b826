"""Run fairseq's commands and ours in copies of this process.

The models are many and small, and every new process would import torch and fairseq for seconds.
"""

import fcntl
import logging
import os
import shlex
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import fairseq_cli.generate
import fairseq_cli.preprocess
import fairseq_cli.train
import fairseq_cli.validate
import torch
import torch._dynamo  # every optimizer would import it, which takes a second

from fairseq_llrnn.cli import main
from fairseq_llrnn.errors import DataError, OptionError

COMMANDS = {
    "fairseq-generate": fairseq_cli.generate.cli_main,
    "fairseq-preprocess": fairseq_cli.preprocess.cli_main,
    "fairseq-train": fairseq_cli.train.cli_main,
    "fairseq-validate": fairseq_cli.validate.cli_main,
    "llrnn": main.main,
}
LOGGED = "%(asctime)s | %(levelname)s | %(name)s | %(message)s"  # as fairseq


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock inside the block. The system frees it when the process ends. Raises OptionError."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OptionError(f"{folder}: another process is working on it; wait for its end") from None
        yield


def run(
    command: str, arguments: Sequence[str], log: Path, stdin: Path | None = None, stdout: Path | None = None
) -> float:
    """Run one of COMMANDS with one thread, and return its seconds of processor time. Its messages are appended to
    `log`.

    `stdin`: its input. `stdout`: file for its results, if not `log`. Raises DataError if it fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as stream:
        stream.write(f"$ {shlex.join([command, *arguments])}\n")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _become(command, arguments, log, stdin, stdout)
    _, status, used = os.wait4(child, 0)
    if status:
        last = " / ".join(log.read_text(encoding="utf-8").splitlines()[-2:])
        raise DataError(f"{command} failed with status {os.waitstatus_to_exitcode(status)}; {log} ends with: {last}")
    return used.ru_utime + used.ru_stime


def _become(command: str, arguments: Sequence[str], log: Path, stdin: Path | None, stdout: Path | None) -> None:
    """Run the command in the copy; never returns."""
    code = 1
    try:
        sys.stdout = sys.stderr = log.open("a", encoding="utf-8", buffering=1)
        os.dup2(sys.stdout.fileno(), 1)
        os.dup2(sys.stdout.fileno(), 2)
        if stdin is not None:
            os.dup2(os.open(stdin, os.O_RDONLY), 0)
            sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        if stdout is not None:
            os.dup2(os.open(stdout, os.O_WRONLY | os.O_CREAT), 1)
            sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        logging.basicConfig(format=LOGGED, level=logging.INFO, stream=sys.stderr, force=True)
        logging.getLogger("fairseq").setLevel(logging.INFO)
        torch.set_num_threads(1)
        sys.argv = [command, *arguments]
        code = COMMANDS[command]() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)
