"""A prior depends neither on the number of processes that read its text, nor on packing of the text."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.files import text_blocks
from fairseq_llrnn.prior import OpenOptions, Prior, Recipe
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.automaton_part import AutomatonPart

WORDS = [*(f"mot{i}ées" for i in range(25)), *(f"X{i}" for i in range(25)), *(str(i) for i in range(20))]


def test_any_number_of_processes_builds_the_same_prior(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 2000)
    random = np.random.default_rng(3)
    drawn = np.minimum(random.geometric(0.08, size=(400, 8)) - 1, len(WORDS) - 1)
    text = "".join(" ".join(WORDS[i] for i in line) + "\n" for line in drawn)
    (tmp_path / "train").write_text(text, encoding="utf-8")
    (tmp_path / "train.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "dict.txt").write_text("".join(f"{word} 1\n" for word in WORDS[:60]), encoding="utf-8")

    def build(name: str, workers: int) -> Prior:
        options = Recipe(
            text=tmp_path / name, shapes=True, suffixes=3, top_words=10, background="ngram:2",
            open_vocabulary=OpenOptions(types=3), workers=workers,
        )  # fmt: skip
        return build_prior(tmp_path / "dict.txt", options)

    built = [build("train", 1), build("train", 2), build("train.gz", 2)]
    assert len({prior.fingerprint for prior in built}) == 1
    for prior, name in zip(built, ("one", "two"), strict=False):
        prior.save(tmp_path / name)
    assert {path.read_bytes() for path in tmp_path.glob("*/arrays.npz")} == {(tmp_path / "one/arrays.npz").read_bytes()}
    assert {path.read_bytes() for path in tmp_path.glob("*/prior.json")} == {(tmp_path / "one/prior.json").read_bytes()}


def test_pruned_n_grams_are_those_that_come_more_often(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("a b c\na b d\na c\n" * 2 + "d c\n", encoding="utf-8")
    (tmp_path / "dict.txt").write_text("a 1\nb 1\nc 1\nd 1\n", encoding="utf-8")

    def pairs(*pruned: int) -> set[str]:
        text = tmp_path / "train"
        options = Recipe(text=text, top_words=1, background=f"ngram(2, folds=0, prune={list(pruned)})")
        prior = build_prior(tmp_path / "dict.txt", options)
        part = prior.find(AutomatonPart)
        assert part is not None
        return {prior.symbols[token] for token in part.automaton.tokens[part.automaton.arc_states == 1]}

    assert pairs() == {"a", "d"}  # what comes after <s>
    assert pairs(0, 1) == {"a"}
