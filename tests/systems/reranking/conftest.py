"""Lists that are written and opened, and models that rescore them."""

from pathlib import Path

import pytest
from llrnn_command import evidence_model as evidence_model
from nbest_lists import Write
from shell import Shell
from translation_world import TranslationWorld, stock_args
from two_sentences import Open

from fairseq_llrnn.systems.reranking.nbest import NBestFile, open_nbest


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Write a list and open it."""

    def run(text: str | bytes, format_name: str | None = None) -> NBestFile:
        path = tmp_path / "list"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return open_nbest(path, format_name)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file in this test's folder: its name, its text."""

    def run(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return run


@pytest.fixture(scope="session")
def forward(shell: Shell, translation: TranslationWorld) -> Path:
    """Our translation model."""
    place = translation.place / "rescoring-forward"
    shell.run("fairseq-train", *translation.train_args(save_dir=place), "--max-epoch", 4)
    return place / "checkpoint_last.pt"


@pytest.fixture(scope="session")
def reverse(shell: Shell, translation: TranslationWorld) -> Path:
    """A softmax Transformer of fairseq, the other way round, that takes at most nine words."""
    place = translation.place / "rescoring-reverse"
    limits = ("--max-target-positions", 10, "--max-source-positions", 10)
    shell.run(
        "fairseq-train", *stock_args(translation.data, place), "--source-lang", "tgt", "--target-lang", "src",
        "--lr", 0.003, "--max-epoch", 2, *limits,
    )  # fmt: skip
    return place / "checkpoint_last.pt"
