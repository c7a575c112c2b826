"""Expressions of backgrounds: their text, JSON and errors agree."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.prior.background_terms import read_background
from fairseq_llrnn.prior.expression import (
    Atom,
    AtTemperature,
    Expression,
    Plus,
    Times,
    atoms,
    describe,
    described,
    required,
    with_atoms,
)
from fairseq_llrnn.prior.expression_parser import parse

A, B, C = Atom("ngram:3"), Atom("automaton:g.grammar"), Atom("cache:500")


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("unigram", Atom("unigram")),
        ("automaton:g.grammar times ngram:3", Times((B, A))),
        ("0.7 ngram:3 plus 0.3 cache:500", Plus((A, C), (0.7, 0.3))),
        ("ngram:3 plus cache:500 with weights learned", Plus((A, C), None, "learned")),
        ("2 ngram:3 plus 1 cache:500 with weights per position", Plus((A, C), (2.0, 1.0), "per position")),
        ("ngram:3 at temperature 2", AtTemperature(A, 2.0)),
        ("ngram:3 plus automaton:g.grammar times cache:500", Plus((A, Times((B, C))))),
        ("(ngram:3 plus cache:500) times automaton:g.grammar", Times((Plus((A, C)), B))),
        ("(ngram:3 plus cache:500) at temperature .5", AtTemperature(Plus((A, C)), 0.5)),
        ("(ngram:3 times cache:500) times automaton:g.grammar", Times((Times((A, C)), B))),
        ("((ngram:3))", A),
        ('automaton:"my (new) file.txt" times ngram:3', Times((Atom("automaton:my (new) file.txt"), A))),
        ("'automaton:my file.txt'", Atom("automaton:my file.txt")),
        ('"plus" plus "2"', Plus((Atom("plus"), Atom("2")))),
    ],
)  # fmt: skip
def test_what_is_written(text: str, expression: Expression) -> None:
    assert parse(text) == expression


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", ">><<: expected a background, e.g. unigram, ngram:3, automaton:FILE or (…), found the end"),
        ("ngram:3 plus plus x", "ngram:3 plus >>plus<< x: expected a background, e.g. unigram"),
        ("ngram:3 times", "ngram:3 times>><<: expected a background"),
        ("ngram:3 x", "ngram:3 >>x<<: expected `plus`, `times` or nothing more, found x between >> and <<"),
        ("(ngram:3 plus x", "(ngram:3 plus x>><<: expected `)`, found the end between >> and <<"),
        ("ngram:3) plus x", "ngram:3>>)<< plus x: expected `plus`, `times` or nothing more"),
        ("0.7 ngram:3 plus x", ">>0.7<< ngram:3 plus x: expected a weight for every background that `plus` joins, or"),
        ("0.7 ngram:3", ">>0.7<< ngram:3: expected a weight for every background that `plus` joins, or for none"),
        ("0 ngram:3 plus 1 x", ">>0<< ngram:3 plus 1 x: expected a weight above 0, found 0"),
        ("ngram:3 at 2", "ngram:3 at >>2<<: expected `temperature`, found 2"),
        ("ngram:3 at temperature x", "ngram:3 at temperature >>x<<: expected a temperature from 0.01 to 100, found x"),
        ("x at temperature 1e-5", "x at temperature >>1e-5<<: expected a temperature from 0.01 to 100, found 1e-5"),
        ("x at temperature 101", "x at temperature >>101<<: expected a temperature from 0.01 to 100, found 101"),
        ("(x plus y at temperature 0.05) at temperature 0.1", ">>0.1<<: expected a temperature from 0.01 to 100, "
         "after multiplying nested ones, found 0.1"),
        ("a plus b with weights fixed", "a plus b with weights >>fixed<<: expected `learned` or `per position`"),
        ("a plus b with weights per word", "with weights per >>word<<: expected `position`, found word"),
        ("a with weights learned", "a >>with<< weights learned: expected `plus`, `times` or nothing more"),
        ('a plus "b', 'a plus >>"<<b: expected a second quotation mark'),
    ],
)  # fmt: skip
def test_errors_show_the_place(text: str, error: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse(text)
    assert error in str(caught.value) and "\n" not in str(caught.value)


ODD = ["plus", "ngram:3", "2", "a b", "(", '"', "'", "\"'", "a\"b c'd"]
texts = st.text(min_size=1, max_size=8) | st.sampled_from(ODD)
numbers = st.floats(1e-3, 1e20)


def _tempered(term: Expression, temperature: float) -> Expression:
    """Return the tempered term, or the term itself if its temperatures would be out of range."""
    try:
        return AtTemperature(term, temperature)
    except ValueError:
        return term


def _sums(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    terms = st.lists(inner, min_size=2, max_size=3).map(tuple)
    weightings = st.sampled_from(["fixed", "learned", "per position"])

    def plus(terms: tuple[Expression, ...]) -> st.SearchStrategy[Expression]:
        weights = st.lists(numbers, min_size=len(terms), max_size=len(terms)).map(tuple)
        return st.builds(Plus, st.just(terms), st.none() | weights, weightings)

    return terms.flatmap(plus) | terms.map(Times) | st.builds(_tempered, inner, st.floats(0.05, 20.0))


expressions = st.recursive(texts.map(Atom), _sums, max_leaves=8)


@given(expressions)
def test_what_is_printed_is_read_again(expression: Expression) -> None:
    assert parse(str(expression)) == expression


@given(expressions)
def test_json_there_and_back(expression: Expression) -> None:
    names = [f"p.{i}" for i in range(len(atoms(expression)))]
    waiting = iter(names)
    built = with_atoms(expression, lambda atom: Atom(atom.text, next(waiting)))
    assert [atom.part for atom in atoms(built)] == names and str(built) == str(expression)
    assert described(json.loads(json.dumps(describe(built))), names) == built


@pytest.mark.parametrize(
    ("description", "error"),
    [
        (3, "its background is no combination of parts"),
        ({}, "its background is no combination of parts"),
        ({"part": "b", "text": "b"}, "its background has the part 'b', expected one of a"),
        ({"part": ["a"], "text": "b"}, "its background has the part"),
        ({"part": "a"}, "its background has the part 'a'"),
        ({"product": [{"part": "a", "text": "a"}]}, "its background is no combination of parts"),
        ({"tempered": {"part": "a", "text": "a"}, "temperature": 0}, "the temperature 0, expected a temperature"),
        ({"tempered": {"part": "a", "text": "a"}, "temperature": True}, "has the temperature True"),
        ({"mixture": [{"part": "a", "text": "a"}] * 2, "weights": [1], "weighting": "fixed"}, "invalid weights"),
        ({"mixture": [{"part": "a", "text": "a"}] * 2, "weights": [1, -1], "weighting": "fixed"}, "invalid weights"),
        ({"mixture": [{"part": "a", "text": "a"}] * 2, "weights": None, "weighting": "magic"}, "invalid weights"),
    ],
)
def test_untrusted_descriptions(description: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        described(description, ["a"])


def test_a_description_too_deep() -> None:
    description: Any = {"part": "a", "text": "a"}
    for _ in range(100):
        description = {"tempered": description, "temperature": 2}
    with pytest.raises(ValueError, match="no combination"):
        described(description, ["a"])


def test_what_must_allow_a_word() -> None:
    assert required(parse("a times (b at temperature 2) times (c plus d)")) == [Atom("a"), Atom("b")]
    assert required(Atom("a")) == [Atom("a")]


MANY = [
    " plus ".join(["ngram:3"] * 40),  # a name of 560 characters, which no file can have
    " times ".join([f"automaton:grammars/of/things/{i}.grammar" for i in range(40)]),
    "(" * 40 + "unigram" + ")" * 40,
    " plus ".join(["unigram"] * 256),
]


@pytest.mark.parametrize("text", MANY)
def test_long_expressions_are_no_names_of_files(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert describe(described(describe(parse(text)), [""])) == describe(parse(text))
    monkeypatch.setattr("fairseq_llrnn.prior.background_terms.file_of", lambda *_: None)  # whether they are there
    assert read_background(text) == parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 51 + "unigram" + ")" * 51, "expected at most 50 nested parentheses"),
        ("(" * 100_000, "expected at most 50 nested parentheses"),
        ("a plus " * 100_000, r"expected a background, .* found the end between >> and <<"),
        (" plus ".join(["unigram"] * 257), "expected at most 256 backgrounds, found 257; leave some out"),
        ("(" * 30 + "a" + " plus b) times c" * 30, "expected at most 50 nested levels of backgrounds, found 6"),
        ("a " + "b" * 10_000, "expected `plus`, `times` or nothing more"),
    ],
)
def test_expressions_that_are_too_large(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        read_background(text)
    assert len(str(caught.value)) < 800


def test_a_file_with_blanks_or_an_odd_name_needs_no_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("my weights.tsv", "it's.tsv", "a (new).tsv"):
        (tmp_path / name).write_text("x\t1\n", encoding="utf-8")
        assert read_background(name) == Atom(name)
    (tmp_path / "unigram times uniform").touch()  # what is an expression is one
    assert read_background("unigram times uniform") == parse("unigram times uniform")


def test_a_prior_with_too_many_backgrounds_is_refused() -> None:
    atom = {"part": "static", "text": "unigram"}
    with pytest.raises(ValueError, match="expected at most 256 backgrounds, found 300"):
        described({"mixture": [atom] * 300, "weights": None, "weighting": "fixed"}, ["static"])
