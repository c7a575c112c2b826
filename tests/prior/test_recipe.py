"""Recipes: read from files, written into priors, and built again from there (prior/recipe_file.py)."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import get_args, get_origin

import numpy as np
import pytest

from fairseq_llrnn.cli.main import Parser, load, main
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.spelling_features import DEFAULT_SUFFIX_FLOOR
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import EvidenceOptions, OpenOptions, Prior, Recipe
from fairseq_llrnn.prior.background_terms import options_of
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.expression import Atom
from fairseq_llrnn.prior.expression_parser import parse
from fairseq_llrnn.prior.named_backgrounds import named_backgrounds
from fairseq_llrnn.prior.recipe_file import read_recipe, recipe_text
from fairseq_llrnn.settings import Doc, Settings, checked, keys, members_of, with_paths

RECIPE = """dictionary = "data/dict.txt"
text = "data/train.txt"
suffixes = 2
background = "0.7 ngram(2, folds=0, text=data/more.txt) plus 0.3 automaton(data/grammar.txt, on_zero=skip)"

[words]
lexicon = ["data/lexicon.tsv"]
guess = "off"

[evidence]
kinds = ["numbers"]
unsupported = { numbers = 0.5 }
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with prior.toml, and its files in data/."""
    data = tmp_path / "corpus" / "data"
    data.mkdir(parents=True)
    (data / "dict.txt").write_text("le 4\nchat 2\nchats 2\n12 1\n", encoding="utf-8")
    (data / "dict.en.txt").write_text("the 4\ncat 2\n", encoding="utf-8")
    (data / "train.txt").write_text("le chat\nle chats 12\n", encoding="utf-8")
    (data / "more.txt").write_text("le chat\nle chat\n", encoding="utf-8")
    (data / "grammar.txt").write_text("0 1 le\n1 2 chat\n2\n", encoding="utf-8")
    (data / "lexicon.tsv").write_text("chat\tchat\tNOUN\t_\nchats\tchat\tNOUN\t_\n", encoding="utf-8")
    (tmp_path / "corpus" / "prior.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path / "corpus"


def files(folder: Path, but: str = "recipe.toml") -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != but}


def test_paths_lead_on_from_the_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.parent)
    recipe = read_recipe("corpus/prior.toml")
    assert (recipe.text, recipe.dictionary) == ("corpus/data/train.txt", "corpus/data/dict.txt")
    assert recipe.words.lexicon == "corpus/data/lexicon.tsv"
    assert recipe.background == (
        "0.7 ngram(2, folds=0, text=corpus/data/more.txt) plus 0.3 automaton(corpus/data/grammar.txt, on_zero=skip)"
    )


def test_the_kept_recipe_builds_the_same_prior(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored recipe works from any folder, and so does that of the second prior."""
    monkeypatch.chdir(place.parent)
    assert main(["prior", "--recipe", "corpus/prior.toml", "--shapes", "--out", "corpus/deep/prior"]) == 0
    monkeypatch.chdir(place / "data")
    kept = str(place / "deep" / "prior" / "recipe.toml")
    assert main(["prior", "--recipe", kept, "--out", str(place / "other")]) == 0
    assert files(place / "deep" / "prior") == files(place / "other")
    values = tomllib.loads(Path(kept).read_text(encoding="utf-8"))
    assert values["shapes"] is True and values["dictionary"] == "../../data/dict.txt"
    assert "text=../../data/more.txt" in values["background"] and values["words"]["lexicon"] == "../../data/lexicon.tsv"
    os.replace(place, place.parent / "moved")
    again = place.parent / "moved" / "again"
    assert main(["prior", "--recipe", str(place.parent / "moved/deep/prior/recipe.toml"), "--out", str(again)]) == 0
    assert files(again) == files(place.parent / "moved" / "other")


def test_a_prior_that_was_read_keeps_its_recipe(place: Path) -> None:
    main(["prior", "--recipe", str(place / "prior.toml"), "--out", str(place / "prior")])
    prior = Prior.load(place / "prior")
    assert prior.recipe_text() == (place / "prior" / "recipe.toml").read_text(encoding="utf-8")
    prior.save(place / "deep" / "copy")
    copied = tomllib.loads((place / "deep" / "copy" / "recipe.toml").read_text(encoding="utf-8"))
    assert copied["text"] == "../../data/train.txt"
    (place / "prior" / "recipe.toml").write_text("of = 'another version'\n", encoding="utf-8")
    Prior.load(place / "prior").save(place / "copy")
    assert not (place / "copy" / "recipe.toml").exists()


def test_what_python_gave_is_named(tmp_path: Path) -> None:
    symbols = ["<s>", "<pad>", "</s>", "<unk>", "le", "la"]
    recipe = Recipe(counts=np.arange(6), words=LexiconOptions(lexicon={"le": ["POS:DET"]}), top_words=1)
    build_prior(symbols, recipe).save(tmp_path / "prior")
    text = (tmp_path / "prior" / "recipe.toml").read_text(encoding="utf-8")
    assert "# Given in Python, and to be given again: counts, dictionary.\n" in text
    assert tomllib.loads(text) == {"top_words": 1, "words": {"lexicon": {"le": ["POS:DET"]}}}


