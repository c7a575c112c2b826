"""`llrnn prior words.guess`, and what `llrnn show` says of guesses."""

import json
from dataclasses import replace
from functools import partial

import pytest
from small_corpus import Build, Corpus, Llrnn

from fairseq_llrnn.cli.prior.summary import guess_lines
from fairseq_llrnn.lexicon.lexicon_table import Completed, Coverage
from fairseq_llrnn.lexicon.unknown_word_features import KINDS, LEFT_OUT
from fairseq_llrnn.prior.parts.guesses import GuessesPart
from fairseq_llrnn.prior.prior import Prior


@pytest.fixture
def build(corpus: Corpus, llrnn: Llrnn) -> Build:
    """`llrnn prior` on the small corpus, whose dictionary has `zut` with count 0."""
    return partial(
        llrnn, "prior", "--dict", corpus.dictionary, "--conllu", corpus.treebank, "--top-words", 3, "--out", corpus.out,
    )  # fmt: skip


def test_it_says_what_was_guessed_and_how_well(build: Build, corpus: Corpus) -> None:
    done = build()
    assert (done.code, done.err) == (0, f"note: {corpus.treebank}: 11 of 11 rows read\n")
    coverage, others, guesses, crossed, accuracy = done.out.splitlines()[-7:-2]
    assert coverage == "lexicon: has 11 of 11 dictionary words in the counted text (100.0%)"
    assert others == "lexicon: has 0 of 1 dictionary words outside the counted text (0.0%)"
    assert guesses == "guessed: features of 4 words; the lexicon lacks 1 of them"
    assert crossed == (
        "guessed: the other 3 occur once in the text, so that training sees as many guesses as a new text has"
    )
    assert accuracy.startswith("test of the guesses on rare words of the lexicon: all features right ")
    assert "%; POS " in accuracy
    part = Prior.load(corpus.out).find(GuessesPart)
    assert part is not None and len(part.words) == 4


def test_off_warns_where_the_lexicon_covers_the_text_better(build: Build, corpus: Corpus) -> None:
    done = build("--set", "words.guess=off")
    assert done.code == 0 and Prior.load(corpus.out).find(GuessesPart) is None
    assert done.err.splitlines()[-2] == (
        "warning: the lexicon has 100% of the dictionary words in the counted text and 0% of the others; a model "
        "learns that words without features never occur. Remove words.guess=off, or add a lexicon with the other words"
    )
    lexicon = corpus.write("lexicon.tsv", "zut\tzut\tINTJ\t_\n")
    done = build("--set", "words.guess=off", "--lexicon", lexicon)
    assert done.code == 0 and "warning" not in done.err
    done = build("--set", "words.guess=on", "--lexicon", lexicon)
    assert done.code == 0 and Prior.load(corpus.out).find(GuessesPart) is None  # nothing is unknown


def test_show_marks_guesses(build: Build, corpus: Corpus, llrnn: Llrnn) -> None:
    build("--shapes")
    shown = llrnn("show", corpus.out, "zut").out
    assert "\n  features      NOTTOP\n  guessed       Gender:" in shown and "POS:NOUN" in shown
    known = llrnn("show", corpus.out, "le").out
    assert "guessed" not in known and "POS:DET" in known
    guessed, sure = json.loads(llrnn("show", corpus.out, "zut", "le", "--json").out)["words"]
    assert "POS:NOUN" in guessed["guessed"] and sure["guessed"] == []
    assert set(guessed["guessed"]) < set(guessed["features"])
    summary = llrnn("show", corpus.out).out
    assert "analyses of 4 words are guessed, right for" in summary


@pytest.mark.parametrize(
    ("became", "without", "said"),
    [
        (KINDS, 0.49, "analyses of --language help to guess the features of words outside the lexicon: right 76%, "
         "without them 49%"),
        (LEFT_OUT, 0.7, "analyses of --language are left out: guesses are right 70% with them, 76% without"),
        (LEFT_OUT, None, "analyses of --language are left out: the lexicon has the words"),
    ],
)  # fmt: skip
def test_what_it_says_of_a_package_beside_a_treebank(became: str, without: float | None, said: str) -> None:
    accuracy = {"whole analysis": 0.76, "POS": 0.8}
    completed = Completed(
        Coverage((1, 1), (0, 1)), 1, frozenset({"chats"}), ("POS",), accuracy, package=became, without=without
    )
    assert said in guess_lines(completed)
    assert guess_lines(completed, doubtful=True) == [
        "lexicon: has 1 of 1 dictionary words in the counted text (100.0%)",
        "lexicon: has 0 of 1 dictionary words outside the counted text (0.0%)",
        "guesses: not tested, because a source may be of another language (see the warning)",
    ]


@pytest.mark.parametrize(
    ("groups", "shown"),
    [(["Mutation"], "Mutation"), ([*"abcdefghi"], "a, b, c, d, e, f, g, h, …")],
)
def test_it_prints_what_the_beginnings_of_words_determine(groups: list[str], shown: str) -> None:
    completed = Completed(Coverage((1, 1), (0, 1)), 1, frozenset({"chats"}), beginnings=tuple(groups))
    assert guess_lines(completed)[-1] == (
        f"guessed: {shown} from the beginnings of words, all other features from the endings"
    )
    assert not any("beginnings" in line for line in guess_lines(replace(completed, beginnings=())))
