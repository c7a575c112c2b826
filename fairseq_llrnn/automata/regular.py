"""Regular expressions over words.

    le chat          one word after the other        a | b         either
    (…)              a group                         a? a* a+      none or one, any number, at least one
    a{2} a{2,} a{2,5}                                so many
    .                any word of the dictionary, but <unk>
    [le la] [^le la] one of these words, any word but these
    "?"              a word that holds one of ( ) | ? * + { } [ ] . ^ " or begins with #; inside, \\" and \\\\
    # …              a comment, to the end of the line

An expression may go over several lines. It is a set of strings: no weights. The construction is Thompson's (1968), one
piece after the other; nondeterministic.py then makes it deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, Union

import numpy as np

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.nondeterministic import EMPTY, Paths, Piece, to_automaton
from fairseq_llrnn.automata.symbols import LACKED, Symbols
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import ReadCount, iter_lines, place, shown

MOST_PIECES = 4_000_000  # arcs before it is made deterministic
DEEPEST = 100  # groups inside groups
TOKEN = re.compile(r'#.*|\s+|"((?:[^"\\]|\\.)*)"|(\{\d{1,18}(?:,\d{0,18})?\})|([()|?*+.\[\]^])|([^\s()|?*+{}\[\].^"]+)')
POSTFIX = {"?": (0, 1), "*": (0, None), "+": (1, None)}


Leaf = TypeVar("Leaf")
Other = TypeVar("Other")


@dataclass(frozen=True)
class Words:
    """Any of these symbols."""

    symbols: tuple[int, ...]


@dataclass(frozen=True)
class Sequence(Generic[Leaf]):
    """All parts, one after the other."""

    parts: tuple[Tree[Leaf], ...]


@dataclass(frozen=True)
class Choice(Generic[Leaf]):
    """Any of the parts."""

    parts: tuple[Tree[Leaf], ...]


@dataclass(frozen=True)
class Repeat(Generic[Leaf]):
    """A part, from `least` to `most` times. None: without limit."""

    part: Tree[Leaf]
    least: int
    most: int | None
    name: str  # its text and place, for messages


Tree = Union[Leaf, Sequence[Leaf], Choice[Leaf], Repeat[Leaf]]  # noqa: UP007 - of a TypeVar
Node = Tree[Words]


def with_leaves(tree: Tree[Leaf], change: Callable[[Leaf], Tree[Other]]) -> Tree[Other]:
    """Return a tree with other leaves. Parts that are one object stay one, and `change` is called once for each."""
    known: dict[int, Tree[Other]] = {}

    def changed(part: Any) -> Any:
        if id(part) not in known:
            if isinstance(part, Repeat):
                known[id(part)] = Repeat(changed(part.part), part.least, part.most, part.name)
            elif isinstance(part, Sequence | Choice):
                known[id(part)] = type(part)(tuple(map(changed, part.parts)))
            else:
                known[id(part)] = change(part)
        return known[id(part)]

    found: Tree[Other] = changed(tree)
    return found


@dataclass(frozen=True)
class _Token:
    kind: str  # "word", "times" or the operator itself
    text: str
    where: str


def read_regular(path: Path | str, symbols: Symbols) -> Automaton:
    """Read the automaton of a file with a regular expression (module docstring).

    Raises:
        DataError: with file, line and column: an expression that does not parse, an unknown symbol, or too many arcs.
        ValueError: as `to_automaton`.
    """
    parser = _Parser(path, symbols)
    node, paths = parser.parse(), Paths()
    try:
        size = num_arcs(node)
        if size > MOST_PIECES:
            most = max(parser.repeats, key=num_arcs, default=None)
            raise DataError(
                f"{path}: expected an expression of at most {MOST_PIECES:,} arcs, found one of {size:,} when its "
                f"repetitions are written out{'' if most is None else f', {num_arcs(most):,} of {most.name}'}; "
                "repeat less"
            )
        end = add_arcs(node, paths, 0)
    except RecursionError:
        raise DataError(
            f"{path}: groups and repetitions are nested too deeply; use fewer, e.g. `a*` for `a*+*`"
        ) from None
    paths.finals[end] = 0.0
    return to_automaton(paths, len(symbols))


# ---- reading --------------------------------------------------------------------------------------------------------


def _tokens(path: Path | str) -> list[_Token]:
    tokens: list[_Token] = []
    for number, line in iter_lines(path):
        at = 0
        while at < len(line):
            where = f"{place(path, number)}, column {at + 1}"
            match = TOKEN.match(line, at)
            if match is None:
                raise DataError(f"{where}: expected words and operators, found {shown(line[at:])}; fix quote or brace")
            at = match.end()
            quoted, times, operator, word = match.groups()
            if quoted is not None:
                word = re.sub(r"\\(.)", r"\1", quoted)
            parts = (("word", word), ("times", times), (operator, operator))
            tokens += [_Token(kind, text, where) for kind, text in parts if text is not None]
    return tokens


class _Parser:
    def __init__(self, path: Path | str, symbols: Symbols) -> None:
        self.path, self.symbols = path, symbols
        self.tokens = [*_tokens(path), _Token("end", "the end", f"{path}")]
        self.at = 0
        self.repeats: list[Repeat] = []
        self.count = ReadCount(path, "words", entries=sum(token.kind == "word" for token in self.tokens))

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def parse(self) -> Node:
        node = self._choice(0)
        if self.next.kind != "end":
            raise self._unexpected("an operator or a word")
        self.symbols.check_known_words()
        self.count.done()
        return node

    def _symbol(self) -> int | None:
        """Return the symbol of the next word, or None if the dictionary lacks it."""
        symbol = self.symbols.find(self.next.text, self.next.where)
        self.at += 1
        if symbol is None:
            self.count.left_out[LACKED] += 1
        else:
            self.count.read += 1
        return symbol

    def _unexpected(self, expected: str) -> DataError:
        return DataError(f"{self.next.where}: expected {expected}, found {shown(self.next.text)}; fix the expression")

    def _take(self, kind: str) -> bool:
        taken = self.next.kind == kind
        self.at += taken
        return taken

    def _choice(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise DataError(f"{self.next.where}: expected at most {DEEPEST} groups inside each other, found more")
        parts = [self._sequence(depth)]
        while self._take("|"):
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.next.kind in ("word", "(", "[", "."):
            parts.append(self._repeated(depth))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, depth: int) -> Node:
        node = self._one(depth)
        while self.next.kind in ("times", *POSTFIX):
            name = f"`{self.next.text}` ({self.next.where.removeprefix(str(self.path) + ', ')})"
            if self.next.kind == "times":
                least, comma, most = self.next.text[1:-1].partition(",")
                bounds = int(least), (int(most) if most else None) if comma else int(least)
                if bounds[1] is not None and bounds[1] < bounds[0]:
                    raise self._unexpected("{least,most} with least ≤ most")
            else:
                bounds = POSTFIX[self.next.kind]
            node = Repeat(node, *bounds, name)
            self.repeats.append(node)
            self.at += 1
        return node

    def _one(self, depth: int) -> Node:
        token = self.next
        if token.kind == "word":
            symbol = self._symbol()
            return Words(() if symbol is None else (symbol,))
        self.at += 1
        if token.kind == ".":
            return Words(tuple(self.symbols.any_word.tolist()))
        if token.kind == "[":
            return self._listed()
        node = self._choice(depth + 1)
        if not self._take(")"):
            raise self._unexpected("`)`")
        return node

    def _listed(self) -> Node:
        other = self._take("^")
        listed = set()
        while self.next.kind == "word":
            symbol = self._symbol()
            if symbol is not None:
                listed.add(symbol)
        if not self._take("]"):
            raise self._unexpected("words and `]`")
        if other:
            return Words(tuple(np.setdiff1d(self.symbols.any_word, list(listed)).tolist()))
        return Words(tuple(sorted(listed)))


# ---- building -------------------------------------------------------------------------------------------------------


def num_arcs(node: Node) -> int:
    """Return the approximate number of arcs that `add_arcs` adds."""
    if isinstance(node, Words):
        return len(node.symbols)
    if isinstance(node, Repeat):
        return (num_arcs(node.part) + 2) * max(1, node.least if node.most is None else node.most)
    return sum(map(num_arcs, node.parts)) + 2 * len(node.parts)


def add_arcs(node: Node, paths: Paths, begin: int) -> int:
    """Add the node's arcs from `begin` on, and return the state where it ends."""
    if isinstance(node, Words):
        end = paths.new_state()
        for symbol in node.symbols:
            paths.add(begin, symbol, end)
    elif isinstance(node, Sequence):
        end = begin
        for part in node.parts:
            end = add_arcs(part, paths, end)
    elif isinstance(node, Choice):
        end = paths.new_state()
        for part in node.parts:
            inner = paths.new_state()
            paths.add(begin, EMPTY, inner)
            paths.add(add_arcs(part, paths, inner), EMPTY, end)
    else:
        first = paths.num_states
        end = _repeat(node, paths, begin)
        paths.pieces.append(Piece(first, paths.num_states, node.name))
    return end


def _repeat(node: Repeat, paths: Paths, begin: int) -> int:
    current = begin
    # without `most`, the last required copy may repeat: another copy for each `+` would double the expression with
    # every group around it
    for _ in range(node.least if node.most is not None else node.least - 1):
        current = add_arcs(node.part, paths, current)
    if node.most is None:
        loop = paths.new_state()
        paths.add(current, EMPTY, loop)
        last = add_arcs(node.part, paths, loop)
        paths.add(last, EMPTY, loop)
        end = paths.new_state()
        paths.add(loop if node.least == 0 else last, EMPTY, end)
        return end
    end = paths.new_state()
    for _ in range(node.most - node.least):
        paths.add(current, EMPTY, end)
        # a new state, because what follows may return to the end of the part
        inner = paths.new_state()
        paths.add(current, EMPTY, inner)
        current = add_arcs(node.part, paths, inner)
    paths.add(current, EMPTY, end)
    return end
