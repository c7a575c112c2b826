"""Fixtures for conftest.py: `llrnn` in this process, and a model for it."""

from pathlib import Path

import pytest
from evidence_world import EvidenceWorld
from shell import Shell
from small_corpus import Done, Llrnn
from tiny_world import World

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
def checkpoint(shell: Shell, world: World) -> Path:
    """A model that fairseq-train trained in the tiny world."""
    place = world.place / "cli-model"
    shell.run("fairseq-train", *world.train_args(save_dir=place), "--max-epoch", 3)
    return place / "checkpoint_best.pt"


@pytest.fixture(scope="session")
def evidence_model(shell: Shell, evidence: EvidenceWorld) -> Path:
    """A translation model, with the prior `lexical` of the world of evidence."""
    place = evidence.place / "cli-model"
    arguments = evidence.train_args("llrnn_transformer", "lexical", place)
    shell.run("fairseq-train", *arguments, "--max-epoch", 8, "--save-interval", 8, "--disable-validation")
    return place / "checkpoint_last.pt"
