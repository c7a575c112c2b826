"""Runs fairseq's commands as users do, each in a process of its own, without paying its imports every time.

A server process imports torch, fairseq and this package once. For every command it forks; the child runs the command's
module as `__main__` with the given arguments, files as its standard streams, and Python's own handling of an error that
nobody catches. So a command costs its work alone and leaves nothing behind for the next. Where the order of imports or
the signal to a process matters, the tests start the real console scripts instead.

    python tests/support/shell.py      the server: JSON requests on stdin, exit statuses on stdout
"""

from __future__ import annotations

import gc
import importlib
import json
import logging
import os
import resource
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

MODULES = {
    "fairseq-preprocess": "fairseq_cli.preprocess",
    "fairseq-train": "fairseq_cli.train",
    "fairseq-validate": "fairseq_cli.validate",
    "fairseq-eval-lm": "fairseq_cli.eval_lm",
    "fairseq-generate": "fairseq_cli.generate",
    "fairseq-interactive": "fairseq_cli.interactive",
    "llrnn": "fairseq_llrnn.cli.main",
    "two_gradients": "two_gradients",  # this folder's
    "two_processes": "two_processes",
}


# fairseq's own tasks read most of their checkpoints only so: it is for files that this very test made.
TRUSTING = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}


@dataclass(frozen=True)
class Result:
    """What a command left: its exit status and what it wrote."""

    code: int
    out: str
    err: str

    def json_lines(self, tag: str) -> list[dict[str, float]]:
        """What the progress bar logged under `tag` (--log-format json): one mapping a line, numbers as numbers."""
        found = []
        for line in self.out.splitlines():
            head, brace, rest = line.partition("{")
            if brace and f"| {tag} |" in head and rest.endswith("}"):
                found.append({key: _number(value) for key, value in json.loads("{" + rest).items()})
        return found


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def environment() -> dict[str, str]:
    """The commands beside this Python before all others, one thread a process, and what it writes at once."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    # a test that parsed a command line in this process has said there that it is a command of ours (user_errors.py)
    own = {name: value for name, value in os.environ.items() if name != "FAIRSEQ_LLRNN_COMMAND"}
    return {**own, "PATH": path, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def assert_says(result: Result, *words: str) -> None:
    """The command failed with one line of ours, which holds `words`, and without a stack trace."""
    assert result.code != 0
    last = result.err.strip().splitlines()[-1]
    assert last.startswith("fairseq_llrnn: error: "), result.err[-2000:]
    for word in words:
        assert word in last, last
    assert "Traceback" not in result.err


class Shell:
    """The client of the server below."""

    def __init__(self) -> None:
        self.server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env=environment(),
        )  # fmt: skip

    def run(
        self,
        command: str,
        *args: object,
        cwd: Path | None = None,
        stdin: str = "",
        code: int | None = 0,
        variables: Mapping[str, str] | None = None,
        processes: int = 1,
        kill_after: float | None = None,
        disk: int | None = None,
    ) -> Result:
        """Run `command args…` and return what it left; fail unless it exits with `code` (None: any).

        Args:
            command: a console script of fairseq, or `llrnn`.
            variables: are added to its environment.
            processes: how many of it run at once, with the variables that torchrun sets. They write into the same
                files; in their arguments, $RANK stands for the number of each.
            kill_after: seconds after which it is killed, if it has not ended (its status is then -9).
            disk: bytes after which a file that it writes meets a full disk.
        """
        with tempfile.TemporaryDirectory() as place:
            files = {name: os.path.join(place, name) for name in ("stdin", "stdout", "stderr")}
            Path(files["stdin"]).write_text(stdin, encoding="utf-8")
            for name in ("stdout", "stderr"):  # one that is killed at once may not have made them
                Path(files[name]).touch()
            request: dict[str, Any] = {"command": command, "args": [str(a) for a in args], **files}
            request |= {"cwd": str(cwd or ROOT), "variables": dict(variables or {}), "processes": processes}
            if processes > 1:
                request["variables"] |= rendezvous(processes)
            request |= {"kill_after": kill_after, "disk": disk}
            assert self.server.stdin is not None and self.server.stdout is not None
            self.server.stdin.write(json.dumps(request) + "\n")
            self.server.stdin.flush()
            answer = self.server.stdout.readline()
            assert answer, "the server of fairseq's commands went away"
            out, err = (Path(files[name]).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
        result = Result(int(answer), out, err)
        if code is not None:
            _expect(code, result, command)
        return result

    def close(self) -> None:
        """End the server."""
        assert self.server.stdin is not None
        self.server.stdin.close()
        self.server.wait(timeout=30)


def rendezvous(processes: int) -> dict[str, str]:
    """What torchrun tells all processes: how many they are, and where they meet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def script(command: str) -> str:
    """The console script of `command` beside this Python."""
    return str(Path(sys.executable).with_name(command))


