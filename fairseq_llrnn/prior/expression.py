"""Combinations of backgrounds: the expressions of `llrnn prior --background`, which prior.json stores.

    automaton:g.grammar times ngram:3                       both must allow a word (Product)
    0.7 ngram:3 plus 0.3 ngram:news.arpa                    a mixture, with given or equal weights (Mixture)
    ngram:3 plus cache:500 with weights learned             … whose weights are parameters of the model
    ngram:3 plus cache:500 with weights per position        … whose weights the network predicts at every position
    ngram:3 at temperature 2                                b^(1/2) (Tempered)
    ngram(3, folds=10) plus cache(500, weight=0.9, learned) options of a background (ngram(3) is ngram:3)
    (ngram:3 plus unigram) times "automaton:my file.txt"    parentheses; quotes around blanks

    sum      =  [number] product { plus [number] product } [with weights (learned | per position)]
    product  =  tempered { times tempered }
    tempered =  atom [at temperature number]                atom: ( sum ), call, or any other word
    call     =  name( [value] {, option [= value]} )        value: a word, or [word, …]; an option alone is true

`times` binds tighter than `plus`. Atoms mean the same as outside of a combination: `unigram`, `ngram:3`, a path
(background_terms.py). The parser is expression_parser.py.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard

from fairseq_llrnn.files.numbers import is_temperature, temperature_range

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.background import Background

WEIGHTINGS = ("fixed", "learned", "per position")
DEEPEST, LONGEST = 50, 256  # most levels and atoms of an expression, which is untrusted input
RESERVED = frozenset("times plus with weights learned per position at temperature".split())
NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?")


Value = str | tuple[str, ...] | bool


@dataclass(frozen=True)
class Atom:
    """A single background: its text, and the name of its part once it is built."""

    text: str  # ngram:3, also for ngram(3, folds=10)
    part: str = ""
    options: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        if not self.options:
            return _quote(self.text)
        name, colon, first = self.text.partition(":")
        options = [f"{option}={_written(value)}" if value is not True else option for option, value in self.options]
        return f"{name}({', '.join([_quote(first, CALLED)] * bool(colon) + options)})"


@dataclass(frozen=True)
class Times:
    """A product of two terms or more."""

    terms: tuple[Expression, ...]

    def __str__(self) -> str:
        return " times ".join(f"({term})" if isinstance(term, (Plus, Times)) else str(term) for term in self.terms)


@dataclass(frozen=True)
class Plus:
    """A mixture of two terms or more."""

    terms: tuple[Expression, ...]
    weights: tuple[float, ...] | None = None  # above 0, one for each term; None: equal weights
    weighting: str = WEIGHTINGS[0]  # one of WEIGHTINGS; unless "fixed", `weights` are the initial values

    def __str__(self) -> str:
        terms = [f"({term})" if isinstance(term, Plus) else str(term) for term in self.terms]
        if self.weights is not None:
            terms = [f"{_number(weight)} {term}" for weight, term in zip(self.weights, terms, strict=True)]
        return " plus ".join(terms) + ("" if self.weighting == "fixed" else f" with weights {self.weighting}")


@dataclass(frozen=True)
class AtTemperature:
    """b^(1/temperature).

    Raises:
        ValueError: the product of all temperatures of some atom is not in TEMPERATURES.
    """

    term: Expression
    temperature: float

    def __post_init__(self) -> None:
        if not all(map(is_temperature, temperatures(self))):
            together = "" if set(temperatures(self.term)) == {1.0} else ", after multiplying nested ones"
            raise ValueError(f"{temperature_range()}{together}")

    @property
    def terms(self) -> tuple[Expression]:
        return (self.term,)

    def __str__(self) -> str:
        inner = str(self.term) if isinstance(self.term, Atom) else f"({self.term})"
        return f"{inner} at temperature {_number(self.temperature)}"


Expression = Atom | Times | Plus | AtTemperature


def temperatures(expression: Expression) -> list[float]:
    """Return the temperature of each atom, from left to right: the product of all that apply to it."""
    if isinstance(expression, Atom):
        return [1.0]
    if isinstance(expression, AtTemperature):
        return [expression.temperature * inner for inner in temperatures(expression.term)]
    return [temperature for term in expression.terms for temperature in temperatures(term)]


def atoms(expression: Expression) -> list[Atom]:
    """Return the atoms from left to right."""
    if isinstance(expression, Atom):
        return [expression]
    return [atom for term in expression.terms for atom in atoms(term)]


def required(expression: Expression) -> list[Atom]:
    """Return the atoms that must allow a word for it to be possible: all outside of mixtures."""
    if isinstance(expression, Atom):
        return [expression]
    terms = () if isinstance(expression, Plus) else expression.terms
    return [atom for term in terms for atom in required(term)]


def with_atoms(expression: Expression, change: Callable[[Atom], Atom]) -> Expression:
    """Return the expression with each atom changed. `change` is called from left to right."""
    if isinstance(expression, Atom):
        return change(expression)
    if isinstance(expression, AtTemperature):
        return replace(expression, term=with_atoms(expression.term, change))
    return replace(expression, terms=tuple(with_atoms(term, change) for term in expression.terms))


def combine(expression: Expression, background: Callable[[str], Background]) -> Background:
    """Return the background of an expression. `background` returns that of the part with a name."""
    from fairseq_llrnn.backgrounds.mixture import Mixture, product, tempered

    if isinstance(expression, Atom):
        return background(expression.part)
    if isinstance(expression, AtTemperature):
        return tempered(combine(expression.term, background), expression.temperature)
    terms = [combine(term, background) for term in expression.terms]
    if isinstance(expression, Times):
        return product(terms)
    return Mixture(terms, expression.weights, expression.weighting.replace("per position", "network"))


# ---- in prior.json --------------------------------------------------------------------------------------------------


def describe(expression: Expression) -> dict[str, Any]:
    """Return an expression as JSON values."""
    if isinstance(expression, Atom):
        description = {"options": dict(expression.options)} if expression.options else {}
        return {"part": expression.part, "text": expression.text, **description}
    if isinstance(expression, AtTemperature):
        return {"tempered": describe(expression.term), "temperature": expression.temperature}
    terms = [describe(term) for term in expression.terms]
    if isinstance(expression, Times):
        return {"product": terms}
    weights = None if expression.weights is None else list(expression.weights)
    return {"mixture": terms, "weights": weights, "weighting": expression.weighting}


def check_size(expression: Expression) -> None:
    """Raise ValueError for an expression that is too deep or has too many atoms."""
    if (depth := _depth(expression)) > DEEPEST:
        raise ValueError(f"expected at most {DEEPEST} nested levels of backgrounds, found {depth}")
    if (size := len(atoms(expression))) > LONGEST:
        raise ValueError(f"expected at most {LONGEST:,} backgrounds, found {size:,}")


def _depth(expression: Expression) -> int:
    return 0 if isinstance(expression, Atom) else 1 + max(map(_depth, expression.terms))


def described(description: Any, names: Sequence[str]) -> Expression:
    """Return the expression that `describe` described. The description is untrusted input.

    Args:
        names: the parts that have a background of their own.

    Raises:
        ValueError: the description is invalid or too large.
    """
    expression = _parse_description(description, names, 0)
    check_size(expression)
    return expression


def _parse_description(description: Any, names: Sequence[str], depth: int) -> Expression:
    if not isinstance(description, Mapping) or depth > DEEPEST:
        raise ValueError("its background is no combination of parts")
    entry: dict[str, Any] = dict(description)
    kind = next((kind for kind in ("part", "tempered", "product", "mixture") if kind in entry), None)
    if kind == "part":
        if entry["part"] not in names or not isinstance(entry.get("text"), str):
            raise ValueError(f"its background has the part {entry['part']!r}, expected one of {', '.join(names)}")
        options = entry.get("options", {})
        if not isinstance(options, dict) or not all(map(_is_value, options.values())):
            raise ValueError(f"its background has the options {options!r}, expected texts by name")
        pairs = ((str(name), tuple(value) if isinstance(value, list) else value) for name, value in options.items())
        return Atom(entry["text"], entry["part"], tuple(pairs))
    if kind == "tempered":
        term, temperature = _parse_description(entry[kind], names, depth + 1), entry.get("temperature")
        try:
            return AtTemperature(term, float(temperature) if is_positive(temperature) else math.nan)
        except ValueError as error:
            raise ValueError(f"its background has the temperature {temperature!r}, expected {error}") from None
    rows = entry.get(kind or "")
    if not isinstance(rows, list) or len(rows) < 2:
        raise ValueError("its background is no combination of parts")
    terms = tuple(_parse_description(row, names, depth + 1) for row in rows)
    if kind == "product":
        return Times(terms)
    weights, weighting = entry.get("weights"), entry.get("weighting")
    numbers = weights if isinstance(weights, list) else []
    sound = weights is None or (len(numbers) == len(rows) and all(map(is_positive, numbers)))
    if not sound or weighting not in WEIGHTINGS:
        raise ValueError("its background is a mixture with invalid weights")
    return Plus(terms, None if weights is None else tuple(map(float, weights)), weighting)


def _is_value(value: object) -> bool:
    words = value if isinstance(value, list) else [value]
    return value is True or all(isinstance(word, str) for word in words)


def is_positive(value: object) -> TypeGuard[float]:
    """Return whether a value is a number above 0 that a float can represent."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 < value <= sys.float_info.max


# ---- text -----------------------------------------------------------------------------------------------------------


CALLED = re.compile(r"""[\s()"',=\[\]]""")  # characters that need quotes within the parentheses of a call
_PLACED = re.compile(r"""[\s()"']""")  # … and elsewhere


def _quote(text: str, special: re.Pattern[str] = _PLACED) -> str:
    """Return an atom's text, quoted if necessary."""
    reserved = special is _PLACED and (text in RESERVED or NUMBER.fullmatch(text))
    if text and not reserved and not special.search(text):
        return text
    return "'\"'".join(f'"{piece}"' for piece in text.split('"'))


def _written(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_quote(word, CALLED) for word in value)}]"
    return _quote(str(value), CALLED)


def _number(value: float) -> str:
    """Return the shortest text of a number."""
    return str(int(value)) if value == int(value) and value < 1e15 else repr(value)
