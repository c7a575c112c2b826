"""scripts/lexical_support.py: shares and bits that are counted by hand, and what it refuses."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from example_modules import SCRIPTS, load, run_on_texts

from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe

WORDS = (*SPECIALS, "chat", "chien", "voit")
SOURCE = (*SPECIALS, "cat", "dog")


@pytest.fixture
def script() -> ModuleType:
    (module,) = load(SCRIPTS, "lexical_support")
    return module


@pytest.fixture
def prior(tmp_path: Path) -> Path:
    counts = np.array([0, 0, 10, 0, 7, 2, 1])
    made = build_prior(WORDS, Recipe(counts=counts, top_words=2))
    table = LexicalTable.from_pairs(np.array([4, 5]), np.array([4, 5]), np.array([0.8, 0.6]), len(SOURCE), 3)
    made.with_part(LexicalPart(table, 0.5, False, "ibm1"), SOURCE).save(tmp_path / "prior")
    return tmp_path / "prior"


def run(script: ModuleType, prior: Path, monkeypatch: pytest.MonkeyPatch, **texts: str) -> int:
    return run_on_texts(script, prior, texts, monkeypatch)


def test_it_counts(
    script: ModuleType, prior: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"source": "cat dog zebra\n", "reference": "chat voit inconnu chien\n"}
    assert run(script, prior, monkeypatch, **texts, train="chat " * 7 + "chien chien voit\n") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    loaded = Prior.load(prior)
    root = np.exp(loaded.log_weights) / np.exp(loaded.log_weights).sum()
    t = {x: dict(loaded.find(LexicalPart).table.row(s)).get(x, 0.0) for s, x in ((4, 4), (5, 5))}
    expected = {
        "1": -np.log2(0.5 * root[6]),
        "2–5": -np.log2(0.5 * root[5] + 0.5 * t[5] / 3),
        "6–20": -np.log2(0.5 * root[4] + 0.5 * t[4] / 3),
    }
    assert [row[:3] for row in rows] == [["1", "1", "100.0%"], ["2–5", "1", "0.0%"], ["6–20", "1", "0.0%"]]
    assert {row[0]: float(row[3]) for row in rows} == pytest.approx(expected, abs=0.006)
