"""FunQL, the language of GeoQuery's logical forms: parse, write, and check types.

    answer(largest(city(loc_2(stateid('texas')))))

A form is a tree of predicates. `kinds` returns what a form can denote: sets of cities, countries, places, rivers,
states, or a number. It is independent of the grammar funql.grammar, whose strings it checks: a table of signatures, and
three rules for the predicates whose kind depends on more than their argument's. Language: Kate, Wong & Mooney 2005,
*Learning to transform natural to formal languages*; predicates and their kinds as in GeoQuery's training forms.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

logging.getLogger("fairseq").setLevel(logging.WARNING)  # before it is imported: it reports while it does

from fairseq_llrnn.errors import DataError  # noqa: E402

TOKEN = re.compile(r"\s*('[^']*'|[a-z_][a-z_0-9]*|[0-9]+|[(),])")

CITY, COUNTRY, PLACE, RIVER, STATE, NUMBER = "city country place river state number".split()
ENTITIES = frozenset({CITY, COUNTRY, PLACE, RIVER, STATE})
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Form:
    """A predicate and its arguments. A constant (`all`, `_`, a number, a 'name') has none."""

    head: str
    arguments: tuple[Form, ...] = ()

    def __str__(self) -> str:
        """Return the notation of GeoQuery's files."""
        inside = ", ".join(map(str, self.arguments))
        return f"{self.head}({inside})" if self.arguments else self.head

    def symbols(self) -> Iterator[str]:
        """Return predicates, constants, brackets and commas in order."""
        yield self.head
        for number, argument in enumerate(self.arguments):
            yield "," if number else "("
            yield from argument.symbols()
        if self.arguments:
            yield ")"


def tokens_of(text: str) -> list[str]:
    """Split a text into tokens. Raises DataError for characters outside the language."""
    tokens, place = [], 0
    text = text.rstrip()
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            raise DataError(
                f"{text!r}: expected a predicate, a constant, a 'name', a bracket or a comma at character {place + 1}, "
                f"found {text[place:].strip()[:1]!r}; fix the form"
            )
        tokens.append(match[1])
        place = match.end()
    return tokens


def parse(text: str) -> Form:
    """Return the tree of a form. Raises DataError if it is none."""
    return parse_symbols(tokens_of(text), text)


def parse_symbols(symbols: Sequence[str], text: str) -> Form:
    """Return the tree of a form of these symbols. `text` names it in a DataError."""
    tokens = [*symbols, "the end"]

    def expect(place: int, *wanted: str) -> int:
        if tokens[place] not in wanted:
            raise DataError(
                f"{text!r}: expected {' or '.join(wanted)} as symbol {place + 1}, found {tokens[place]}; fix the form"
            )
        return place + 1

    def form(place: int) -> tuple[Form, int]:
        head = tokens[place]
        if head in ("(", ")", ",", "the end"):
            raise DataError(
                f"{text!r}: expected a predicate or a constant as symbol {place + 1}, found {head}; fix the form"
            )
        place += 1
        arguments: list[Form] = []
        if tokens[place] == "(":
            while not arguments or tokens[place] == ",":
                argument, place = form(place + 1)
                arguments.append(argument)
            place = expect(place, ",", ")")
        return Form(head, tuple(arguments)), place

    try:
        result, place = form(0)
    except RecursionError:
        raise DataError(f"{text[:60]!r}…: expected a form of a reasonable depth; fix the form") from None
    expect(place, "the end")
    return result


def _same(*of: str) -> dict[str, frozenset[str]]:
    return {kind: frozenset({kind}) for kind in of}


def _to(result: str, *of: str) -> dict[str, frozenset[str]]:
    return {kind: frozenset(result.split()) for kind in of}