def run_script(
    *argv: object, cwd: Path | None = None, code: int | None = 0, variables: Mapping[str, str] | None = None
) -> Result:
    """Run a real process from nothing; as Shell.run otherwise. `variables` are added to its environment."""
    done = subprocess.run(
        [str(a) for a in argv], cwd=cwd or ROOT, env={**environment(), **(variables or {})}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True,
    )  # fmt: skip
    result = Result(done.returncode, done.stdout, done.stderr)
    if code is not None:
        _expect(code, result, str(argv[0]))
    return result


def _expect(code: int, result: Result, command: str) -> None:
    said = f"{result.out[-3000:]}\n{result.err[-5000:]}"
    assert result.code == code, f"{command} exited with {result.code}\n{said}"


# ---- the server ---------------------------------------------------------------------------------------------------


def _child(request: Mapping[str, Any]) -> int:
    """Become the command; returns its exit status as the interpreter would compute it."""
    for fd, name, flags in (
        (0, "stdin", os.O_RDONLY),
        (1, "stdout", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        opened = os.open(request[name], flags)
        os.dup2(opened, fd)
        os.close(opened)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    os.chdir(request["cwd"])
    os.environ.update(request["variables"])
    if request["disk"] is not None:  # the error is another one than that of a full disk, and comes at the same place
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["disk"], request["disk"]))
    sys.argv = [script(request["command"]), *request["args"]]
    try:
        runpy.run_module(MODULES[request["command"]], run_name="__main__", alter_sys=False)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _fork(request: dict[str, Any], rank: int) -> int:
    """Start the command; `rank`: which of several processes it is. Returns its process id."""
    child = os.fork()
    if child:
        return child
    if request["processes"] > 1:
        request["variables"] |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        request["args"] = [arg.replace("$RANK", str(rank)) for arg in request["args"]]
    code = 1
    try:
        code = _child(request)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _wait(children: list[int]) -> int:
    """The exit status of the first process that failed, which ends the others; else 0."""
    failed = 0
    for _ in children:
        child, status = os.wait()
        children = [other for other in children if other != child]
        if status and not failed:
            failed = os.waitstatus_to_exitcode(status)
            for other in children:
                os.kill(other, signal.SIGKILL)
    return failed


def _kill_after(children: list[int], seconds: float) -> None:
    """Kill processes after some time; those that end before that are left to `_wait`."""
    end = time.monotonic() + seconds
    ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while time.monotonic() < end:
        if all(os.waitid(os.P_PID, child, ended) is not None for child in children):
            return
        time.sleep(0.001)
    for child in children:
        os.kill(child, signal.SIGKILL)


def serve() -> None:
    """Import what is slow, then fork one child per request."""
    for name in ("fairseq_llrnn.plugin", "torch._dynamo"):  # the latter costs every optimizer a second, once
        importlib.import_module(name)
    # The commands set up logging as their first act, before fairseq can.
    logging.root.handlers.clear()
    gc.collect()
    gc.freeze()  # children need not look through what was imported
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        children = [_fork(request, rank) for rank in range(request["processes"])]
        if request["kill_after"] is not None:
            _kill_after(children, request["kill_after"])
        print(_wait(children), file=answers, flush=True)
    os._exit(0)  # nothing to tidy, and the interpreter's own end takes seconds


if __name__ == "__main__":
    serve()
