"""An invalid recipe is rejected before a text is read, since reading may take long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairseq_llrnn.errors import LLRNNError, OptionError, PriorError
from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.features.subwords import PieceText
from fairseq_llrnn.files import atomic_write
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import EvidenceOptions, Recipe, building, named_backgrounds, part
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.directory import check_place
from fairseq_llrnn.prior.named_backgrounds import Inputs, register_background
from fairseq_llrnn.prior.part import Part, PriorView, register_part
from fairseq_llrnn.registry import load_all

SYMBOLS = [*SPECIALS, "le", "la"]
PIECES = [*SPECIALS, "le", "la", "ma@@"]


@dataclass(frozen=True)
class WrappingPart(Part):
    """A part that changes the background below."""


def read(source: str, prior: PriorView, inputs: Inputs) -> tuple[Part, Mapping[str, int]]:
    return WrappingPart(), {}


@pytest.fixture(autouse=True)
def wrapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register that part for the tests of this file."""
    load_all("parts")
    monkeypatch.setattr(part, "KINDS", part.KINDS.copy())
    monkeypatch.setattr(named_backgrounds, "_REGISTERED", named_backgrounds._REGISTERED.copy())
    register_part("wrapping")(WrappingPart)
    register_background("wrapping", WrappingPart, example="wrapping")(read)


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a text that no test may read."""

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("a text was read")

    monkeypatch.setattr(building, "count_words", refuse)
    monkeypatch.setattr(building, "gather", refuse)
    monkeypatch.setattr(WordList, "count_text", refuse)
    monkeypatch.setattr(PieceText, "read", refuse)
    path = tmp_path / "train.txt"
    path.write_text("le la\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "recipe, message",
    [
        ({"source_dictionary": SYMBOLS}, "source_dictionary: it needs translations, evidence or a background that"),
        ({"background": "unigrm"}, "--background unigrm: expected unigram, .* found no such file; did you mean unigra"),
        ({"background": "cache:5", "over": "unigrm"}, "over unigrm: expected unigram, .* did you mean unigram"),
        ({"background": "cache:5", "over": "unigram(x=1)"}, r"over unigram\(x=1\): there is no key x; there are: smo"),
        ({"background": "cache:5", "over": "0.5 unigram plus"}, "over 0.5 unigram plus>><<: expected a background"),
        ({"background": "cache:5", "over": "cache:5"}, "over cache:5: expected a static background"),
        ({"background": "ngram:3 times nowhere.tsv"}, "--background nowhere.tsv: expected unigram, .* no such file"),
        ({"background": "ngram:99"}, "--background ngram:99: expected an order from 1 to"),
        ({"background": "ngram(2, text=nowhere.txt)"}, "nowhere.txt: cannot be read: No such file"),
        ({"background": "ngram:2 plus cache:999999"}, "--background cache:999999: .* expected 1 to 100,000"),
        ({"background": "cache(5, learned, decay=1)"}, "--background cache:5: cache decay 1.0: expected a number"),
        ({"background": "ngram:2 times wrapping"}, "wrapping changes the background below it and cannot be combined"),
        ({"words": LexiconOptions(conllu="nowhere.conllu")}, "nowhere.conllu: cannot be read: No such file"),
        ({"words": LexiconOptions(morphemes="no/where")}, "no/where: cannot be read: No such file"),
        ({"words": LexiconOptions(apertium="none-none")}, "words.apertium none-none: exp|lt-proc is not installed"),
        (
            {"pieces": "bpe", "evidence": EvidenceOptions(("names",)), "source_dictionary": PIECES},
            "--evidence names with --pieces bpe needs --lexical-translation, since only the source's",
        ),
    ],
)  # fmt: skip
def test_a_recipe(text: Path, recipe: dict[str, Any], message: str) -> None:
    with pytest.raises(LLRNNError, match=message):
        build_prior(PIECES if "pieces" in recipe else SYMBOLS, Recipe(text=text, **recipe))


def test_files_of_n_grams_and_models(text: Path, tmp_path: Path) -> None:
    there = tmp_path / "file"
    there.touch()
    for background, message in (
        (
            f"unigram times ngram({there}, folds=3)",
            "folds is an option of ngram\\(N\\), not of a file",
        ),
        (f"model:{there}", "only fairseq reads a trained model; build this prior with `llrnn prior`, or pass"),
    ):
        with pytest.raises(OptionError, match=message):
            build_prior(SYMBOLS, Recipe(text=text, background=background))


def test_packages_of_a_language(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = "fairseq_llrnn.lexicon.languages.language_source.LanguageSource.missing"
    monkeypatch.setattr(missing, lambda source, code: ("absent",))
    with pytest.raises(OptionError, match="--language fr: expected an installed package for French, found none"):
        build_prior(SYMBOLS, Recipe(text=text, words=LexiconOptions(language="fr")))


def test_where_a_prior_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_place(tmp_path / "new" / "prior")
    (tmp_path / "file").touch()
    with pytest.raises(PriorError, match="file: expected a free name or an earlier prior, found something else"):
        check_place(tmp_path / "file")
    with pytest.raises(PriorError, match="prior cannot be written .Not a directory.; check the rights"):
        check_place(tmp_path / "file" / "prior")
    monkeypatch.setattr(atomic_write.os, "access", lambda *arguments: False)  # who is root may write anywhere
    with pytest.raises(PriorError, match="prior cannot be written .Permission denied.; check the rights"):
        check_place(tmp_path / "prior")


def test_a_file_that_exists_is_read(text: Path) -> None:
    """Control for the tests above."""
    with pytest.raises(AssertionError, match="a text was read"):
        build_prior(SYMBOLS, Recipe(text=text))
