"""Files of grammars, and bounds of the depth and length of each nonterminal's trees.

    # comments
    %depth 8                        at most 8 nonterminals on a path of the tree, the first one included
    %length 30                      at most 30 words
    S -> "a" X "b" | Y              a rule; the first one's left side is the start
    X -> 'x' [0.7] | [0.3]          weights, for all rules or none; an alternative may be empty
       | "several words"            a line that continues the rule above

grammar.py has the weights of strings, and builds the automaton.

The bounds are computed before an automaton is built. Each function visits each rule a few times, for any dependencies
between rules.
"""

from __future__ import annotations

import heapq
import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from fairseq_llrnn.automata.symbols import LACKED, Symbols
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_WEIGHT, LEAST_WEIGHT, is_weight
from fairseq_llrnn.files.text_lines import ReadCount, iter_lines, place, shown

NO_LIMIT = sys.maxsize

Item = int | str  # a symbol of the dictionary, or a nonterminal
Items = tuple[Item, ...]
Rules = Mapping[str, Sequence[Items]]  # the alternatives of each nonterminal


def names_in(items: Items) -> set[str]:
    """Return the nonterminals of an alternative."""
    return {item for item in items if isinstance(item, str)}


def least_words(rules: Rules) -> dict[str, int]:
    """Return the number of words of each nonterminal's shortest string, or NO_LIMIT if it has none."""
    return _least(rules, lambda items, values: sum(1 if isinstance(item, int) else values[item] for item in items))


def least_depth(rules: Rules) -> dict[str, int]:
    """Return the depth of each nonterminal's flattest tree, or NO_LIMIT if it has none."""
    return _least(rules, lambda items, values: 1 + max((values[name] for name in names_in(items)), default=0))


def _least(rules: Rules, measure: Callable[[Items, Mapping[str, int]], int]) -> dict[str, int]:
    """Return the least value over trees, for a measure that is at least that of every part.

    Knuth 1977, "A Generalization of Dijkstra's Algorithm".
    """
    values = dict.fromkeys(rules, NO_LIMIT)
    uses: dict[str, list[tuple[str, Items]]] = defaultdict(list)
    missing: dict[tuple[str, Items], int] = {}
    queue: list[tuple[int, str]] = []
    for name, alternatives in rules.items():
        for items in set(alternatives):
            inner = names_in(items)
            missing[name, items] = len(inner)
            for name_inside in inner:
                uses[name_inside].append((name, items))
            if not inner:
                queue.append((measure(items, values), name))
    heapq.heapify(queue)
    while queue:
        value, name = heapq.heappop(queue)
        if values[name] < NO_LIMIT:
            continue
        values[name] = min(value, NO_LIMIT - 1)
        for use in uses[name]:
            missing[use] -= 1
            if missing[use] == 0 and values[use[0]] == NO_LIMIT:
                heapq.heappush(queue, (measure(use[1], values), use[0]))
    return values


def most(rules: Rules) -> tuple[dict[str, int], dict[str, int]]:
    """Return the greatest depth and number of words of each nonterminal's trees, or NO_LIMIT if it nests."""
    depth, words = dict.fromkeys(rules, NO_LIMIT), dict.fromkeys(rules, NO_LIMIT)
    inner = {name: set[str]().union(*map(names_in, alternatives)) for name, alternatives in rules.items()}
    order = TopologicalSorter(inner)
    with suppress(CycleError):  # nonterminals that nest, or contain nesting ones, never get ready
        order.prepare()
    while ready := order.get_ready():
        for name in ready:
            depth[name] = 1 + max((depth[part] for part in inner[name]), default=0)
            lengths = (sum(1 if isinstance(i, int) else words[i] for i in items) for items in rules[name])
            words[name] = min(max(lengths, default=0), NO_LIMIT)
        order.done(*ready)
    return depth, words


def derives_itself(rules: Rules, shortest: Mapping[str, int]) -> str | None:
    """Return a nonterminal that derives itself without another word, and so has infinitely many trees, or None if
    none does.
    """
    after = {name: [part for items in ways for part in _alone(items, shortest)] for name, ways in rules.items()}
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        return str(error.args[1][0])
    return None


def _alone(items: Items, shortest: Mapping[str, int]) -> list[str]:
    """Return the nonterminals of an alternative that remain if all its other parts are empty."""
    full = [item for item in items if isinstance(item, int) or shortest[item] > 0]
    candidates = items if not full else full if len(full) == 1 else ()
    return [item for item in candidates if isinstance(item, str)]


