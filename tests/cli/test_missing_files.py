"""What a user names and nobody can read is refused by the option or key that named it, before any text is read."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairseq_llrnn.cli.main import FAIRSEQ, Parser, all_commands, load, main
from fairseq_llrnn.errors import DataError, LLRNNError, with_option
from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import Recipe, building
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.named_backgrounds import named_backgrounds
from fairseq_llrnn.settings import check_files, checked, keys

PATHS = ("FILE", "DIR", "NAME=FILE", "FILES", "FP")  # metavars of options that name what is read, or where results go
SYMBOLS = [*SPECIALS, "le", "la"]


def path_options() -> Iterator[tuple[str, argparse.Action]]:
    for name in sorted(all_commands().keys() - set(FAIRSEQ)):
        for action in Parser(load(name))._actions:
            if action.option_strings and (action.metavar in PATHS or isinstance(action.metavar, tuple)):
                yield name, action


@pytest.mark.parametrize(("command", "action"), path_options(), ids=lambda one: getattr(one, "dest", one))
def test_every_option_is_named(command: str, action: argparse.Action) -> None:
    parser, option = Parser(load(command)), action.option_strings[-1]
    path = "best=a/b.txt" if action.metavar == "NAME=FILE" else "a/b.txt"
    args = argparse.Namespace(**{action.dest: path if action.nargs is None else ["a/other.txt", path]}, longer="a")
    for place in ("a/b.txt", "a/b.txt/dict.txt", "a/b.txt.en"):
        message = f"{place}: cannot be read: x"
        assert with_option(DataError(message, place), parser.named(args)) == option + f" {path}{message[7:]}"
        assert with_option(DataError(message), parser.named(args)) == message  # of its contents


def test_what_no_option_named_is_not_blamed_on_one() -> None:
    """An argument without an option, and options whose values only begin alike."""
    parser = Parser(load("score"))
    for text, others in (("fr.txt", {"data": "fr"}), ("1.txt", {"max_tokens": 1}), ("fr", {"data": "fr"})):
        message = f"{text}: cannot be read: No such file or directory; check the path and its rights"
        args = argparse.Namespace(text=text, **others)
        assert with_option(DataError(message, text), parser.named(args)) == message


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("report --source there --reference there --system x=nowhere --out new", "--system x=nowhere: cannot be read"),
        ("text --conllu nowhere there --out new", "--conllu nowhere: cannot be read"),
        ("text --conllu - --out new", "--conllu -: cannot be read: No such file or directory; for stdin write /"),
        ("dictionary --text there --lexicon nowhere --out new", "--lexicon nowhere: cannot be read"),
        ("lexicon --values nowhere --out new", "--values nowhere: cannot be read"),
        ("lexicon --conllu folder --out new", "--conllu folder: cannot be read: Is a directory"),
        ("score --path nowhere there", "--path nowhere: expected a checkpoint, found no such file or folder"),
        ("score --path folder there", "--path folder: expected a checkpoint, or a folder of `llrnn export`, found"),
        ("score --path there recipe", "--path there: expected a checkpoint, found a text"),
        ("explain --path nowhere words", "--path nowhere: expected a checkpoint, found no such file"),
        ("rescore --nbest nowhere --path there --out new", "--nbest nowhere: cannot be read"),
        ("score --path nowhere --data fr fr.txt", "fr.txt: cannot be read"),
        ("lexicon --hunspell . --out new", "--hunspell .: expected a dictionary of hunspell"),
        ("lexicon --hunspell= --out new", "--hunspell : expected a dictionary of hunspell"),
        ("prior --recipe nowhere --out new", "--recipe nowhere: cannot be read"),
        ("prior --dict nowhere --out new", "--dict nowhere: cannot be read"),
        ("prior --dict there --conllu nowhere --out new", "--conllu nowhere: cannot be read"),
        ("prior --dict there --set words.values=nowhere --out new", "--set words.values nowhere: cannot be read"),
        ("prior --dict there --recipe recipe --out new", "--recipe recipe: words.unimorph nowhere: cannot be read"),
    ],
)
def test_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").write_text("le 3\n", encoding="utf-8")
    Path("recipe").write_text("words.unimorph = 'nowhere'\n", encoding="utf-8")
    Path("folder").mkdir()
    assert main(arguments.split()) == 2
    assert capsys.readouterr().err.startswith(f"llrnn: error: {said}")
    assert not os.path.exists("new")


# ---- recipes --------------------------------------------------------------------------------------------------------


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A text that nobody may read."""

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("a text was read")

    monkeypatch.chdir(tmp_path)
    for owner, name in ((building, "count_words"), (building, "gather"), (WordList, "count_text")):
        monkeypatch.setattr(owner, name, refuse)
    Path("folder").mkdir()
    Path("train.txt").write_text("le la\n", encoding="utf-8")
    return Path("train.txt")


