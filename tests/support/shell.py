"""Runs fairseq's commands as users do, each in a process of its own, without paying its imports every time.

A server (shell_server.py) has imported torch, fairseq and this package, and becomes each command in a fork. So a
command costs its work alone and leaves nothing behind for the next. Where the order of imports or the signal to a
process matters, the tests start the real console scripts instead.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quick_commands import write_clients
from shell_server import script as script  # the tests ask for it here

ROOT = Path(__file__).resolve().parents[2]

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


    def printed(self, letter: str) -> dict[int, list[str]]:
        """What a search of fairseq printed of each sentence behind `letter-number`."""
        found: dict[int, list[str]] = {}
        for number, text in re.findall(rf"^{letter}-(\d+)\t(.*)$", self.out, re.MULTILINE):
            found.setdefault(int(number), []).append(text)
        return found

    def hypotheses(self) -> dict[int, list[tuple[float, str]]]:
        """Their scores, in base 2, and words."""
        cells = {number: [text.partition("\t") for text in texts] for number, texts in self.printed("H").items()}
        return {number: [(float(score), words) for score, _, words in some] for number, some in cells.items()}

    def best(self) -> dict[int, str]:
        """The words of the best hypothesis."""
        return {number: some[0][1] for number, some in self.hypotheses().items()}

    def positional(self) -> dict[int, list[float]]:
        """The log-probabilities of its words, in base 2."""
        return {number: [float(score) for score in texts[0].split()] for number, texts in self.printed("P").items()}

    def nats(self) -> dict[int, float]:
        """Their sum."""
        return {number: math.log(2) * sum(scores) for number, scores in self.positional().items()}


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
    """The client of the server, which has imported these modules, or else what most commands import."""

    def __init__(self, *modules: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="shell")  # its path is short: that of a socket has to be
        self.server = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("shell_server.py"), *modules], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment(),
        )  # fmt: skip

    def run(
        self, command: str, *args: object, cwd: Path | None = None, stdin: str = "", code: int | None = 0,
        variables: Mapping[str, str] | None = None, processes: int = 1, kill_after: float | None = None,
        disk: int | None = None,
    ) -> Result:  # fmt: skip
        """Run `command args…` and return what it left; fail unless it exits with `code` (None: any).

        Args:
            command: a console script of fairseq, `llrnn`, or `python`.
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
            answer = self._ask(request)
            out, err = (Path(files[name]).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
        result = Result(answer, out, err)
        if code is not None:
            _expect(code, result, command)
        return result

    def for_scripts(self, first_real: Sequence[str] = ()) -> dict[str, str]:
        """Variables under which a script of bash gets its commands from the server, too.

        Args:
            first_real: names whose first call is a process from nothing, for `llrnn` that of every sub-command.
        """
        place = Path(tempfile.mkdtemp(dir=self.folder.name))
        address = str(place / "socket")
        assert self._ask({"listen": address}) == 0
        return {"BASH_ENV": str(write_clients(place / "bin", address, first_real))}

    def _ask(self, request: Mapping[str, Any]) -> int:
        """What the server answers."""
        assert self.server.stdin is not None and self.server.stdout is not None
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        answer = self.server.stdout.readline()
        assert answer, "the server of fairseq's commands went away"
        return int(answer)

    def close(self) -> None:
        """End the server."""
        assert self.server.stdin is not None
        self.server.stdin.close()
        self.server.wait(timeout=30)
        self.folder.cleanup()


def rendezvous(processes: int) -> dict[str, str]:
    """What torchrun tells all processes: how many they are, and where they meet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


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