PIECE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|(\|)|\[\s*([^\]]*?)\s*\]|([^\s"'|\[\]]+))""")
ARROW = re.compile(r"\s*([^\s\"'|\[\]]+)\s*(?:->|→)")
BOUND = re.compile(r"%(depth|length)\s+(\d{1,6})")


@dataclass(frozen=True)
class Alternative:
    """One way to write a nonterminal."""

    items: tuple[Item, ...]
    log_weight: float = 0.0


@dataclass
class Grammar:
    """Rules over symbols of the dictionary, and the bounds."""

    start: str
    rules: dict[str, list[Alternative]] = field(default_factory=dict)
    depth: int | None = None
    length: int | None = None
    weighted: bool = False
    lines: dict[str, int] = field(default_factory=dict)  # line of each nonterminal's first rule


def parse_grammar(path: Path | str, symbols: Symbols, lines: Iterable[str] | None = None) -> Grammar:
    """Read the rules of a grammar file, or of `lines`, with `path` for errors. Raises DataError."""
    grammar, left = Grammar(""), ""
    used: dict[str, str] = {}  # nonterminal -> place of its first use
    plain = 0  # alternatives without weights
    count = ReadCount(path, "alternatives")
    for number, line in iter_lines(path) if lines is None else enumerate(lines, 1):
        text, where = line.strip(), place(path, number)
        if not text or text.startswith("#"):
            continue
        if text.startswith("%"):
            _read_bound(grammar, text, where)
            continue
        arrow = ARROW.match(line)
        if arrow is not None:
            left, right = arrow.group(1), line[arrow.end() :]
            grammar.start = grammar.start or left
        elif left and text.startswith("|"):
            right = text[1:]
        else:
            raise DataError(f"{where}: expected `X -> …`, found {shown(text)}; fix the line")
        rules = grammar.rules.setdefault(left, [])
        grammar.lines.setdefault(left, number)
        for names, weight in _alternatives(right, where):
            items = _items(names, symbols, where, used)
            grammar.weighted |= weight is not None
            plain += weight is None
            count.entries += 1
            if items is None:
                count.left_out[LACKED] += 1
            else:
                count.read += 1
                rules.append(Alternative(items, math.log(1.0 if weight is None else weight)))
    symbols.check_known_words()
    count.done()
    if not grammar.rules:
        raise DataError(f"{path}: expected rules `X -> …`, found none; is it the right file?")
    for name, where in used.items():
        if name not in grammar.rules:
            raise DataError(f"{where}: {shown(name)} has no rule; add one, or put quotes around it if it is a word")
    if grammar.weighted and plain:
        raise DataError(f"{path}: expected a weight [w] after every alternative, or none, found {plain:,} without one")
    return grammar


def _read_bound(grammar: Grammar, text: str, where: str) -> None:
    match = BOUND.fullmatch(text)
    if match is None or int(match.group(2)) == 0:
        raise DataError(f"{where}: expected `%depth N` or `%length N` with N ≥ 1, found {shown(text)}; fix the line")
    setattr(grammar, match.group(1), int(match.group(2)))


def _alternatives(text: str, where: str) -> Iterator[tuple[list[tuple[str, bool]], float | None]]:
    """Yield each alternative: names and whether they are words, and the weight."""
    items: list[tuple[str, bool]] = []
    weight: float | None = None
    at = 0
    while at < len(text.rstrip()):
        piece = PIECE.match(text, at)
        if piece is None:
            raise DataError(f"{where}: expected words in quotes, names and |, found {shown(text[at:].strip())}")
        at = piece.end()
        double, single, bar, number, name = piece.groups()
        if bar:
            yield items, weight
            items, weight = [], None
        elif weight is not None:
            raise DataError(
                f"{where}: expected nothing after the weight of an alternative, found {shown(piece.group().strip())}"
            )
        elif number is not None:
            weight = _weight(number, where)
        elif name is not None:
            items.append((name, False))
        else:
            items.extend((word, True) for word in (double if double is not None else single).split())
    yield items, weight


def _weight(text: str, where: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not is_weight(weight):
        expected = "a weight > 0 in brackets"
        if 0 < weight < math.inf:
            expected += f", from {LEAST_WEIGHT:g} to {LARGEST_WEIGHT:g}"
        raise DataError(f"{where}: expected {expected}, found {shown(text)}; fix the line")
    return weight


def _items(
    names: list[tuple[str, bool]], symbols: Symbols, where: str, used: dict[str, str]
) -> tuple[Item, ...] | None:
    """Return symbols and nonterminals, or None if a symbol is unknown, so that the alternative is dropped."""
    items: list[Item | None] = []
    for name, is_word in names:
        if is_word:
            items.append(symbols.find(name, where))
        else:
            used.setdefault(name, where)
            items.append(name)
    known = tuple(item for item in items if item is not None)
    return known if len(known) == len(items) else None
