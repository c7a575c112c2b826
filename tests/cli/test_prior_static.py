"""`llrnn prior`: unigrams, weights from a file, and the texts that words are counted in."""

import math

import numpy as np
import pytest
from small_corpus import Build, Built, Corpus, row, weight


def test_smoothings_differ_and_sum_to_one(built: Built) -> None:
    names = ("absolute", "additive", "good-turing", "none")
    made = {name: built("--background", f"unigram(smoothing={name})") for name in names}
    assert all(np.exp(p.log_weights).sum() == pytest.approx(1) for p in made.values())
    assert weight(made["none"], "zut") == 0
    assert all(weight(made[name], "zut") > 0 for name in ("absolute", "additive", "good-turing"))
    assert len({weight(p, "zut") for p in made.values()}) == 4


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e306", "1e-300"])
def test_a_pseudo_count_that_is_not_positive(build: Build, value: str) -> None:
    error = build("--background", f"unigram(smoothing=additive, pseudo_count={value})").error
    expected = "a number of at most 1e+99" if value == "1e306" else "a number of at least 1e-99"
    expected = expected if math.isfinite(float(value)) else "a finite number"
    assert error.endswith(f": pseudo_count: expected {expected}, found {value}; correct it")


def test_count_text(built: Built, corpus: Corpus) -> None:
    text = corpus.write("count.txt", "zut zut zut la zut\nzut la inconnu\n")
    prior = built("--count-text", text, "--top-words", 1, "--background", "unigram(smoothing=none)")
    assert "TOPFORM:zut" in row(prior, "zut")
    assert "NOTTOP" in row(prior, "le")
    assert weight(prior, "zut") == pytest.approx(5 / 10)
    assert weight(prior, "</s>") == pytest.approx(2 / 10)
    assert weight(prior, "<unk>") == pytest.approx(1 / 10)
    assert weight(prior, "le") == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "--count-text {path}: cannot be read: No such file…"),
        ("le\nété\n".encode("latin-1"), "{path}, line 2, byte 1: expected UTF-8, found the byte 0xe9 (invalid "
         "continuation byte); convert the text to UTF-8"),
        ("", "…expected counts, found none for any word of the dictionary…"),
        ("des mots tout autres\n", "…expected counts, found none for any word of the dictionary…"),
    ],
)  # fmt: skip
def test_a_count_text_that_cannot_be_used(build: Build, corpus: Corpus, text: str | bytes | None, says: str) -> None:
    path = corpus.place / "nowhere.txt" if text is None else corpus.write("text", text)
    build("--count-text", path).refuses(says.format(path=path))


def test_weights_from_a_file(built: Built, corpus: Corpus) -> None:
    path = corpus.write("weights.tsv", "le\t3\nla\t0\n\n</s>\t1e0\n")
    prior = built("--background", path)
    assert (weight(prior, "le"), weight(prior, "</s>")) == (pytest.approx(0.75), pytest.approx(0.25))
    assert weight(prior, "la") == weight(prior, "chat") == 0
    assert prior.counts()["forbidden words"] == 15
    assert prior.settings["background"] == path.name


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", None, "expected at least one positive weight, found none; give weights of dictionary words"),
        ("le\t0\nla\t0\n", None, "expected at least one positive weight, found none; give weights of dictionary words"),
        ("le\tnan\n", 1, "expected a finite weight ≥ 0 for 'le', found nan; fix the row"),
        ("la\t1\nle\tinf\n", 2, "expected a finite weight ≥ 0 for 'le', found inf; fix the row"),
        ("le\t-0.5\n", 1, "expected a finite weight ≥ 0 for 'le', found -0.5; fix the row"),
        ("le\tbeaucoup\n", 1, "expected a number as weight of 'le', found 'beaucoup'; fix it"),
        ("le\t\n", 1, "expected a number as weight of 'le', found ''; fix it"),
        ("la\t1\n\nloup\t1\n", 3, "word 'loup' is not in the dictionary; remove the row or add the word"),
        ("<pad>\t1\n", 1, "word '<pad>' is not in the dictionary; remove the row or add the word"),
        ("le\t1\nla\t1\nle\t2\n", 3, "word 'le' was already given in line 1; remove one of them"),
        ("le 1\n", 1, "expected `word<TAB>weight`, found 1 columns: 'le 1'; fix the row"),
        ("le\t1\tx\n", 1, "expected `word<TAB>weight`, found 3 columns: 'le\\t1\\tx'; fix the row"),
    ],
)
def test_weights_that_cannot_be_used(build: Build, corpus: Corpus, text: str, line: int | None, says: str) -> None:
    path = corpus.write("weights.tsv", text)
    place = path if line is None else f"{path}, line {line}"
    assert build("--background", path).error == f"{place}: {says}"
    assert not corpus.out.exists()


def test_a_background_that_is_neither_kind_nor_file(build: Build, corpus: Corpus) -> None:
    error = build("--background", "unigramm").error
    assert error.startswith("--background unigramm: expected unigram, uniform, language:CODE, automaton:grammar.txt, ")
    assert "ngram:model.arpa or ngram:3" in error  # then those that other tests register
    assert error.endswith(
        " or the path of a TSV file with `word<TAB>weight` rows, found no such file; did you mean unigram?"
    )
    assert "; did you mean cache? If another package has this background, install it" in build(
        "--background", "cahce:5"
    ).error
    assert build("--background", corpus.place).error.startswith(f"--background {corpus.place}: cannot be read: Is a d")
    done = build("--background", "unigram(smoothing=goodturing)")
    assert "expected absolute, additive, good-turing or none, found 'goodturing'" in done.error
