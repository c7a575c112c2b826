"""Values that are no name of a file, in every option of every sub-command: one short line, and no stack trace."""

import argparse
import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import Shell

from fairseq_llrnn.cli import main as llrnn

LONGEST = 1100  # characters of a line: LONGEST_MESSAGE, and what is before it
VALUES = {
    "longer than a name": "x" * 10_000,
    "longer than a path": "a/" * 5_000,
    "blanks": "x y " * 2_500,
    "several lines": "x\n\x1b[31my" * 100,
    "no UTF-8": "a\udcffb",
    "half of a character": "a\ud800b",
    "a character that no path has": "a\0b",
    "empty": "",
    "only a place": "/",
    "a kind": "lexicon:" + "x" * 300,
    "an expression": " plus ".join(["ngram:3"] * 40),
}


def options_of(name: str) -> Iterator[argparse.Action]:
    actions = llrnn.Parser(llrnn.load(name))._actions
    return (action for action in actions if action.nargs != 0 and not isinstance(action, argparse._HelpAction))


def said(argv: list[str]) -> str:
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        try:
            assert llrnn.main(argv) in (0, 1, 2)
        except SystemExit as stop:
            assert stop.code in (0, 2)
    return err.getvalue()


def values_of(action: argparse.Action, value: str) -> list[str]:
    return [value] * (action.nargs if isinstance(action.nargs, int) else 1)


# Of fairseq's commands, which may end the process: options that we read before it does
OURS = {"train": "--prior", "generate": "--path", "eval-lm": "--prior", "interactive": "--path", "validate": "--path"}


@pytest.mark.parametrize(("name", "kind"), [*zip(OURS, VALUES, strict=False)])
def test_commands_of_fairseq(name: str, kind: str, shell: Shell, tmp_path: Path) -> None:
    option = OURS[name]
    for data in ([VALUES[kind]], [tmp_path, f"{option}={VALUES[kind]}"]):
        done = shell.run("llrnn", name, *data, code=2)
        lines = [line for line in done.err.splitlines() if not line.startswith("usage: ")]
        assert "Traceback" not in done.err and max(map(len, lines)) <= LONGEST, done.err


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in llrnn.all_commands()
        if name not in llrnn.FAIRSEQ
        for kind in VALUES
        if name in ("prior", "lexicon", "dictionary") or kind not in ("a kind", "an expression")
    ],
)
def test_every_option(name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone with those that are needed, which are names of files that are not there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    options = list(options_of(name))
    for tried in options:
        argv = name.split()
        for action in options:
            if action is tried or action.required:
                value = VALUES[kind] if action is tried else (action.choices or ["none"])[0]
                argv += [*action.option_strings[:1], *values_of(action, value)]
        for line in said(argv).split("\n"):
            assert len(line) <= LONGEST and "Traceback" not in line, (argv, line)
            assert line.isprintable(), (argv, line)
