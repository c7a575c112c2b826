"""Sets of texts as automata over bytes: regular expressions, grammars, words, required terms.

    regex     Python's syntax (`re`), for the whole text, without lookaround, backreferences and \\b
    grammar   our format (automata/grammar_file.py): terminals are words, written with a separator between them
    words     texts of words from a list, with separators between them
    terms     texts that have one of several forms of a term somewhere

All are untrusted: `Meter` counts states, time and memory (lifting.py). Bytes that no set of bytes in an expression
tells apart are one symbol, so that `.` costs a few arcs.
"""

from __future__ import annotations

import json
import re
import re._constants as kinds  # type: ignore[import-not-found]  # Python's own parser of regular expressions
import re._parser as python_regex  # type: ignore[import-not-found]
from _sre import unicode_tolower  # type: ignore[import-not-found]
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from re._casefix import _EXTRA_CASES  # type: ignore[import-not-found]
from typing import Any

import numpy as np

from fairseq_llrnn.automata.grammar import grammar_automaton
from fairseq_llrnn.automata.grammar_file import ARROW, parse_grammar
from fairseq_llrnn.automata.nondeterministic import EMPTY as NOTHING_READ
from fairseq_llrnn.automata.nondeterministic import Paths, to_automaton
from fairseq_llrnn.automata.regular import Choice, Node, Repeat, Words, add_arcs, num_arcs
from fairseq_llrnn.automata.regular import Sequence as Concatenation
from fairseq_llrnn.automata.symbols import Symbols
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.files.text_lines import shown
from fairseq_llrnn.huggingface.lifting import BYTES, BYTES_PER_STEP, FIRST, ByteAutomaton, Meter

CharacterSet = tuple[tuple[int, int], ...]  # ranges of code points, both ends included, rising
ByteRanges = tuple[tuple[int, int], ...]  # of the first, second, … byte of a character
LAST, LAST_WITH_CASE = 0x10FFFF, 0x1FFFF
SURROGATES = 0xD800, 0xDFFF
NEWLINE = ((10, 10),)
ANY_BYTE = Words(tuple(range(BYTES)))
EMPTY = Concatenation(())


# ---- expressions over bytes -----------------------------------------------------------------------------------------


def byte_automaton(node: Node, meter: Meter) -> ByteAutomaton:
    """The automaton of an expression whose symbols are bytes.

    Raises:
        LimitError: more states, time or memory than the meter allows. DataError: it has no string.
    """
    class_of = _classes(node)
    paths = Paths()
    try:
        by_class = _over_classes(node, class_of, {})
        meter.check_memory(BYTES_PER_STEP * num_arcs(by_class))
        paths.finals[add_arcs(by_class, paths, 0)] = 0.0
        _drop_passages(paths)
    except RecursionError:
        raise DataError(f"{meter.name}: expected fewer groups inside each other; write it with fewer of them") from None
    return _determinized(paths, class_of, meter)


def _determinized(paths: Paths, class_of: np.ndarray, meter: Meter) -> ByteAutomaton:
    try:
        automaton = to_automaton(paths, FIRST + int(class_of.max(initial=0)) + 1, meter)
    except ValueError as error:
        raise DataError(f"{meter.name}: {error}") from None
    return ByteAutomaton.from_automaton(automaton, class_of, meter)


def _drop_passages(paths: Paths) -> None:
    """Lead arcs past states that only go on to one other state, so that fewer sets of states differ."""
    going_on: dict[int, list[tuple[int, int]]] = {}
    for origin, symbol, target, _ in paths.arcs:
        going_on.setdefault(origin, []).append((symbol, target))
    passages = {
        state: arcs[0][1]
        for state, arcs in going_on.items()
        if state != 0 and len(arcs) == 1 and arcs[0][0] == NOTHING_READ and state not in paths.finals
    }

    def behind(state: int) -> int:
        seen = set()
        while state in passages and state not in seen:
            seen.add(state)
            state = passages[state]
        return state

    paths.arcs = [
        (origin, symbol, behind(target), weight)
        for origin, symbol, target, weight in paths.arcs
        if origin not in passages
    ]


def _classes(node: Node) -> np.ndarray:
    """The class of each byte, (256,): bytes that every set of the expression has or has not. −1 for none."""
    sets: dict[tuple[int, ...], None] = {}
    waiting, seen = [node], set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Words):
            sets[part.symbols] = None
        else:
            waiting += [part.part] if isinstance(part, Repeat) else part.parts
    codes, used = np.zeros(BYTES, dtype=np.int64), np.zeros(BYTES, dtype=bool)
    for symbols in sets:
        member = np.zeros(BYTES, dtype=np.int64)
        member[list(symbols)] = 1
        used |= member > 0
        codes = np.unique(2 * codes + member, return_inverse=True)[1]
    class_of = np.full(BYTES, -1, dtype=np.int64)
    class_of[used] = np.unique(codes[used], return_inverse=True)[1]
    return class_of


