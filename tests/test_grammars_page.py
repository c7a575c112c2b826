"""docs/guides/grammars.md: each of its files is read, and gives strings the weights of the table below it."""

import re
from pathlib import Path

import numpy as np
import pytest
from automata import string_weights

from fairseq_llrnn.automata.automaton_files import read_automaton
from fairseq_llrnn.features.dictionary import SPECIALS, WordList

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "guides" / "grammars.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(
    r"<!-- reads (\S+) -->\n```\w*\n((?:.*\n)*?)```\n\n"
    r"\| string \| weight \|\n\|---\|---\|\n((?:\|.*\|\n)+)"
)
EXAMPLES = {name: (text, table) for name, text, table in EXAMPLE.findall(PAGE)}
ROW = re.compile(r"\| `(.*)` \| ([\d.]+) \|")
NAMES = (*"le la chat mer roi verte voit dort de ?".split(), *"chatmer_")
WORDS = WordList((*SPECIALS, *NAMES), np.array([0] * len(SPECIALS) + [5] * len(NAMES)))


def test_every_kind_has_an_example() -> None:
    assert {Path(name).suffix for name in EXAMPLES} == {".grammar", ".regex", ".words", ".txt"}
    assert len(EXAMPLES) == len(re.findall("<!-- reads ", PAGE)) == 5


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_page_says_what_is_read(tmp_path: Path, name: str) -> None:
    text, table = EXAMPLES[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    automaton = read_automaton(tmp_path / name, WORDS, log_weights=np.zeros(len(WORDS))).automaton
    expected = {string: float(weight) for string, weight in ROW.findall(table)}
    assert len(expected) == len(table.splitlines()) >= 2
    found = string_weights(automaton, NAMES, len(SPECIALS), 0, list(expected))
    assert {string: found.get(string, 0.0) for string in expected} == pytest.approx(expected, abs=5e-4, rel=1e-6)
