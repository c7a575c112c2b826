"""examples/extending: its package, as a background and as a reader of words."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from guide_pages import ROOT

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import Prior, Recipe, build_prior, named_backgrounds
from fairseq_llrnn.testing import check_background

SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>", "le", "la", "chat", "mer"]
TEXT = "le chat\nla mer\nle chat\n"


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """Remove the background of the package after these tests: others list all that there are."""
    yield
    named_backgrounds._REGISTERED.pop("until_said", None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "extending" / "our-package"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.tsv").write_text("le\t3\nla\t2\nzut\t1\n", encoding="utf-8")
    (tmp_path / "words.tags").write_text("le|DET|Masc\nla|DET|Fem\n", encoding="utf-8")
    (tmp_path / "train.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


def test_background_and_reader_of_another_package(folder: Path) -> None:
    words = LexiconOptions(lexicon="tags:words.tags")
    recipe = Recipe(words=words, text="train.txt", background="0.5 until_said(words.tsv, factor=2) plus 0.5 ngram(2)")
    build_prior(SYMBOLS, recipe).save(folder / "prior")
    prior = Prior.load(folder / "prior")
    assert {"Tag:DET", "Tag:Masc", "Tag:Fem"} <= set(prior.output.features.names)
    check_background(prior.background())
    state = Prior.load(folder / "prior").background().bind().start(1)
    assert state is not None


@pytest.mark.parametrize("line", ["le\tmany", "le\t0", "le 3", "la\t1\nla\t1"])
def test_a_damaged_list_is_one_error_with_its_line(folder: Path, line: str) -> None:
    (folder / "words.tsv").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"words\.tsv.*line.*expected a new word and its weight above 0"):
        build_prior(SYMBOLS, Recipe(text="train.txt", background="until_said:words.tsv"))