def test_options_override(place: Path) -> None:
    given = ["prior", "--recipe", str(place / "prior.toml"), "--background", "uniform", "--set", "evidence.weight=2"]
    assert main([*given, "words.guess=on", "--out", str(place / "prior")]) == 0
    values = tomllib.loads((place / "prior" / "recipe.toml").read_text(encoding="utf-8"))
    assert values["background"] == "uniform" and values["suffixes"] == 2
    assert values["evidence"] == {"kinds": ["numbers"], "unsupported": {"numbers": 0.5}, "weight": 2.0}
    assert values["words"]["guess"] == "on"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sufixes = 5", "FILE: there is no key sufixes; did you mean suffixes?"),
        ("top-words = 5", "FILE: there is no key top-words; did you mean top_words?"),
        ("[words]\ncase = true", "FILE: there is no key words.case; did you mean words.keep_case?"),
        ("[words]\nkeep_cas = true", "FILE: there is no key words.keep_cas; did you mean words.keep_case?"),
        ("conllu = 'x'", "FILE: there is no key conllu; did you mean words.conllu?"),
        ("[evidnce]\nweight = 1", "FILE: there is no key evidnce; did you mean evidence?"),
        ("suffixes = 0", "FILE: suffixes: expected a number of at least 1, found 0; correct it"),
        ("[evidence]\nweight = nan", "FILE: evidence.weight: expected a finite number, found nan; correct it"),
        ("[evidence]\nkinds = ['numbrs']", "FILE: evidence.kinds: expected terms, mapped, patterns, numbers, "),
        ("[translations]\ntop = 3", "FILE: translations.data: expected folder of fairseq-preprocess with a bitext, fo"),
        ("suffixes = ", "FILE: expected a recipe in TOML, found something else (Invalid value (at line 1, column 12)"),
        ("background = 'ngram(2, fold=3)'", "--background ngram(2, fold=3): there is no key fold; did you mean folds?"),
        ("over = 'cache:4'", "over cache:4: expected a static background"),
        ("words = 3", "FILE: words: expected a section"),
        ("counts = 3", "FILE: counts: expected an instance of ndarray, found 3; correct it"),
    ],
)
def test_mistakes(place: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    path = place / "bad.toml"
    path.write_text(f"{text}\n", encoding="utf-8")
    given = ["--dict", str(place / "data/dict.txt"), "--recipe", str(path)]
    assert main(["prior", *given, "--out", str(place / "p")]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith(f"llrnn: error: {said.replace('FILE', str(path))}") and "\n" not in error
    assert not (place / "p").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--recipe", "nowhere.toml"], "--recipe nowhere.toml: cannot be read: No such file or directory"),
        (["--set", "suffixes"], "--set suffixes: expected KEY=VALUE, found no =; e.g. --set words.keep_case=true"),
        (["--set", "sufixes=2"], "--set sufixes=2: there is no key sufixes; did you mean suffixes?"),
        (["--set", "suffixes=0"], "--set suffixes: expected a number of at least 1, found 0; correct it"),
        ([], "--dict: expected the dict.txt of fairseq-preprocess, found nothing; add --dict FILE"),
    ],
)
def test_mistakes_of_options(capsys: pytest.CaptureFixture[str], tmp_path: Path, given: list[str], said: str) -> None:
    assert main(["prior", *given, "--out", str(tmp_path / "p")]) == 2
    assert capsys.readouterr().err.startswith(f"llrnn: error: {said}")


def settings_kinds(kind: type[Settings] = Settings) -> Iterator[type[Settings]]:
    """Return all dataclasses of settings, also those of backgrounds."""
    named_backgrounds()
    for one in kind.__subclasses__():
        if is_dataclass(one):
            yield one
        yield from settings_kinds(one)


def test_true_and_false_are_no_numbers() -> None:
    """Exceptions: the value of an option without argument, its absence, and tables of numbers."""
    tried = set()
    for kind in settings_kinds():
        for key in (one for one in keys(kind) if one.owner is kind):
            members, _ = members_of(key.type)
            inside = [one for part in members if get_origin(part) is Mapping for one in get_args(part)[1:]]
            types = {*members, *(part for one in inside for part in members_of(one)[0])}
            if bool in types or not {int, float} & types:
                continue
            tried.add(key.name)
            needed = {one.field: "x" for one in keys(kind) if one.owner is kind and one.default is MISSING}
            for flag in (True, False):
                said = {**needed, key.field: {"numbers": flag} if inside else flag}
                if key.option is not None and key.option.alone is not None:
                    alone = getattr(checked(kind, said, str), key.field)
                    assert alone == (key.option.alone if flag else None) and not isinstance(alone, bool)
                    continue
                with pytest.raises(OptionError, match=rf"{key.field}.*: expected .*, found {str(flag).lower()}; \w"):
                    checked(kind, said, str)
                if not hasattr(kind, "__post_init__"):
                    with pytest.raises(OptionError, match=f"found {str(flag).lower()}; "):
                        checked(kind, kind(**said), str)
    assert tried >= {"suffixes", "top_words", "identity_floor", "weight", "unsupported", "floor", "form_power"}
    with pytest.raises(OptionError, match=r"evidence.weight: expected a number, found true; correct it"):
        checked(Recipe, Recipe(evidence=EvidenceOptions(weight=True)), str)
    assert checked(Recipe, Recipe(suffixes=True), str).suffixes == DEFAULT_SUFFIX_FLOOR


