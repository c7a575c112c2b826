"""Messages about mistyped backgrounds: the likely background, and the text to type."""

from pathlib import Path

import pytest

from fairseq_llrnn.errors import LLRNNError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.recipe import Recipe

SYMBOLS = [*SPECIALS, "chat", "dort", "la", "le"]
EMPTY = ": expected strings of words, found the empty string alone; fix the file"
FLOOR = "on_zero=floor): it needs a background below with weight for every word, "


def message(folder: Path, background: str, **more: object) -> str:
    (folder / "t.txt").write_text("le chat dort\n", encoding="utf-8")
    with pytest.raises(LLRNNError) as caught:
        build_prior(SYMBOLS, Recipe(text=str(folder / "t.txt"), background=background, workers=1, **more))  # type: ignore[arg-type]
    return str(caught.value)


@pytest.mark.parametrize(
    ("background", "meant"),
    [
        ("trigram", "ngram(3)"), ("bigram", "ngram(2)"), ("Trigrams", "ngram(3)"), ("3-gram", "ngram(3)"),
        ("5gram", "ngram(5)"), ("four-gram", "ngram(4)"), ("ngram3", "ngram(3)"), ("n-gram-2", "ngram(2)"),
        ("kn5", "ngram(5)"), ("fivegrams", "ngram(5)"), ("unigrm", "unigram"), ("unifrom", "uniform"),
    ],
)  # fmt: skip
def test_a_background_that_is_called_otherwise(tmp_path: Path, background: str, meant: str) -> None:
    assert message(tmp_path, background).endswith(f"found no such file; did you mean {meant}?")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.regex", ""), ("a.regex", "# a comment\n\n"), ("a.regex", "()"), ("a.regex", "le{0}"), ("a.regex", "(|)"),
        ("a.grammar", "S -> \n"), ("a.grammar", "S -> A\nA -> |\n"), ("a.txt", "0 1 <eps>\n1\n"),
    ],
)  # fmt: skip
def test_a_language_of_no_words(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert message(tmp_path, f"automaton:{tmp_path / name}") == f"{tmp_path / name}{EMPTY}"


@pytest.mark.parametrize("times", ["{1,99999999}", "{99999999}", "{99999999,}", "{0,123456789012345678}"])
def test_a_word_too_often(tmp_path: Path, times: str) -> None:
    path = tmp_path / "a.regex"
    path.write_text(f"le chat\n(le dort){times}\n", encoding="utf-8")
    found = message(tmp_path, f"automaton:{path}")
    assert found.startswith(f"{path}: expected an expression of at most 4,000,000 arcs, found one of ")
    assert found.endswith(f" of `{times}` (line 2, column 10); repeat less")


@pytest.mark.parametrize(
    ("background", "more", "word"),
    [
        ("0.5 automaton({g}, on_zero=floor) plus 0.5 {w}", {}, "'</s>' without weight (words without weight: 4"),
        ("automaton({g}, on_zero=floor) times {w}", {}, "'</s>' without weight (words without weight: 4"),
        ("automaton({g}, on_zero=floor)", {"over": "unigram(smoothing=none)"}, "'la' without weight (words"),
        ("cache:3 plus automaton({g}, on_zero=floor) plus unigram(smoothing=none)", {}, "'la' without weight"),
    ],
)
def test_a_floor_of_nothing(tmp_path: Path, background: str, more: dict[str, str], word: str) -> None:
    grammar, weights = tmp_path / "g.regex", tmp_path / "w.tsv"
    grammar.write_text("le chat dort\n", encoding="utf-8")
    weights.write_text("le\t1\nchat\t1\n", encoding="utf-8")
    background = background.format(g=grammar, w=weights)
    found = message(tmp_path, background, **more)
    assert FLOOR + "found " + word in found and found.endswith("or add --set over=unigram")
    over = {"over": "unigram"} if "unigram" not in background else {}
    if over:
        prior = build_prior(SYMBOLS, Recipe(text=str(tmp_path / "t.txt"), background=background, workers=1, **over))
        assert prior.allowed.sum() == len(SYMBOLS) - 2
