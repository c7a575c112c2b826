"""Python's regular expressions (`re`) as trees over sets of characters.

`re.compile` checks the syntax. Without lookaround, backreferences, `\\b`, conditions, and atomic or possessive parts,
an expression is a tree of characters, sequences, choices and repetitions. `byte_node` writes it over bytes of UTF-8,
`rust_regex` in the syntax of Rust, with explicit sets, for llguidance, and `shortest_text` is a text that it matches.
"""

from __future__ import annotations

import re
import string
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from fairseq_llrnn.automata.regular import Choice, Node, Repeat, Tree, Words, with_leaves
from fairseq_llrnn.automata.regular import Sequence as Concatenation
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import shown

CharacterSet = tuple[tuple[int, int], ...]  # ranges of code points, both ends included, rising
ByteRanges = tuple[tuple[int, int], ...]  # of the first, second, … byte of a character
LAST, LAST_WITH_CASE = 0x10FFFF, 0x1FFFF
SURROGATES = 0xD800, 0xDFFF
NEWLINE = ((10, 10),)
FLAGS = {
    "a": re.ASCII, "i": re.IGNORECASE, "L": re.LOCALE, "m": re.MULTILINE, "s": re.DOTALL, "u": re.UNICODE,
    "x": re.VERBOSE,
}  # fmt: skip
CONTROLS = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
NUMBERED = re.compile(r"x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}")
NAMED = re.compile(r"N\{([^}]*)\}")
OCTAL, OCTAL_IN_SET = re.compile(r"0[0-7]{0,2}|[0-3][0-7]{2}"), re.compile(r"[0-7]{1,3}")
TIMES = re.compile(r"\{(\d*)(,?)(\d*)\}")
POSTFIX = {"?": (0, 1), "*": (0, None), "+": (1, None)}
GROUP = re.compile(r"\?(?:P<\w+>|(?P<flags>[aiLmsux]*(?:-[imsx]+)?)(?P<end>[:)])|#[^)]*\))")
SPACES = " \t\n\r\v\f"
SIMPLE = string.ascii_letters + string.digits + string.punctuation


@dataclass(frozen=True)
class Characters:
    """One character of a set."""

    ranges: CharacterSet


Expression = Tree[Characters]


def parse_regex(pattern: str, name: str) -> Expression:
    """Return the tree of a regular expression that matches a whole text.

    Raises:
        DataError: it is none, or has what is not supported.
    """
    try:
        flags = re.compile(pattern).flags
        return _Parser(pattern, name).whole(re.RegexFlag(flags))
    except (re.error, OverflowError) as error:
        raise DataError(f"{name}: expected a regular expression in Python's syntax, found {error}; fix it") from None
    except RecursionError:
        raise DataError(f"{name}: expected fewer groups inside each other; write it with fewer of them") from None


