"""The tiny text, its data folder, a prior and a trained model, once a session."""

from pathlib import Path

import pytest
from discourse_texts import Llrnn, Texts, tiny_text, train_args
from shell import Shell
from tiny_world import read_checkpoint

from fairseq_llrnn.cli import main as llrnn_main
from llrnn_research.discourse import OBJECTIVES


@pytest.fixture
def llrnn(capsys: pytest.CaptureFixture[str]) -> Llrnn:
    """Run `llrnn arguments…`."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = llrnn_main.main([str(a) for a in arguments])
        return (code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    made = Texts(tmp_path_factory.mktemp("discourse"))
    for seed, (split, paragraphs) in enumerate({"train": 60, "valid": 20, "test": 20}.items()):
        made.file(split).write_text(tiny_text(paragraphs, seed), encoding="utf-8")
    arguments = [f"--{split}={made.file(split)}" for split in ("train", "valid", "test")]
    assert llrnn_main.main(["discourse", *arguments, "--language", "en", "--lower", "--out", str(made.data)]) == 0
    return made


@pytest.fixture(scope="session")
def prior(shell: Shell, texts: Texts) -> Path:
    place = texts.place / "prior"
    dictionary = texts.data / "dict.txt"
    shell.run("llrnn", "prior", "--dict", dictionary, "--suffixes", 2, "--shapes", "--top-words", 30, "--out", place)
    return place


@pytest.fixture(scope="session")
def trained(shell: Shell, texts: Texts) -> Path:
    """The folder of a model that learned all three."""
    place = texts.place / "joint"
    done = shell.run("fairseq-train", *train_args(texts, place, "--max-epoch", 6))
    rows = done.json_lines("valid")
    best = max(rows, key=lambda row: row["valid_accuracy"])
    for name in OBJECTIVES:
        assert best[f"valid_{name}_accuracy"] > best[f"valid_{name}_chance"] + 0.2, name
    assert read_checkpoint(place / "checkpoint_best.pt")["extra_state"]["best"] == best["valid_accuracy"]
    return place
