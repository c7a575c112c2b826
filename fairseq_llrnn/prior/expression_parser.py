"""The parser of background expressions. The grammar is in expression.py."""

from __future__ import annotations

import math
import re

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.numbers import temperature_range
from fairseq_llrnn.prior.expression import (
    DEEPEST,
    NUMBER,
    RESERVED,
    WEIGHTINGS,
    Atom,
    AtTemperature,
    Expression,
    Plus,
    Times,
    Value,
    check_size,
    is_positive,
)

_TOKEN = re.compile(r"""[()]|(?:[^\s()"']|"[^"]*"|'[^']*')+|["']""")
AROUND = 100  # characters shown on both sides of an error
_WORD = r"""(?:[^\s()"',=\[\]]|"[^"]*"|'[^']*')+"""  # within the parentheses of a call
_VALUE = rf"{_WORD}|\[\s*(?:{_WORD}(?:\s*,\s*{_WORD})*)?\s*\]"
_ITEM = re.compile(rf"\s*(?:(?P<name>[a-z_]+)\s*=\s*)?(?P<value>{_VALUE})\s*(?P<end>[,)])")
_EMPTY = re.compile(r"\s*(?P<end>\))")
_QUOTED = re.compile(r""""([^"]*)"|'([^']*)'""")


def parse(text: str, option: str = "--background") -> Expression:
    """Parse an expression.

    Args:
        option: its name in errors.

    Raises:
        OptionError: the text is no expression. The place is marked >>so<<.
    """
    return _Parser(text, option).whole()


class _Parser:
    """Reads tokens from left to right. Each method parses the rule of its name in the grammar of expression.py."""

    def __init__(self, text: str, option: str) -> None:
        self.text, self.option = text, option
        self.spans = [match.span() for match in _TOKEN.finditer(text)]
        self.place = self.open = 0  # the next token, and the parentheses around it

    @property
    def token(self) -> str:
        """The next token as written, or "" at the end."""
        return "" if self.place >= len(self.spans) else self.text[slice(*self.spans[self.place])]

    def whole(self) -> Expression:
        expression = self.sum()
        if self.token:
            raise self.error("`plus`, `times` or nothing more")
        try:
            check_size(expression)
        except ValueError as error:
            raise OptionError(f"{self.option}: {error}; leave some out, or combine their files into one") from None
        return expression

    def sum(self) -> Expression:
        begin, weights, terms = self.place, [self.weight()], [self.product()]
        while self.take("plus"):
            weights.append(self.weight())
            terms.append(self.product())
        numbers = tuple(weight for weight in weights if weight is not None)
        if numbers and (len(numbers) < len(weights) or len(terms) == 1):
            self.place = begin
            raise self.error("a weight for every background that `plus` joins, or for none")
        weighting = WEIGHTINGS[0]
        if len(terms) > 1 and self.take("with"):
            self.expect("weights")
            weighting = self.choice()
        return terms[0] if len(terms) == 1 else Plus(tuple(terms), numbers or None, weighting)

    def choice(self) -> str:
        if self.take("learned"):
            return "learned"
        if self.take("per"):
            self.expect("position")
            return "per position"
        raise self.error("`learned` or `per position`")

    def weight(self) -> float | None:
        return self.number("a weight above 0") if NUMBER.fullmatch(self.token) else None

    def number(self, expected: str) -> float:
        value = float(self.token) if NUMBER.fullmatch(self.token) else math.nan
        if not is_positive(value):
            raise self.error(expected)
        self.place += 1
        return value

    def product(self) -> Expression:
        terms = [self.tempered()]
        while self.take("times"):
            terms.append(self.tempered())
        return terms[0] if len(terms) == 1 else Times(tuple(terms))

    def tempered(self) -> Expression:
        term = self.atom()
        if self.take("at"):
            self.expect("temperature")
            temperature = self.number(temperature_range())
            try:
                return AtTemperature(term, temperature)
            except ValueError as error:
                self.place -= 1
                raise self.error(str(error)) from None
        return term

    def atom(self) -> Expression:
        if self.take("("):
            self.open += 1
            if self.open > DEEPEST:
                raise self.error(f"at most {DEEPEST} nested parentheses")
            inside = self.sum()
            self.expect(")")
            self.open -= 1
            return inside
        token = self.token
        if token in ("'", '"'):
            raise self.error("a second quotation mark")
        if token in ("", ")") or token in RESERVED or NUMBER.fullmatch(token):
            raise self.error("a background, e.g. unigram, ngram:3, automaton:FILE or (…)")
        end = self.spans[self.place][1]
        self.place += 1
        if self.text[end : end + 1] == "(":  # `name (` with a blank is no call
            return self.call(token)
        return Atom(_unquoted(token))

    def call(self, name: str) -> Atom:
        """Parse the parentheses after a name: the value that could follow a colon, and options."""
        at, first, options = self.spans[self.place][1], "", dict[str, Value]()
        item = _EMPTY.match(self.text, at)
        at = item.end() if item is not None else at
        while item is None or item["end"] != ")":
            begin, item = at, _ITEM.match(self.text, at)
            if item is None:
                raise self.error("a value, OPTION=VALUE or OPTION, and then a comma or )", at)
            at, option, value = item.end(), item["name"], item["value"]
            if option is None and begin == self.spans[self.place][1]:
                first = f":{_unquoted(value)}"
                continue
            option, parsed = (option, _value(value)) if option else (value, True)
            if option in options:
                raise self.error(f"{option} once", begin)
            options[option] = parsed
        while self.place < len(self.spans) and self.spans[self.place][0] < at:
            self.place += 1
        return Atom(_unquoted(name) + first, options=tuple(options.items()))

    def take(self, word: str) -> bool:
        matches = self.token == word
        self.place += matches
        return matches

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise self.error(f"`{word}`")

    def error(self, expected: str, at: int | None = None) -> OptionError:
        """Return an error at a character, or at the next token."""
        while at is not None and self.place < len(self.spans) and self.spans[self.place][1] <= at:
            self.place += 1
        begin, end = (len(self.text),) * 2 if not self.token else self.spans[self.place]
        token = self.text[begin:end] or "the end"
        before, after = self.text[:begin], self.text[end:]
        before = before if begin <= AROUND else f"…{before[-AROUND:]}"
        after = after if len(after) <= AROUND else f"{after[:AROUND]}…"
        return OptionError(
            f"{self.option} {before}>>{self.text[begin:end]}<<{after}: expected {expected}, found {token} between >> "
            "and <<"
        )


def _unquoted(text: str) -> str:
    return _QUOTED.sub(lambda match: match[1] or match[2] or "", text)


def _value(text: str) -> Value:
    return tuple(map(_unquoted, re.findall(_WORD, text))) if text.startswith("[") else _unquoted(text)
