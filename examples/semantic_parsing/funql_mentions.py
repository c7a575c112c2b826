"""Replace names in questions by symbols, and restore them in forms.

    what is the population of seattle washington      what is the population of city0
    answer(population_1(cityid('seattle', 'wa')))      answer ( population_1 ( city0 ) )

A name in names.tsv is replaced by a symbol for every kind of thing that it names, numbered in the question by kind:
`mississippi` by `river0 state0`; the parser chooses. A city directly before a state is one mention, of the city in that
state. So the parser can use a city that no training question has, and its symbols are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from funql import CITY, PLACE, RIVER, STATE, Form, parse

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import iter_lines, place

KINDS = (CITY, PLACE, RIVER, STATE)  # in the order of their symbols
MOST = 2  # symbols of a kind; what a question mentions besides stays as it is
SYMBOLS = tuple(f"{kind}{number}" for kind in KINDS for number in range(MOST))
OTHER_NAME = "@"  # which the symbols of other languages' names begin with (atis_prepare.py)
COUNTRY_FORM = Form("countryid", (Form("'usa'"),))
COUNTRY_SYMBOL = "usa"

Names = Mapping[tuple[str, ...], Mapping[str, str]]  # words of a name -> {kind: postal abbreviation, or nothing}


def read_names(path: Path) -> Names:
    """Read lines of kind, name and, for states, postal abbreviation, with tabs. Raises DataError: a line of another
    form.
    """
    names: dict[tuple[str, ...], dict[str, str]] = {}
    for number, line in iter_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        kind, *fields = line.split("\t")
        if kind not in KINDS or len(fields) != (2 if kind == STATE else 1) or not all(map(str.split, fields)):
            raise DataError(
                f"{place(path, number)}: expected kind, name and, for a state, its abbreviation, with tabs between "
                f"them; the kind one of {', '.join(KINDS)}; found {line!r}; fix the line"
            )
        abbreviation = fields[1] if kind == STATE else ""
        for words in {tuple(fields[0].split()), (abbreviation,)} - {("",)}:
            if len(words) > 1 or words[0] not in AMBIGUOUS:
                names.setdefault(words, {})[kind] = abbreviation
    return names


AMBIGUOUS = frozenset({"in", "or", "me", "hi", "ok", "oh", "id", "la", "de", "al", "pa", "ma", "co"})  # ordinary words


@dataclass(frozen=True)
class Question:
    """A question in symbols."""

    words: tuple[str, ...]
    offers: Mapping[str, Form]  # what each symbol of the question stands for


def kind_of_name(symbol: str) -> str:
    """Return the kind of thing that a symbol names, or nothing if it is no name's symbol."""
    return symbol[:-1] if symbol in SYMBOLS or symbol.startswith(OTHER_NAME) else ""


def read_question(text: str, names: Names) -> Question:
    """Return the question with symbols instead of names."""
    words: list[str] = []
    offers: dict[str, Form] = {}
    for original, forms in _mentions(text.split(), names):
        symbols = [(f"{kind}{sum(name.startswith(kind) for name in offers)}", kind) for kind in KINDS if kind in forms]
        symbols = [(symbol, kind) for symbol, kind in symbols if int(symbol.removeprefix(kind)) < MOST]
        offers |= {symbol: forms[kind] for symbol, kind in symbols}
        words += [symbol for symbol, _ in symbols] or original
    return Question(tuple(words), {**offers, COUNTRY_SYMBOL: COUNTRY_FORM})


def _mentions(words: Sequence[str], names: Names) -> Iterator[tuple[list[str], dict[str, Form]]]:
    """Yield the words from left to right: a name, the longest possible, or a word that is none."""
    longest = max(map(len, names), default=0)

    def name_at(place: int) -> tuple[str, ...]:
        ends = range(min(len(words), place + longest), place, -1)
        return next((tuple(words[place:end]) for end in ends if tuple(words[place:end]) in names), ())

    place = 0
    while place < len(words):
        name = name_at(place)
        state = name_at(place + len(name)) if name else ()
        end = place + max(1, len(name))
        if CITY in names.get(name, {}) and STATE in names.get(state, {}):
            end += len(state)
            yield list(words[place:end]), {CITY: _form(CITY, " ".join(name), names[state][STATE])}
        else:
            forms = {kind: _form(kind, " ".join(name)) for kind in names.get(name, {})}
            yield list(words[place:end]), forms
        place = end


def _form(kind: str, name: str, abbreviation: str = "") -> Form:
    last = Form(f"'{abbreviation}'" if abbreviation else "_")
    return Form(f"{kind}id", (Form(f"'{name}'"), last) if kind == CITY else (Form(f"'{name}'"),))


def to_symbols(form: Form, question: Question) -> list[str]:
    """Return the form in the parser's symbols. A name outside the question stays spelled out."""
    for symbol, offered in question.offers.items():
        if form == offered:
            return [symbol]
    result = [form.head]
    for number, argument in enumerate(form.arguments):
        result += ["," if number else "(", *to_symbols(argument, question)]
    return [*result, ")"] if form.arguments else result


def from_symbols(symbols: Sequence[str], question: Question) -> Form:
    """Return the form of a parser's symbols. Raises DataError if they are none."""

    def fill(form: Form) -> Form:
        if not form.arguments and form.head in question.offers:
            return question.offers[form.head]
        return Form(form.head, tuple(map(fill, form.arguments)))

    return fill(parse(" ".join(symbols)))
