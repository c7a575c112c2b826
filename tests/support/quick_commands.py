"""For scripts: `llrnn`, fairseq's commands, `python FILE` and `python -m COMMAND` without the imports of each.

A script calls its commands itself, and each would import torch and fairseq for seconds. Functions of the same names
(BASH_ENV), for a script of Python the commands beside its interpreter and on PATH, are small programs instead, which
hand their streams, arguments, environment and folder to a fork of the tests' server (shell_server.py); that becomes
the command, and they end as it ended. All else is as a user has it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

MODULES = {
    "fairseq-preprocess": "fairseq_cli.preprocess",
    "fairseq-train": "fairseq_cli.train",
    "fairseq-validate": "fairseq_cli.validate",
    "fairseq-eval-lm": "fairseq_cli.eval_lm",
    "fairseq-generate": "fairseq_cli.generate",
    "fairseq-interactive": "fairseq_cli.interactive",
    "llrnn": "fairseq_llrnn.cli.main",
}
NAMES = (*MODULES, "python")

# What every name calls. What it does not hand over is left to the real command.
CLIENT = r"""#!{python} -IS
import json, os, signal, socket, struct, sys

place, name = os.path.split(sys.argv[0])
called = os.path.join(place, "called." + name + "." + ("".join(sys.argv[1:2]) if name == "llrnn" else ""))
if name == "python":
    real = not (sys.argv[1:2] == ["-m"] and sys.argv[2] in {modules!r} or "".join(sys.argv[1:2]).endswith(".py"))
else:
    real = name in {first_real!r} and not os.path.exists(called)
if real:
    open(called, "w").close()
    os.execv(os.path.join({commands!r}, name), [name, *sys.argv[1:]])
request = json.dumps([sys.argv[0], sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [struct.pack("!I", len(request))], [0, 1, 2])
    server.sendall(request)
    answer = server.recv(4)
sys.exit(struct.unpack("!i", answer)[0] if len(answer) == 4 else 128 + signal.SIGKILL)
"""


def write_clients(place: Path, address: str, first_real: Sequence[str]) -> Path:
    """Fill a folder, and return the file for BASH_ENV.

    Args:
        address: the socket of the server.
        first_real: names whose first call starts the real command, for `llrnn` that of every sub-command.
    """
    place.mkdir(parents=True)
    functions = place / "functions.sh"
    functions.write_text("".join(f'{name}() {{ "{place / name}" "$@"; }}\n' for name in NAMES), encoding="utf-8")
    for name in NAMES:
        text = CLIENT.format(
            python=sys.executable, commands=str(Path(sys.executable).parent), address=address,
            first_real=tuple(first_real), modules=tuple(MODULES.values()),
        )  # fmt: skip
        (place / name).write_text(text, encoding="utf-8")
        (place / name).chmod(0o755)
    return functions


# ---- in the server --------------------------------------------------------------------------------------------------


def look_into_pythonpath() -> None:
    """Python reads it when it starts: folders that came since then follow that of the script."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [folder for folder in folders if folder and folder not in sys.path[1:]]


def listen(listener: socket.socket, ended: int, become: Callable[[str, list[str]], int]) -> None:
    """Fork for every request until the pipe `ended` is closed; `become`: runs a command and returns its exit status."""
    while ended not in select.select([listener.fileno(), ended], [], [])[0]:
        connection, _ = listener.accept()
        while _reaped():
            pass
        if os.fork() == 0:
            listener.close()
            _answer(connection, become)
        connection.close()


def _reaped() -> bool:
    """Whether there was a child that had ended, which is gone now."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0] > 0
    except ChildProcessError:
        return False


def _answer(connection: socket.socket, become: Callable[[str, list[str]], int]) -> None:
    """Become what the request names, and tell its exit status; never returns."""
    code = 1
    try:
        client, args = _receive(connection)
        place, name = os.path.split(client)
        sys.executable = os.path.join(place, "python")  # what a script starts is beside it
        os.environ["PATH"] = place + os.pathsep + os.environ["PATH"]
        code = become(name, args)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BrokenPipeError):  # nobody reads any more
                stream.flush()
        connection.sendall(struct.pack("!i", code))
        os._exit(0)


def _receive(connection: socket.socket) -> tuple[str, list[str]]:
    """The client's program and arguments; its streams, folder and environment are this process's from now on."""
    size, streams, _, _ = socket.recv_fds(connection, 4, 3)
    missing, data = struct.unpack("!I", size)[0], b""
    while len(data) < missing:
        data += connection.recv(missing - len(data))
    request: list[Any] = json.loads(data)
    for fd, stream in enumerate(streams):
        os.dup2(stream, fd)
        os.close(stream)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    os.chdir(request[2])
    os.environ.clear()
    os.environ.update(request[3])
    look_into_pythonpath()
    return request[0], request[1]