# Predicates of one argument: what they denote when it denotes this.
SIGNATURES: dict[str, dict[str, frozenset[str]]] = {
    "answer": _same(*ENTITIES, NUMBER),
    # "the ones among": sets of one kind
    CITY: _same(CITY),
    STATE: _same(STATE),
    RIVER: _same(RIVER),
    PLACE: _same(PLACE),
    "mountain": _same(PLACE),
    "lake": _same(PLACE),
    "capital": _to(CITY, CITY, PLACE),  # "a capital that is the highest point": capital(highest(place(all)))
    "major": _same(CITY, RIVER, PLACE),
    # superlatives
    "largest": _same(CITY, STATE, PLACE, RIVER),
    "smallest": _same(CITY, STATE, PLACE, RIVER),
    "longest": _same(RIVER),
    "shortest": _same(RIVER),
    "highest": _same(PLACE),
    "lowest": _same(PLACE),
    # relations: NAME_1 goes from the subject to the object, NAME_2 back
    "loc_1": _to("country state", CITY, PLACE, RIVER) | _to(COUNTRY, STATE),
    "loc_2": _to("city place river state", COUNTRY) | _to("city place river", STATE) | _to("place river", CITY),
    "next_to_1": _to(STATE, STATE),
    "next_to_2": _to(STATE, STATE, RIVER),
    "traverse_1": _to("city country state", RIVER),
    "traverse_2": _to(RIVER, CITY, COUNTRY, STATE),
    "capital_1": _to(CITY, STATE),
    "capital_2": _to(STATE, CITY),
    "high_point_1": _to(PLACE, COUNTRY, STATE),
    "high_point_2": _to("country state", PLACE),
    "low_point_1": _to(PLACE, COUNTRY, STATE),
    "low_point_2": _to("country state", PLACE),
    "higher_1": _to(PLACE, PLACE),
    "higher_2": _to(PLACE, PLACE),
    "lower_1": _to(PLACE, PLACE),
    "lower_2": _to(PLACE, PLACE),
    "longer": _to(RIVER, RIVER),
    "shorter": _to(RIVER, RIVER),
    "elevation_2": _to(PLACE, NUMBER),
    # numbers
    "area_1": _to(NUMBER, CITY, COUNTRY, STATE),
    "population_1": _to(NUMBER, CITY, COUNTRY, STATE),
    "density_1": _to(NUMBER, CITY, COUNTRY, STATE),
    "elevation_1": _to(NUMBER, PLACE),
    "len": _to(NUMBER, RIVER),
    "size": _to(NUMBER, CITY, COUNTRY, STATE),
    "count": _to(NUMBER, *ENTITIES),
}
NAMES = {"cityid": CITY, "countryid": COUNTRY, "placeid": PLACE, "riverid": RIVER, "stateid": STATE}
MEASURES = frozenset({"area_1", "population_1", "density_1", "elevation_1", "len", "size"})
SETS = frozenset({CITY, STATE, RIVER, PLACE, "mountain", "lake", "capital"})
ONE_ARGUMENT = (SIGNATURES.keys() | {"largest_one", "smallest_one", "sum", "most", "fewest"}) - {"answer"}
RELATIONS = frozenset({"loc_1", "loc_2", "next_to_1", "next_to_2", "traverse_1", "traverse_2"})


def kinds(form: Form) -> frozenset[str]:
    """Return the kinds that a form can denote; empty if it is ill-typed."""
    head, arguments = form.head, form.arguments
    if not arguments:
        return ENTITIES if head == "all" else frozenset({NUMBER}) if head.isdigit() else NOTHING
    if head in NAMES:
        return frozenset({NAMES[head]}) if _is_name(form) else NOTHING
    if head in ("exclude", "intersection"):
        return kinds(arguments[0]) & kinds(arguments[1]) & ENTITIES if len(arguments) == 2 else NOTHING
    if len(arguments) != 1:
        return NOTHING
    inside = kinds(arguments[0])
    if not inside:
        return NOTHING
    if head in ("largest_one", "smallest_one"):  # of those that are measured
        return kinds(arguments[0].arguments[0]) if arguments[0].head in MEASURES else NOTHING
    if head == "sum":
        return frozenset({NUMBER}) if arguments[0].head in MEASURES else NOTHING
    if head in ("most", "fewest"):
        return _counted_for(arguments[0])
    return NOTHING.union(*(SIGNATURES.get(head, {}).get(kind, NOTHING) for kind in inside))


def _counted_for(form: Form) -> frozenset[str]:
    """Return the states of most(river(loc_2(state(all)))), for which rivers are counted. `form` is river(…),
    well-typed.
    """
    while form.head == "major":
        form = form.arguments[0]
    if form.head not in SETS or form.arguments[0].head not in RELATIONS:
        return NOTHING
    return kinds(form.arguments[0].arguments[0])


def _is_name(form: Form) -> bool:
    """Return whether it is cityid('austin', _) or cityid('austin', 'tx'). All others have one argument."""
    if any(argument.arguments for argument in form.arguments):
        return False
    name, *more = (argument.head for argument in form.arguments)
    quoted = [word.startswith("'") for word in (name, *more)]
    if form.head == "cityid":
        return len(more) == 1 and quoted[0] and (quoted[1] or more[0] == "_")
    return not more and quoted[0]


def is_well_formed(form: Form) -> bool:
    """Return whether it is answer(…), of known predicates and constants with the right numbers of arguments."""
    return form.head == "answer" and len(form.arguments) == 1 and _is_part(form.arguments[0])


def _is_part(form: Form) -> bool:
    if form.head in NAMES:
        return _is_name(form)
    if not form.arguments:
        return form.head == "all" or form.head.isdigit()
    arity = 1 if form.head in ONE_ARGUMENT else 2 if form.head in ("exclude", "intersection") else 0
    return len(form.arguments) == arity and all(map(_is_part, form.arguments))


def is_well_typed(form: Form) -> bool:
    """Return whether it is well-formed and denotes something."""
    return is_well_formed(form) and bool(kinds(form))