@pytest.mark.parametrize(("said", "floor"), [("true", DEFAULT_SUFFIX_FLOOR), ("false", None), ("3", 3)])
def test_suffixes_by_a_word(place: Path, said: str, floor: int | None) -> None:
    file = place / "prior.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("suffixes = 2", f"suffixes = {said}"), encoding="utf-8")
    assert read_recipe(str(file)).suffixes == floor
    given = ["prior", "--recipe", str(file), "--out", str(place / "prior")]
    for line in (given, [*given, "--suffixes", "2", "--set", f"suffixes={said}"]):
        assert main(line) == 0
        values = tomllib.loads((place / "prior" / "recipe.toml").read_text(encoding="utf-8"))
        assert values.get("suffixes") == floor


def test_a_number_that_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    for said, message in (
        ("top_words=true", "--set top_words: expected a whole number or all or auto, found true; correct it"),
        ("identity_floor=false", "--set identity_floor: expected a whole number, found false; correct it"),
        ("evidence.unsupported.names=true", "--set evidence.unsupported: expected a number, found true; correct it"),
    ):
        assert main(["prior", "--dict", "d", "--out", "p", "--set", said]) == 2
        assert message in capsys.readouterr().err
    for said in ("weight=true", "weight"):
        background = parse(f"cache(9, {said})")
        assert isinstance(background, Atom)
        with pytest.raises(OptionError, match=r"weight: expected a number, found '?true'?; correct it"):
            options_of(background)


def test_no_place_for_the_prior(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prior", "--dict", "d"]) == 2
    assert "--out is missing: add --out DIR, the folder to write" in capsys.readouterr().err


# ---- nothing is left out --------------------------------------------------------------------------------------------


def test_there_are_few_options() -> None:
    options = [action for action in Parser(load("prior"))._actions if action.dest != "help"]
    assert len(options) <= 20


def test_every_key_says_what_it_is() -> None:
    for key in keys(Recipe):
        assert key.doc, key.name
        assert any(isinstance(note, Doc) for note in key.about), key.name


def test_every_default_is_one() -> None:
    """The checks accept defaults, and leave them unchanged."""
    whole = Recipe(evidence=EvidenceOptions(), open_vocabulary=OpenOptions())
    found = checked(Recipe, whole, lambda name: name)
    assert found == whole
    for owner in (Recipe, LexiconOptions, EvidenceOptions, OpenOptions):
        assert is_dataclass(owner) and len(fields(owner)) == len(
            [key for key in keys(owner) if "." not in key.name] + [name for name in SECTIONS if owner is Recipe]
        )


SECTIONS = ("words", "translations", "evidence", "open_vocabulary")


def test_words_and_modes_are_no_paths() -> None:
    seen: list[str] = []

    def collect(path: str) -> str:
        seen.append(path)
        return f"moved/{path}"

    words = LexiconOptions(
        conllu=["a.conllu"], lexicon="name:b.tsv", apertium="fra-cat", morphemes="morfessor", language="fr"
    )
    moved = with_paths(Recipe(words=words, source_dictionary=("<s>", "a.b")), collect)
    assert seen == ["a.conllu", "b.tsv"] and moved.source_dictionary == ("<s>", "a.b")
    assert moved.words.lexicon == "name:moved/b.tsv" and moved.words.apertium == "fra-cat"


def test_errors_in_python() -> None:
    with pytest.raises(OptionError, match="words.guess: expected auto, on or off, found 'always'; correct it"):
        build_prior(["<s>", "<pad>", "</s>", "<unk>", "le"], Recipe(words=LexiconOptions(guess="always")))  # type: ignore


def test_the_text_of_a_recipe_is_in_order(tmp_path: Path) -> None:
    recipe = Recipe(background="ngram:3", suffixes=5, text="x")
    assert recipe_text(recipe, tmp_path).splitlines()[-3:] == [
        f'text = "{os.path.relpath("x", os.path.realpath(tmp_path))}"', "suffixes = 5", 'background = "ngram:3"'
    ]  # fmt: skip


def test_a_recipe_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="expected a recipe in TOML"):
        read_recipe(tmp_path / "r.toml")


