"""Fixtures for conftest.py: `llrnn` in this process, and a model for it."""

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


@pytest.fixture(scope="session")
def checkpoint(trained: Path) -> Path:
    """The model of the tiny world."""
    return trained / "checkpoint_best.pt"


@pytest.fixture
def evidence_model(evidence_models: dict[str, Path]) -> Path:
    """A translation model, with the prior `lexical` of the world of evidence."""
    return evidence_models["lexical"]
