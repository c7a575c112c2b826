"""Automata as text: the format of OpenFst's fstprint and fstcompile, and lines for failures.

    from to symbol [weight]        an arc; fstprint's two symbols (`from to in out [weight]`) must be equal
    state [weight]                 a final state; one that no arc leads to changes nothing
    fail from to [weight]          if `from` has no arc for a word, look it up in `to`; `to` is a state, or
                                   `root`: all other words, as in the prior's static background, and then the
                                   start
    weights probabilities          from here on weights are factors; without it they are −log, as in OpenFst
    # …                            a comment

States have any names without blanks. The first one in an arc or a final state is the start. `<eps>` reads nothing.
Weights are optional: the default is 1, −log 0. A file without weights is a set of strings. Blanks or tabs separate the
fields. Between tabs, an empty symbol reads nothing, as pyfoma writes it. No state begins with `-`: foma and HFST write
`--` between several automata. A file with failures must be deterministic: at most one arc of a state for each symbol.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from fairseq_llrnn.automata.automaton import ROOT, Automaton
from fairseq_llrnn.automata.limits import check_mass
from fairseq_llrnn.automata.nondeterministic import EMPTY, Paths, to_automaton, untrimmed
from fairseq_llrnn.automata.symbols import EMPTY_NAMES, LACKED, Symbols, log_weight
from fairseq_llrnn.automata.trimming import flatten, trim
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_WEIGHT, LEAST_WEIGHT, is_weight
from fairseq_llrnn.files.text_lines import ReadCount, iter_lines, place, shown

ROOT_NAME = "root"


@dataclass
class _Lines:
    """The definitions of the lines so far."""

    symbols: Symbols
    paths: Paths = field(default_factory=lambda: Paths(num_states=0))
    states: dict[str, int] = field(default_factory=dict)
    # state -> failure state and weight; by names, because failures do not define the start
    fail: dict[str, tuple[str, float]] = field(default_factory=dict)
    where: dict[tuple[int, int], int] = field(default_factory=dict)  # (state, symbol) -> the line of the arc
    twice: int = 0  # the first line with a second arc of a state for a symbol, or with an empty arc
    probabilities: bool = False
    some_arc: bool = False  # whether there is a line with an arc, even for an unknown symbol

    def state(self, name: str) -> int:
        state = self.states.setdefault(name, len(self.states))
        self.paths.num_states = len(self.states)
        return state

    def weight(self, text: str, where: str) -> float:
        """Return the log weight of a field."""
        self.paths.weighted = True
        try:
            number = float(text)
        except ValueError:
            raise DataError(f"{where}: expected a number as weight, found {shown(text)}; fix the line") from None
        if self.probabilities:
            if not (math.isfinite(number) and number > 0):
                raise DataError(f"{where}: expected a weight > 0, found {shown(text)}; remove entries without weight")
            if not is_weight(number):
                raise DataError(
                    f"{where}: expected a weight between {LEAST_WEIGHT:g} and {LARGEST_WEIGHT:g}, found {shown(text)}; "
                    "fix the line"
                )
            return math.log(number)
        return log_weight(number, where, shown(text))


def read_text(path: Path | str, symbols: Symbols) -> Automaton:
    """Read the automaton of a text file (module docstring). `symbols` treats words outside the dictionary.

    Raises:
        DataError: with file and line: another kind of line, an unknown symbol, or an invalid weight.
        ValueError: no valid automaton, as `to_automaton`.
    """
    lines = _Lines(symbols)
    two_symbols = _has_two_symbols(path)
    count = ReadCount(path, "lines")
    for number, line in count.lines(lambda line: line.strip() != "" and not line.lstrip().startswith("#")):
        if _read_line(lines, _fields(line), place(path, number), number, two_symbols):
            count.read += 1
        else:
            count.left_out[LACKED] += 1
    symbols.check_known_words()
    if not (lines.some_arc or lines.fail):
        raise DataError(f"{path}: expected lines `from to symbol`, found none; is it the right file?")
    if not lines.fail:
        return to_automaton(lines.paths, len(symbols))
    if lines.twice:
        raise DataError(
            f"{place(path, lines.twice)}: expected a deterministic automaton where states fail, found a second arc on "
            "the same symbol, or an empty one; leave out one of them"
        )
    return _failing(lines, len(symbols))


def _has_two_symbols(path: Path | str) -> bool:
    """Return whether every arc of four fields has its symbol twice, as fstprint writes without --acceptor."""
    rows = (_fields(line) for _, line in iter_lines(path))
    fours = [fields for fields in rows if len(fields) == 4 and fields[0] != "fail"]
    return bool(fours) and all(fields[2] == fields[3] for fields in fours if fields[3])


def _fields(line: str) -> list[str]:
    """Split a line at blanks or tabs. Between tabs, an empty field is the empty symbol, and an empty end is dropped."""
    fields = [cell.strip() for cell in line.split("\t")]
    if "" not in fields or any(len(field.split()) > 1 for field in fields):
        return line.split()
    while len(fields) in (2, 5, 6) and not fields[-1]:
        fields.pop()
    has_two_symbols = len(fields) == 5 or fields[2:] == ["", ""]
    empty = {2, 3} if has_two_symbols else {2} if len(fields) == 4 else set()
    return [field or EMPTY_NAMES[0] if place in empty else field for place, field in enumerate(fields)]


def _check_states(names: Sequence[str], where: str) -> None:
    wrong = next((name for name in names if name.startswith("-") or not name), None)
    if wrong is not None:
        raise DataError(
            f"{where}: expected the name of a state, found {shown(wrong)}; give one automaton, whose states do not "
            "begin with -"
        )


def _read_line(lines: _Lines, fields: list[str], where: str, number: int, two_symbols: bool) -> bool:
    """Read a line. Return False for an arc with a symbol outside the dictionary."""
    if fields[0] == "weights" and len(fields) == 2:
        if fields[1] != "probabilities":
            raise DataError(f"{where}: expected `weights probabilities`, found {shown(' '.join(fields))}")
        lines.probabilities = True
    elif fields[0] == "fail":
        _read_failure(lines, fields, where)
    elif len(fields) <= 2:
        _check_states(fields[:1], where)
        state = lines.state(fields[0])
        if state in lines.paths.finals:
            raise DataError(f"{where}: state {shown(fields[0])} is final already; remove one of the lines")
        lines.paths.finals[state] = lines.weight(fields[1], where) if len(fields) == 2 else 0.0
    elif len(fields) <= 5:
        return _read_arc(lines, fields, where, number, two_symbols)
    else:
        raise DataError(f"{where}: expected `from to symbol [weight]`, found {len(fields)} fields; fix the line")
    return True


def _read_arc(lines: _Lines, fields: list[str], where: str, number: int, two_symbols: bool) -> bool:
    origin, target, name, *more = fields
    _check_states((origin, target), where)
    if not name:
        raise DataError(f"{where}: expected a symbol, found an empty field; write {EMPTY_NAMES[0]}, or remove the tab")
    lines.some_arc = True
    if len(more) == 2 or (len(more) == 1 and two_symbols):
        if more[0] != name:
            raise DataError(
                f"{where}: expected an acceptor, found {shown(name)} on one side and {shown(more[0])} on the other; "
                "project the transducer first (fstproject)"
            )
        more = more[1:]
    weight = lines.weight(more[0], where) if more else 0.0
    begin, end = lines.state(origin), lines.state(target)
    symbol = EMPTY if name in EMPTY_NAMES else lines.symbols.find(name, where)
    if symbol is None:
        return False
    if symbol == EMPTY or (begin, symbol) in lines.where:
        lines.twice = lines.twice or number
    lines.where[begin, symbol] = number
    lines.paths.add(begin, symbol, end, weight)
    return True


def _read_failure(lines: _Lines, fields: list[str], where: str) -> None:
    if len(fields) not in (3, 4):
        raise DataError(f"{where}: expected `fail from to [weight]`, found {len(fields)} fields; fix the line")
    begin, end = fields[1:3]
    _check_states((begin, end), where)
    if begin in lines.fail:
        raise DataError(f"{where}: state {shown(begin)} already fails to another; remove one of the lines")
    lines.fail[begin] = end, lines.weight(fields[3], where) if len(fields) == 4 else 0.0


def _failing(lines: _Lines, num_symbols: int) -> Automaton:
    """Return the automaton of lines with failures. After a word of the root, a chain to the root restarts at
    the start.
    """
    failures = [
        (lines.state(origin), ROOT if target == ROOT_NAME else lines.state(target), weight)
        for origin, (target, weight) in lines.fail.items()
    ]
    automaton = untrimmed(lines.paths, num_symbols)
    fail, back_off = automaton.fail.copy(), automaton.back_off.copy()
    for state, target, weight in failures:
        fail[state], back_off[state] = target, weight
    failing = replace(automaton, fail=fail, back_off=back_off)
    if (failing.chain_end == ROOT).any():
        failing = replace(failing, root_next=np.zeros(num_symbols, dtype=np.int64))
    failing = trim(flatten(failing))
    check_mass(failing)
    return failing