NEEDED = {"translations": {"data": "folder"}}  # what a section cannot be without


@pytest.mark.parametrize("name", [key.name for key in keys(Recipe) if key.is_path and key.name != "dictionary"])
def test_every_key_of_a_recipe(text: Path, name: str) -> None:
    section, _, key = name.rpartition(".")
    values = {section: {**NEEDED.get(section, {}), key: "nowhere"}} if section else {name: "nowhere"}
    with pytest.raises(LLRNNError, match=f"^{name} nowhere: (cannot be read|expected)|lt-proc is not installed"):
        build_prior(SYMBOLS, checked(Recipe, {"text": text, **values}, str))


def backgrounds() -> Iterator[str]:
    """One for each background that takes a file, and for each option that does."""
    yield from ("nowhere", "unigram times nowhere")
    for name, named in named_backgrounds().items():
        if not named.part.__module__.startswith("fairseq_llrnn."):  # of another test
            continue
        if ":" in named.example and name != "cache":
            yield f"{name}:nowhere"
        first = "3" if name == "ngram" else "train.txt"
        yield from (f"{name}({first}, {key.name}=nowhere)" for key in keys(named.options) if key.is_path)


@pytest.mark.parametrize("background", backgrounds())
def test_every_background(text: Path, background: str) -> None:
    opener: Any = pytest.fail
    with pytest.raises(LLRNNError, match=r"^--background .*nowhere.*: (cannot be read|expected .* found no)"):
        building.build(SYMBOLS, Recipe(text=text, background=background), opener)


def test_a_bitext_is_read_after_all_that_can_be_refused(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is not there, what does not go together, a weight of nothing beside a background."""

    def read_bitext(*arguments: object) -> Any:
        raise AssertionError("a bitext was read")

    monkeypatch.setattr(building, "read_bitext", read_bitext)
    start = {"text": text, "translations": {"data": "folder"}}
    nothing = {"translations": {"data": "folder", "weight": 0}}
    learned = {"translations": {"data": "folder", "learned": True}}
    weighed = "translations.{} has no effect, since --background .* weighs the translations"
    for values, message in (
        ({"words": {"lexicon": "nowhere"}}, "words.lexicon nowhere: cannot be read"),
        ({"background": "ngram(2, text=nowhere)"}, "--background .*: text nowhere: cannot be read"),
        ({**nothing, "background": "ngram:2"}, "translations.weight 0: expected a weight above 0, since"),
        ({**nothing, "background": "unigram times cache:5"}, "translations.weight 0: expected a weight above 0"),
        ({"background": "uniform", "evidence": {"kinds": ["mapped"]}}, "--evidence mapped needs evidence.mapping"),
        ({**nothing, "background": "ngram:2 plus translations"}, weighed.format("weight", 0)),
        ({**learned, "background": "0.5 ngram:2 plus 0.5 translations"}, weighed.format("learned", 1)),
        ({**learned, "background": "uniform plus (cache:3 times translations)"}, weighed.format("learned", 1)),
        ({**nothing, "background": "ngram:2 plus translations with weights learned"}, weighed.format("weight", 0)),
    ):
        recipe = checked(Recipe, {**start, **values}, str)
        with pytest.raises(LLRNNError, match=message):
            building.build(SYMBOLS, recipe)
    for background, values in (("unigram", nothing), ("ngram:2", learned), ("ngram:2 times translations", learned)):
        recipe = checked(Recipe, {**start, **values, "background": background}, str)  # where it says something
        with pytest.raises(AssertionError, match="a bitext was read"):
            building.build(SYMBOLS, recipe)


def test_what_may_be_no_path(text: Path) -> None:
    """The contents of a file, what only Python gives, and names in the place of a path."""
    words = LexiconOptions(lexicon={"le": ["POS:DET"]}, morphemes={"la": ["la"]})
    check_files(Recipe(text=text, words=words, source_dictionary=SYMBOLS), str)
    check_files(LexiconOptions(morphemes="morfessor", apertium="fra-cat"), str)


def test_rights(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *arguments: False)  # who is root may read all
    with pytest.raises(LLRNNError, match="text train.txt: cannot be read: Permission denied; check the path and its"):
        build_prior(SYMBOLS, Recipe(text=text))
