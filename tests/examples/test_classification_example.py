"""The example of labels: every model of ours on a few texts, and what is said where a package is absent."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "classification"
NAMES = ("label_data", "bag_tree", "others", "classification")


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """The example's modules, which import their neighbours by plain names."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield {name: importlib.import_module(name) for name in NAMES}
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.fixture
def few(modules: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set of four labels, each with a word of its own."""
    pairs = [([word, "the", other], [f"label-{word}"]) for word in "abcd" for other in "wxyz"] * 4
    readers = {"few": lambda folder: {"train": pairs, "valid": pairs[:16], "test": pairs[:16]}}
    monkeypatch.setattr(modules["label_data"], "READERS", readers)


def run(modules: dict[str, object], monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["classification.py", *map(str, arguments)])
    classification = modules["classification"]
    monkeypatch.setattr(classification, "READERS", modules["label_data"].READERS)  # type: ignore[attr-defined]
    code: int = classification.main()  # type: ignore[attr-defined]
    return code


@pytest.mark.slow
def test_every_model_learns(
    modules: dict[str, object], few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out = tmp_path / "rows.jsonl"
    for model in ("flat", "huffman", "random", "learned", "refit"):
        options = ("--arity", 2, "--size", 8, "--epochs", 12, "--batch", 8, "--rate", 0.5)
        assert run(modules, monkeypatch, "run", "--set", "few", "--model", model, *options, "--out", out) == 0
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["test_p_at_1"] for row in rows] == [100.0] * 5
    assert all(0 < row["test_nats"] < 0.5 for row in rows)
    assert run(modules, monkeypatch, "run", "--set", "few", "--model", "refit", *options, "--out", out) == 0
    assert capsys.readouterr().out.endswith(f"refit: {out} has it\n")
    assert len(out.read_text(encoding="utf-8").splitlines()) == 5
    capsys.readouterr()
    assert run(modules, monkeypatch, "table", out) == 0
    assert capsys.readouterr().out.count("| few |") == 5


def test_a_package_that_is_not_installed(
    modules: dict[str, object], few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, "fasttext", None)
    arguments = ("run", "--set", "few", "--model", "fasttext-hs", "--out", tmp_path / "rows.jsonl")
    assert run(modules, monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and 'pip install ".[classification]"' in said
