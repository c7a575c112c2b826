"""The origins of a prior: two different files never have one description."""

import os
import threading
from pathlib import Path

import pytest

from fairseq_llrnn import registry
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.expression import Atom
from fairseq_llrnn.prior.origins import SYMBOLS, origins_of
from fairseq_llrnn.prior.recipe import Recipe, TranslationOptions
from fairseq_llrnn.settings import checked, keys

WORDS = [*SPECIALS, "a", "b"]


def read_days(path: str, **spelling: object) -> Lexicon:
    return Lexicon({"a": ["Day:Mon"]})


@pytest.fixture(autouse=True)
def readers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "names", lambda group: {"days": f"{__name__}:read_days"})
    monkeypatch.setattr(registry, "load", lambda place: read_days)


def sources(recipe: Recipe) -> list[str]:
    return [*build_prior(WORDS, recipe).settings["sources"]]


def test_a_file_of_a_reader_of_another_package_is_named_with_its_content() -> None:
    found = []
    for content in ("a 1\n", "a 2\n"):
        Path("days.txt").write_text(content)
        prior = build_prior(WORDS, Recipe(top_words="all", words=LexiconOptions(lexicon="days:days.txt")))
        found.append((prior.settings["sources"], prior.signature))
    assert all(source.startswith("--lexicon days:days.txt ") for described, _ in found for source in described)
    assert found[0] != found[1] and found[0][1] != found[1][1]


def pipe(name: str, content: str) -> None:
    os.mkfifo(name)
    threading.Thread(target=Path(name).write_text, args=(content,), daemon=True).start()


def test_pipes_are_described_by_their_content() -> None:
    found = []
    for number in "12":
        name = f"pipe{number}"
        pipe(name, f"a\t{number}\nb\t1\n")
        found.append(sources(Recipe(top_words="all", background=name)))
    assert [source.split()[:3] for (source,) in found] == [["--background", "(a", "pipe)"]] * 2
    assert found[0] != found[1]


def test_the_background_below_is_an_origin() -> None:
    Path("w.tsv").write_text("a\t1\n")
    Path("t").write_text("a b\n")
    described = sources(Recipe(text="t", background="ngram(2, folds=0)", over="w.tsv"))
    assert [source.split()[:2] for source in described] == [["--count-text", "t"], ["over", "w.tsv"]]


def with_file(key: str, path: str) -> Recipe:
    """Return a recipe with this path as the value of a key."""
    section, _, name = key.rpartition(".")
    needed = {"data": "."} if section == "translations" else {}
    return checked(Recipe, {section: {**needed, name: path}} if section else {name: path}, str)


@pytest.mark.parametrize("key", [key.name for key in keys(Recipe) if key.is_path and key.name not in SYMBOLS])
def test_each_key_with_a_path_is_an_origin(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a key that is added later."""
    monkeypatch.setattr(TranslationOptions, "parallel", type("", (), {"files": ()}))
    found = []
    for content in "12":
        Path("x.dic").write_text(content)
        Path("x.aff").write_text("")
        found.append(origins_of(with_file(key, "x.dic"), Atom("unigram"), None))
    assert found[0] != found[1] and " x.dic " in found[0][0]
    if key == "words.hunspell":
        Path("x.aff").write_text("SET UTF-8")
        assert origins_of(with_file(key, "x.dic"), Atom("unigram"), None) != found[1]
