"""make_copy_test.py: new strings where the two sides certainly correspond, and gold facts that say so."""

import gzip
import json
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from example_modules import EXAMPLES, load

from fairseq_llrnn.systems.reranking.tallies import read_facts
from fairseq_llrnn.systems.reranking.texts import words

PAIRS = [
    ("two men ride behind a woman .", "deux hommes roulent derrière une femme ."),
    ("a boy sees three dogs", "un garçon voit trois chiens"),
    ("a little girl in a park", "une petite fille dans un parc"),
    # nothing certain
    ("two men and two dogs", "deux hommes et deux chiens"),
    ("both men on two bikes", "les deux hommes à vélo"),
    ("a man and another man", "un homme et un autre homme"),
    ("a man and a guy", "un homme et un type"),
    ("a man &apos;s hat", "le chapeau de l&apos; homme , un homme"),
    ("the hand of a woman", "la main d&apos; une femme"),
    ("the man sees a hat", "un homme voit un chapeau"),
    ("a man-made lake", "un lac artificiel"),
    ("a dog", "des chiens"),
]


@pytest.fixture
def script() -> ModuleType:
    (module,) = load(EXAMPLES / "translation", "make_copy_test")
    return module


class Run:
    """Runs the script on files of its own."""

    def __init__(self, script: ModuleType, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script, self.place, self.monkeypatch = script, place, monkeypatch
        self.out = place / "deep" / "out"
        self.files: dict[str, Path] = {}
        for name, lines in (("en", [e for e, _ in PAIRS]), ("fr", [f for _, f in PAIRS]), ("train", ["two dogs"])):
            self.write(name, lines)

    def write(self, name: str, lines: list[str]) -> Path:
        self.files[name] = self.place / name
        self.files[name].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return self.files[name]

    def __call__(self, *more: object) -> int:
        arguments = ["--source", self.files["en"], "--reference", self.files["fr"], "--train", self.files["train"]]
        self.monkeypatch.setattr(sys, "argv", ["make_copy_test.py", *map(str, (*arguments, "--out", self.out, *more))])
        return self.script.main()

    def made(self, name: str) -> list[str]:
        return (self.out / f"copy.{name}").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def run(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(script, tmp_path, monkeypatch)


def test_pairs_and_facts(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    facts = read_facts(str(run.out / "copy.facts.jsonl"), [words(line) for line in run.made("fr")])
    (number, woman), (three, boy), (park,) = [[" ".join(fact.form) for fact in of] for of in facts]
    assert run.made("en") == [
        f"{number} men ride behind {woman} .", f"{boy} sees {three} dogs", f"a little girl in {park}",
    ]  # fmt: skip
    assert run.made("fr") == [
        f"{number} hommes roulent derrière {woman} .", f"{boy} voit {three} chiens", f"une petite fille dans {park}",
    ]  # fmt: skip
    assert [[fact.kind for fact in of] for of in facts] == [["number", "name"], ["number", "name"], ["name"]]
    assert not any(fact.seen for of in facts for fact in of)
    assert all(re.fullmatch("[1-9][0-9]{1,3}", text) for text in (number, three))
    assert all(re.fullmatch("[bdfgklmnprstvz][a-z]{3,}", text) for text in (woman, boy, park))
    english = [copy["english"] for line in run.made("facts.jsonl") for copy in json.loads(line)["copies"]]
    assert english == [number, woman, three, boy, park]
    assert capsys.readouterr().out.splitlines() == [
        "kind     strings  in place of",
        "number         2  two 1, three 1",
        "name           3  woman 1, boy 1, park 1",
        "3 pairs, 2 of them with both",
    ]


def test_no_string_is_in_a_text_or_twice(run: Run) -> None:
    """All numbers of two and three digits are taken, also inside words, and in gzip files."""
    packed = run.place / "more.gz"
    packed.write_bytes(gzip.compress("".join(f"x{n}y\n" for n in range(10, 1000)).encode()))
    for side, (english, french) in enumerate((("two men", "a dog"), ("deux hommes", "un chien"))):
        run.write(("en", "fr")[side], [english, french] * 300)
    assert run("--train", packed, run.files["train"]) == 0
    strings = [copy["french"] for line in run.made("facts.jsonl") for copy in json.loads(line)["copies"]]
    assert len(strings) == 600 and max(Counter(strings).values()) == 1
    assert all(len(text) == 4 for text in strings if text.isdigit())