def _over_classes(node: Node, class_of: np.ndarray, memo: dict[int, Node]) -> Node:
    found = memo.get(id(node))
    if found is None:
        if isinstance(node, Words):
            found = Words(tuple((FIRST + np.unique(class_of[list(node.symbols)])).tolist()))
        elif isinstance(node, Repeat):
            found = Repeat(_over_classes(node.part, class_of, memo), node.least, node.most, node.name)
        else:
            found = type(node)(tuple(_over_classes(part, class_of, memo) for part in node.parts))
        memo[id(node)] = found
    return found


def literal(text: bytes) -> Node:
    """The text itself."""
    return Concatenation(tuple(Words((byte,)) for byte in text))


# ---- characters -----------------------------------------------------------------------------------------------------


@cache
def characters(ranges: CharacterSet) -> Node:
    """One character of a set, in UTF-8."""
    return _ending_alike([sequence for low, high in ranges for sequence in _byte_ranges(low, high)])


def _ending_alike(sequences: Iterable[ByteRanges]) -> Node:
    """Any of the sequences of ranges of bytes. Those with the same last bytes share these."""
    lasts: dict[ByteRanges, set[int]] = {}  # by what comes before
    for *before, (low, high) in sequences:
        lasts.setdefault(tuple(before), set()).update(range(low, high + 1))
    alike: dict[tuple[int, ...], list[ByteRanges]] = {}
    for before_last, last in lasts.items():
        alike.setdefault(tuple(sorted(last)), []).append(before_last)
    parts: list[Node] = []
    for symbols, befores in alike.items():
        if () in befores:
            parts.append(Words(symbols))
        longer = [before for before in befores if before]
        if longer:
            parts.append(Concatenation((_ending_alike(longer), Words(symbols))))
    return parts[0] if len(parts) == 1 else Choice(tuple(parts))


def _byte_ranges(low: int, high: int) -> Iterator[ByteRanges]:
    """The UTF-8 of a range of characters, as sequences of ranges of bytes."""
    for first, last in ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, LAST)):
        if max(low, first) <= min(high, last):
            yield from _same_length(max(low, first), min(high, last))


def _same_length(low: int, high: int) -> Iterator[ByteRanges]:
    length = len(chr(low).encode())
    for bits in (6 * at for at in range(1, length)):
        mask = (1 << bits) - 1
        if low & ~mask != high & ~mask:
            if low & mask:
                yield from _same_length(low, low | mask)
                yield from _same_length((low | mask) + 1, high)
                return
            if high & mask != mask:
                yield from _same_length(low, (high & ~mask) - 1)
                yield from _same_length(high & ~mask, high)
                return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))


def _merged(ranges: Iterable[tuple[int, int]]) -> CharacterSet:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def _complement(ranges: CharacterSet) -> CharacterSet:
    bounds = [-1, *(bound for low, high in ranges for bound in (low, high)), LAST + 1]
    pairs = zip(bounds[::2], bounds[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in pairs if low + 1 <= high - 1)


@cache
def _category(pattern: str, flags: int) -> CharacterSet:
    """The characters of \\d, \\w, …"""
    every = "".join(map(chr, range(SURROGATES[0]))) + "".join(map(chr, range(SURROGATES[1] + 1, LAST + 1)))
    runs = (match.group() for match in re.finditer(f"{pattern}+", every, flags))
    return _merged((ord(run[0]), ord(run[-1])) for run in runs)


@cache
def _cases() -> list[list[int]]:
    """Return the sets of characters that Python's re takes for the same if case is ignored."""
    cases: dict[int, list[int]] = {}
    for number in range(LAST_WITH_CASE + 1):
        lower = unicode_tolower(number)
        cases.setdefault(min(lower, *_EXTRA_CASES.get(lower, (lower,))), []).append(number)
    return [numbers for numbers in cases.values() if len(numbers) > 1]


@cache
def with_cases(ranges: CharacterSet) -> CharacterSet:
    """Return a set with the other cases of its characters."""
    lows = [low for low, _ in ranges]

    def has(number: int) -> bool:
        at = bisect_right(lows, number) - 1
        return at >= 0 and number <= ranges[at][1]

    others = (numbers for numbers in _cases() if any(map(has, numbers)))
    return _merged([*ranges, *((number, number) for numbers in others for number in numbers)])


# ---- regular expressions --------------------------------------------------------------------------------------------

CATEGORIES = {
    kinds.CATEGORY_DIGIT: r"\d", kinds.CATEGORY_NOT_DIGIT: r"\D", kinds.CATEGORY_SPACE: r"\s",
    kinds.CATEGORY_NOT_SPACE: r"\S", kinds.CATEGORY_WORD: r"\w", kinds.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT)
STARTS = (kinds.AT_BEGINNING, kinds.AT_BEGINNING_STRING)
ENDS = (kinds.AT_END, kinds.AT_END_STRING)
NOT_IN_JSON_STRINGS = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C))  # control characters, " and \
JSON_ESCAPES = {ord(json.loads(f'"\\{letter}"')): f"\\{letter}".encode() for letter in '"\\bfnrt'}


