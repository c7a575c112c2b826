"""A small language of alternating words, and `llrnn` in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_llrnn.cli import main as llrnn_main
from llrnn_research.markov_field.training import FieldOptions, train

SENTENCES = ["le chat voit la mer", "la mer voit le chat", "un chat", "une mer verte", "le chat vert voit une mer"]


@pytest.fixture
def llrnn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Run `llrnn arguments…`: exit status, stdout, stderr."""

    def run(*arguments: object, stdin: str = "") -> tuple[int, str, str]:
        import io
        import sys

        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        try:
            code = llrnn_main.main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        return (code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def field_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("field-text") / "train.txt"
    path.write_text("\n".join(SENTENCES * 4 + ["", "chat inconnu"]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def field_folder(field_text: Path) -> Path:
    """A trained field of low rank, of order 2, with seven words."""
    out = field_text.parent / "field"
    train(FieldOptions([str(field_text)], order=2, width=3, words=7, iterations=30, penalty=0.001), str(out))
    return out