class _Parser:
    """Of an expression that Python has compiled, so that its syntax is right."""

    def __init__(self, pattern: str, name: str) -> None:
        self.pattern, self.name = pattern, name
        self.at, self.depth = 0, 0  # groups

    def whole(self, flags: re.RegexFlag) -> Expression:
        while (group := GROUP.match(self.pattern, self.at + 1)) and self._rest().startswith("(?"):
            if group["flags"] is None or group["end"] != ")":
                break
            self.at = group.end()  # (?i) at the beginning
        return self._choice(flags)

    def _rest(self) -> str:
        return self.pattern[self.at : self.at + 2]

    def _next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _take(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def _choice(self, flags: re.RegexFlag) -> Expression:
        parts = [self._series(flags)]
        while self._take("|"):
            parts.append(self._series(flags))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _series(self, flags: re.RegexFlag) -> Expression:
        parts: list[Expression] = []
        while self._skip(flags) not in ("", "|", ")"):
            if not self._anchor(flags, is_first=not parts):
                parts.append(self._repeated(self._one(flags), flags))
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _skip(self, flags: re.RegexFlag) -> str:
        """Skip comments and blanks, and return the next sign."""
        while self._next():
            if flags & re.VERBOSE and self._next() in SPACES:
                self.at += 1
            elif flags & re.VERBOSE and self._next() == "#":
                end = self.pattern.find("\n", self.at)
                self.at = len(self.pattern) if end < 0 else end + 1
            elif self.pattern.startswith("(?#", self.at):
                self.at = self.pattern.index(")", self.at) + 1
            else:
                break
        return self._next()

    def _anchor(self, flags: re.RegexFlag, is_first: bool) -> bool:
        """Skip an anchor where a match of the whole text begins or ends."""
        if not (self._next() in ("^", "$") or self._rest() in (r"\A", r"\Z", r"\b", r"\B")):
            return False
        text = self._rest() if self._next() == "\\" else self._next()
        self.at += len(text)
        is_start = is_first and text in ("^", r"\A")
        is_end = self._skip(flags) in ("", "|") and text in ("$", r"\Z")
        if self.depth > 0 or not (is_start or is_end):
            raise self._unsupported("anchors inside the expression and \\b")
        return True

    def _one(self, flags: re.RegexFlag) -> Expression:
        sign = self._next()
        if sign == "(":
            return self._group(flags)
        self.at += 1
        if sign == "[":
            return self._set(flags)
        if sign == ".":
            return Characters(((0, LAST),) if flags & re.DOTALL else complement(NEWLINE))
        is_escape = sign == "\\"
        return Characters(self._escape(flags, in_set=False) if is_escape else self._cased(ord(sign), ord(sign), flags))

    def _group(self, flags: re.RegexFlag) -> Expression:
        self.at += 1
        if self._next() == "?":
            opening = GROUP.match(self.pattern, self.at)
            if opening is None:
                named = self.pattern.startswith("?P=", self.at)
                raise self._unsupported(
                    "backreferences" if named else "lookaround, conditions, and atomic or possessive parts"
                )
            self.at = opening.end()
            more, _, fewer = (opening["flags"] or "").partition("-")
            for letter in more:
                if letter in "au":
                    flags &= ~(re.ASCII | re.UNICODE)
                flags |= FLAGS[letter]
            for letter in fewer:
                flags &= ~FLAGS[letter]
        self.depth += 1
        found = self._choice(flags)
        self.depth -= 1
        self.at += 1  # )
        return found

    def _repeated(self, part: Expression, flags: re.RegexFlag) -> Expression:
        while True:
            self._skip(flags)
            times = TIMES.match(self.pattern, self.at)
            if self._next() in POSTFIX and self._next():
                least, most = POSTFIX[self._next()]
                self.at += 1
            elif times is not None and times.group() not in ("{}", "{,}") or times is not None and times[2]:
                least, most = int(times[1] or 0), int(times[3]) if times[3] else None if times[2] else int(times[1])
                self.at = times.end()
            else:
                return part
            if self._next() == "+":
                raise self._unsupported("lookaround, conditions, and atomic or possessive parts")
            self._take("?")  # lazy repetitions match the same texts
            part = Repeat(part, least, most, f"{{{least},{'' if most is None else most}}}")

    def _set(self, flags: re.RegexFlag) -> Expression:
        is_negated, is_first = self._take("^"), True
        ranges: list[tuple[int, int]] = []
        without_case = flags & ~re.IGNORECASE
        while is_first or self._next() != "]":
            is_first, begin = False, self.at
            member = self._member(without_case)
            if self._next() == "-" and self._rest() != "-]":
                self.at += 1
                member = self._cased(member[0][0], self._member(without_case)[0][0], flags)
            else:
                self.at = begin
                member = self._member(flags)
            ranges += member
        self.at += 1
        found = merged(ranges)
        return Characters(complement(found) if is_negated else found)

    def _member(self, flags: re.RegexFlag) -> CharacterSet:
        sign = self._next()
        self.at += 1
        return self._escape(flags, in_set=True) if sign == "\\" else self._cased(ord(sign), ord(sign), flags)

    def _cased(self, low: int, high: int, flags: re.RegexFlag) -> CharacterSet:
        """A range, with other cases if case is ignored."""
        if not flags & re.IGNORECASE:
            return ((low, high),)
        if not flags & re.ASCII:
            return with_cases(((low, high),))
        letters = [ord(chr(number).swapcase()) for number in range(low, min(high, 127) + 1) if chr(number).isalpha()]
        return merged([(low, high), *((letter, letter) for letter in letters)])

    def _escape(self, flags: re.RegexFlag, in_set: bool) -> CharacterSet:
        letter = self._next()
        if letter in "dDsSwW":
            self.at += 1
            return category(f"\\{letter}", int(flags & re.ASCII))
        number = None
        if found := NUMBERED.match(self.pattern, self.at):
            number = int(found.group()[1:], 16)
        elif found := NAMED.match(self.pattern, self.at):
            number = ord(unicodedata.lookup(found[1]))
        elif found := (OCTAL_IN_SET if in_set else OCTAL).match(self.pattern, self.at):
            number = int(found.group(), 8)
        elif letter.isdigit():
            raise self._unsupported("backreferences")
        if found is not None and number is not None:
            self.at = found.end()
        else:
            number = CONTROLS.get(letter, ord(letter))
            self.at += 1
        return self._cased(number, number, flags)

    def _unsupported(self, what: str) -> DataError:
        return DataError(
            f"{self.name}: expected an expression without {what}, found {shown(self.pattern)}; write it without them"
        )


# ---- sets of characters ---------------------------------------------------------------------------------------------


def merged(ranges: Iterable[tuple[int, int]]) -> CharacterSet:
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return tuple(found)


def complement(ranges: CharacterSet) -> CharacterSet:
    bounds = [-1, *(bound for low, high in ranges for bound in (low, high)), LAST + 1]
    pairs = zip(bounds[::2], bounds[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in pairs if low + 1 <= high - 1)


@cache
def category(pattern: str, flags: int) -> CharacterSet:
    """The characters of \\d, \\w, …"""
    every = "".join(map(chr, range(SURROGATES[0]))) + "".join(map(chr, range(SURROGATES[1] + 1, LAST + 1)))
    runs = (match.group() for match in re.finditer(f"{pattern}+", every, flags))
    return merged((ord(run[0]), ord(run[-1])) for run in runs)


@cache
def _cases() -> list[list[int]]:
    """Return the sets of characters that Python's re takes for the same if case is ignored."""
    by_form: dict[str, set[int]] = {}
    for number in range(LAST_WITH_CASE + 1):
        character = chr(number)
        forms = {character.lower(), character.upper(), character.casefold()}
        if forms != {character}:
            for form in {character, *forms, *(form[0] for form in forms)}:
                by_form.setdefault(form, set()).add(number)
    related: dict[int, set[int]] = {}
    for form, numbers in by_form.items():
        alike = numbers | ({ord(form)} if len(form) == 1 else set())
        whole = alike.union(*(related.get(number, ()) for number in alike))
        related.update(dict.fromkeys(whole, whole))
    found: dict[tuple[int, ...], None] = {}
    for number, others in related.items():
        pattern = re.compile(re.escape(chr(number)), re.IGNORECASE)
        found[tuple(sorted(each for each in others if pattern.fullmatch(chr(each))))] = None
    return [[*numbers] for numbers in found if len(numbers) > 1]


@cache
def with_cases(ranges: CharacterSet) -> CharacterSet:
    """Return a set with the other cases of its characters."""
    lows = [low for low, _ in ranges]

    def has(number: int) -> bool:
        at = bisect_right(lows, number) - 1
        return at >= 0 and number <= ranges[at][1]

    others = (numbers for numbers in _cases() if any(map(has, numbers)))
    return merged([*ranges, *((number, number) for numbers in others for number in numbers)])


# ---- in bytes, and in the syntax of Rust ----------------------------------------------------------------------------


def byte_node(tree: Expression) -> Node:
    """Return an expression over the bytes of UTF-8."""
    return with_leaves(tree, lambda leaf: characters(leaf.ranges))


def rust_regex(part: Expression) -> str:
    """Return an expression in Rust's syntax, whose sets are written out."""
    if isinstance(part, Characters):
        ranges = [rf"\x{{{low:x}}}-\x{{{high:x}}}" for low, high in _without_surrogates(part.ranges)]
        return f"[{''.join(ranges)}]" if ranges else r"[^\x{0}-\x{10ffff}]"
    if isinstance(part, Repeat):
        return f"(?:{rust_regex(part.part)}){part.name}"
    inner = map(rust_regex, part.parts)
    return "".join(inner) if isinstance(part, Concatenation) else f"(?:{'|'.join(inner)})"


def shortest_text(part: Expression, most: int) -> str | None:
    """Return one of the shortest texts of an expression, of letters where these are possible. None: it has no text of
    at most so many characters.
    """
    if isinstance(part, Characters):
        known = (character for character in SIMPLE if any(low <= ord(character) <= high for low, high in part.ranges))
        others = (chr(low) for low, _ in _without_surrogates(part.ranges))
        return next(known, next(others, None))
    if isinstance(part, Repeat):
        text = shortest_text(part.part, most) if part.least else ""
        return None if text is None or len(text) * part.least > most else text * part.least
    texts = [text for inner in part.parts if (text := shortest_text(inner, most)) is not None]
    if isinstance(part, Choice):
        return min(texts, key=len, default=None)
    return "".join(texts) if len(texts) == len(part.parts) and sum(map(len, texts)) <= most else None


def _without_surrogates(ranges: CharacterSet) -> Iterator[tuple[int, int]]:
    for low, high in ranges:
        for first, last in ((low, min(high, SURROGATES[0] - 1)), (max(low, SURROGATES[1] + 1), high)):
            if first <= last:
                yield first, last


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