def regex_automaton(pattern: str, meter: Meter, has_json_strings: bool = False) -> ByteAutomaton:
    """The texts that a regular expression matches as a whole.

    Args:
        has_json_strings: a group with the flag `m` is the inside of a JSON string: it matches the values of strings.

    Raises:
        DataError: it is none, or has what is not supported. LimitError: it costs too much.
    """
    meter.check_memory(BYTES_PER_STEP * len(pattern))  # before Python parses it
    try:
        node = parse_regex(pattern, shown(pattern), meter.name, has_json_strings)
    except (re.error, OverflowError) as error:
        raise DataError(
            f"{meter.name}: expected a regular expression in Python's syntax, found {error}; fix it"
        ) from None
    except RecursionError:
        raise DataError(f"{meter.name}: expected fewer groups inside each other; write it with fewer of them") from None
    meter.check_time()
    return byte_automaton(node, meter)


def parse_regex(pattern: str, found: str, name: str, has_json_strings: bool) -> Node:
    """Return a regular expression over bytes.

    Args:
        found: the expression in a message.

    Raises:
        DataError: it has what is not supported. re.error, OverflowError, RecursionError: Python cannot parse it.
    """
    parsed = python_regex.parse(pattern)
    return _Regex(found, name, has_json_strings).sequence(parsed, parsed.state.flags)


class _Regex:
    """From Python's parsed expressions to nodes."""

    def __init__(self, found: str, name: str, has_json_strings: bool) -> None:
        self.found, self.name = found, name
        self.in_json_string = re.MULTILINE if has_json_strings else re.RegexFlag(0)

    def sequence(self, items: Any, flags: int, outer: bool = True) -> Node:
        parts: list[Node] = []
        last = len(items) - 1
        for at, (kind, value) in enumerate(items):
            if kind == kinds.AT and outer and ((at == 0 and value in STARTS) or (at == last and value in ENDS)):
                continue
            parts.append(self.node(kind, value, flags))
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def node(self, kind: Any, value: Any, flags: int) -> Node:
        if kind == kinds.LITERAL:
            return self.character(self.cased(((value, value),), flags), flags)
        if kind == kinds.NOT_LITERAL:
            return self.character(_complement(self.cased(((value, value),), flags)), flags)
        if kind == kinds.ANY:
            return self.character(((0, LAST),) if flags & re.DOTALL else _complement(NEWLINE), flags)
        if kind == kinds.IN:
            return self.listed(value, flags)
        if kind == kinds.BRANCH:
            return Choice(tuple(self.sequence(branch, flags, outer=False) for branch in value[1]))
        if kind == kinds.SUBPATTERN:
            _, more, fewer, inner = value
            return self.sequence(inner, (flags | more) & ~(fewer & ~self.in_json_string), outer=False)
        if kind in REPEATS:
            least, most, inner = value
            unlimited = most == kinds.MAXREPEAT
            name = f"{{{least},{'' if unlimited else most}}}"
            return Repeat(self.sequence(inner, flags, outer=False), least, None if unlimited else most, name)
        what = {kinds.AT: "anchors inside the expression and \\b", kinds.GROUPREF: "backreferences"}
        raise self.unsupported(what.get(kind, "lookaround, conditions, and atomic or possessive parts"))

    def listed(self, items: Any, flags: int) -> Node:
        ranges: list[tuple[int, int]] = []
        negated = False
        for kind, value in items:
            if kind == kinds.NEGATE:
                negated = True
            elif kind == kinds.LITERAL:
                ranges.append((value, value))
            elif kind == kinds.RANGE:
                ranges.append(value)
            else:
                ranges += _category(CATEGORIES[value], flags & re.ASCII)
        found = self.cased(_merged(ranges), flags)
        return self.character(_complement(found) if negated else found, flags)

    def character(self, ranges: CharacterSet, flags: int) -> Node:
        """One character of a set, as JSON writes it if it is in a JSON string."""
        if not flags & self.in_json_string:
            return characters(ranges)
        escaped = [writing for code, writing in JSON_ESCAPES.items() if any(a <= code <= b for a, b in ranges)]
        plain = _complement(_merged([*_complement(ranges), *NOT_IN_JSON_STRINGS]))
        return Choice((*([characters(plain)] if plain else []), *map(literal, escaped)))

    def cased(self, ranges: CharacterSet, flags: int) -> CharacterSet:
        """With the other cases of each character, where case is ignored."""
        return with_cases(ranges) if flags & re.IGNORECASE else ranges

    def unsupported(self, what: str) -> DataError:
        return DataError(
            f"{self.name}: expected an expression without {what}, found {self.found}; write it without them"
        )


