"""The server of shell.py: it imports torch, fairseq and this package once, and becomes each command in a fork.

The child runs the command's module as `__main__` with the given arguments, files as its standard streams, and Python's
own handling of an error that nobody catches.

Scripts of bash reach it by a socket (quick_commands.py).

    python tests/support/shell_server.py [MODULE…]      JSON requests on stdin, exit statuses on stdout

With names of modules it imports those alone.
"""

from __future__ import annotations

import gc
import importlib
import json
import logging
import os
import pkgutil
import resource
import runpy
import signal
import socket
import sys
import time
import traceback
import types
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import quick_commands
from quick_composition import remember_compositions

MODULES = quick_commands.MODULES | {"two_gradients": "two_gradients", "two_processes": "two_processes"}  # this folder's

IMPORTED = (  # by most commands, beside all of this package that neither registers itself nor is slow to import
    "fairseq_llrnn.plugin", "fairseq_llrnn.plugin.tasks.language_modeling", "fairseq_llrnn.plugin.tasks.translation",
    "fairseq_llrnn.plugin.models.llrnn_lm", "fairseq.trainer", "fairseq.quantization_utils",
    "fairseq.data.token_block_utils_fast", "torch._dynamo", "torch.utils.serialization", "pydantic",
)  # fmt: skip
APART = ("plugin", "systems", "huggingface")


def script(command: str) -> str:
    """The console script of `command` beside this Python."""
    return str(Path(sys.executable).with_name(command))


def _child(request: Mapping[str, Any]) -> int:
    """Become the command; returns its exit status."""
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
    quick_commands.look_into_pythonpath()
    if request["disk"] is not None:  # the error is another one than that of a full disk, and comes at the same place
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["disk"], request["disk"]))
        sys.dont_write_bytecode = True  # half of a module would stay behind, for all that come after
    return _become(request["command"], request["args"])


def _become(command: str, args: list[str]) -> int:
    """Run a command, or Python, in this process; returns the exit status that the interpreter would have."""
    try:
        if command == "python" and args[0] == "-c":
            sys.argv, sys.path[0] = ["-c", *args[2:]], ""
            program = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(args[1], "<string>", "exec"), vars(program))
        elif command == "python" and args[0] == "-m":
            sys.argv = args[1:]
            sys.modules.pop(args[1], None)
            runpy.run_module(args[1], run_name="__main__", alter_sys=True)
        elif command == "python":
            sys.argv = args
            sys.path[0] = str(Path(args[0]).resolve().parent)
            runpy.run_path(args[0], run_name="__main__")
        else:
            sys.argv = [script(command), *args]
            sys.modules.pop(MODULES[command], None)
            runpy.run_module(MODULES[command], run_name="__main__", alter_sys=False)
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


def _listen(address: str, ended: int, alive: int) -> None:
    """Fork a process that answers at a socket until this one ends."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        if os.fork() == 0:
            os.close(alive)
            quick_commands.listen(listener, ended, _become)
            os._exit(0)


def _imported() -> Iterator[str]:
    """What most commands import."""
    package = importlib.import_module("fairseq_llrnn")
    own = (found.name for found in pkgutil.walk_packages(package.__path__, "fairseq_llrnn."))
    yield from (*IMPORTED, *(name for name in own if name.split(".")[1] not in APART))


def _warm_up() -> None:
    """What libraries make when they are first used, and keep: schemas, the tables of parsers, machine code."""
    import torch
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    from fairseq_llrnn import registry
    from fairseq_llrnn.prior.recipe import Recipe
    from fairseq_llrnn.settings import checked

    checked(Recipe, {}, str)
    registry.names("commands")
    remember_compositions()
    arguments = ["data", "--task", "language_modeling", "--arch", "lstm_lm", "--optimizer", "adam"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairseq's use of hydra
        parser = options.get_training_parser()
        convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, input_args=arguments))
    if torch.cuda.device_count() == 0:  # with a GPU, a gradient or Adam makes what no fork can use
        layer = torch.nn.LSTM(16, 16)
        layer(torch.ones(4, 2, 16))[0].log_softmax(2).sum().backward()
        torch.optim.Adam(layer.parameters()).step()


def serve(modules: list[str]) -> None:
    """Import what is slow, or these modules alone, then fork one child per request."""
    for name in modules or _imported():
        importlib.import_module(name)
    if not modules:
        _warm_up()
    # The commands set up logging as their first act, before fairseq can.
    logging.root.handlers.clear()
    gc.collect()
    gc.freeze()  # children need not look through what was imported
    gc.set_threshold(100_000)  # nor often through fairseq's configuration, which is most of what a small command makes
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    alive = os.pipe()  # which is closed when this process ends
    for line in sys.stdin:
        request = json.loads(line)
        if "listen" in request:
            _listen(request["listen"], *alive)
            print(0, file=answers, flush=True)
            continue
        children = [_fork(request, rank) for rank in range(request["processes"])]
        if request["kill_after"] is not None:
            _kill_after(children, request["kill_after"])
        print(_wait(children), file=answers, flush=True)
    os.close(alive[1])
    while True:
        try:
            os.wait()
        except ChildProcessError:
            os._exit(0)  # nothing to tidy, and the interpreter's own end takes seconds


if __name__ == "__main__":
    serve(sys.argv[1:])
