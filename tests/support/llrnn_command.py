"""Fixtures for conftest.py: `llrnn` in this process, and a model for it."""

import io
import logging
from pathlib import Path

import pytest
from small_corpus import Done, Llrnn

from fairseq_llrnn.cli import main as llrnn_main


@pytest.fixture
def llrnn(capsys: pytest.CaptureFixture[str]) -> Llrnn:
    """Run `llrnn arguments…`."""

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        try:
            code = llrnn_main.main([str(a) for a in arguments])
        except SystemExit as stop:  # argparse
            code = stop.code if isinstance(stop.code, int) else 1
        out, err = capsys.readouterr()
        # a progress bar leaves carriage returns; what a person sees is what follows the last one of a line
        return Done(code, out, "\n".join(line.rpartition("\r")[2] for line in err.split("\n")))

    return run


@pytest.fixture
def as_typed(llrnn: Llrnn, monkeypatch: pytest.MonkeyPatch) -> Llrnn:
    """Run `llrnn arguments…` with a text on stdin, and warnings on stderr, as in a process of its own.

    Not for fairseq's commands (train, validate, …), which may end this process.
    """

    def run(*arguments: object, stdin: str = "", code: int | None = 0) -> Done:
        with monkeypatch.context() as patch:
            patch.setattr(logging.root, "handlers", [])  # pytest's: cli/tables.py prints warnings only without one
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            done = llrnn(*arguments)
        assert code in (None, done.code), done.err
        return done

    return run


@pytest.fixture(scope="session")
def checkpoint(trained: Path) -> Path:
    """The model of the tiny world."""
    return trained / "checkpoint_best.pt"


@pytest.fixture
def evidence_model(evidence_models: dict[str, Path]) -> Path:
    """A translation model, with the prior `lexical` of the world of evidence."""
    return evidence_models["lexical"]