# ---- grammars, words and terms --------------------------------------------------------------------------------------


class _Terminals(Symbols):
    """The words of a grammar, numbered as they are met."""

    def __init__(self) -> None:
        self.texts = list(SPECIALS)
        self.numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.texts)

    def find(self, name: str, where: str) -> int | None:
        if name not in self.numbers:
            self.numbers[name] = len(self.texts)
            self.texts.append(name)
        return self.numbers[name]

    def check_known_words(self) -> None:
        """All are known."""


def is_our_grammar(text: str) -> bool:
    """Whether a grammar is in our format, and not in Lark's."""
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "//")))
    first = next((line for line in lines if not line.startswith("%")), "")
    return ARROW.match(first) is not None


def grammar_bytes(text: str, separator: str, name: str, meter: Meter) -> ByteAutomaton:
    """The texts of a grammar in our format, with the separator between words.

    Raises:
        DataError: a bad rule. LimitError: it costs too much.
    """
    words = _Terminals()
    grammar = parse_grammar(name, words, text.splitlines())
    try:
        automaton = grammar_automaton(grammar, len(words), meter)
    except ValueError as error:
        raise DataError(f"{name}: {error}") from None
    meter.check_states(automaton.num_states)
    class_of = np.arange(BYTES)
    paths = Paths(num_states=automaton.num_states, weighted=grammar.weighted)
    # the weight of a word is that of its first byte
    for state in range(automaton.num_states):
        for symbol, (weight, target) in automaton.row(state).items():
            if symbol == 2:
                paths.finals[state] = weight
                continue
            written = (words.texts[symbol] if state == 0 else separator + words.texts[symbol]).encode()
            here = state
            for at, byte in enumerate(written):
                there = target if at == len(written) - 1 else paths.new_state()
                paths.add(here, FIRST + byte, there, weight if at == 0 else 0.0)
                here = there
            meter.spend(len(written))
    return _determinized(paths, class_of, meter)


def words_automaton(words: Sequence[str], separators: Sequence[str], meter: Meter) -> ByteAutomaton:
    """Texts of words with separators between them. Without separators, one of the words.

    Raises:
        DataError: no words, or an empty one. LimitError: they cost too much.
    """
    if isinstance(words, str):
        raise DataError(f"{meter.name}: expected a list of words, found the text {words!r:.60}; put it into a list")
    if not words or "" in words:
        raise DataError(f"{meter.name}: expected words, found {'an empty one' if words else 'none'}; give at least one")
    word = Choice(tuple(literal(each.encode()) for each in dict.fromkeys(words)))
    if not separators:
        return byte_automaton(word, meter)
    between = Choice(tuple(literal(each.encode()) for each in separators))
    return byte_automaton(Concatenation((word, Repeat(Concatenation((between, word)), 0, None, "words"))), meter)


def term_automaton(forms: Sequence[str], meter: Meter) -> ByteAutomaton:
    """Texts that hold one of the forms, as words of their own.

    A form that begins or ends with a letter or digit has none of ASCII's and no other letter beside it there, unless
    its script writes no spaces (Thai, Chinese, …).
    """
    inside = Words(tuple(byte for byte in range(BYTES) if byte >= 0x80 or chr(byte).isalnum()))
    outside = Words(tuple(sorted({*range(BYTES)} - {*inside.symbols})))
    anything = Repeat(ANY_BYTE, 0, None, "any bytes")
    apart_before, apart_after = (
        Choice((EMPTY, Concatenation((anything, outside)))),
        Choice((EMPTY, Concatenation((outside, anything)))),
    )
    ways = []
    for form in forms:
        before, after = (
            apart if _is_spaced(char) else anything
            for apart, char in ((apart_before, form[0]), (apart_after, form[-1]))
        )
        ways.append(Concatenation((before, literal(form.encode()), after)))
    return byte_automaton(Choice(tuple(ways)), meter)


def _is_spaced(character: str) -> bool:
    return character.isalnum() and ord(character) < 0x0E00
