"""Mutations of Python source: small changes that a test should notice.

    operators      an operator is replaced, or a sign or `not` removed
    terms          one side of a sum, product, `and` or `or` is removed
    indices        a number in a subscript changes by one, or a bound of a slice is removed
    constants      a number, a boolean or −inf is replaced
    calls          a call is skipped: a statement, a `raise`, a method (its object remains), or a function (its first
                   argument remains)
    conditions     a condition is always true, or always false

Annotations, docstrings, messages, assertions, protocols and blocks for type checkers are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SWAPS: dict[type[ast.AST], str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*", ast.Pow: "*",
    ast.LShift: ">>", ast.BitAnd: "|", ast.BitOr: "&", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
    ast.And: "or", ast.Or: "and",
}  # fmt: skip
SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.BitAnd: "&", ast.BitOr: "|", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
    ast.And: "and", ast.Or: "or",
}  # fmt: skip
MODULES = {"torch", "functional", "math", "nn", "os", "super"}  # their functions are no methods
CONVERSIONS = {"bool", "float", "int", "list", "tuple", "type", "len"}  # without effect, or an error at once


@dataclass(frozen=True)
class Mutation:
    """A replacement of bytes start … end of a file's source by `text`."""

    path: Path
    kind: str
    line: int  # of the replaced text, from 1
    function: str  # with its classes, or "" outside functions
    start: int
    end: int
    text: str

    def applied(self) -> str:
        """Return the changed source."""
        source = self.path.read_bytes()
        return (source[: self.start] + self.text.encode() + source[self.end :]).decode()

    def is_python(self) -> bool:
        """Return whether the changed source compiles."""
        try:
            compile(self.applied(), str(self.path), "exec")
        except SyntaxError:
            return False
        return True

    def before_and_after(self) -> tuple[str, str]:
        """Return the changed lines, joined, without indentation."""
        source = self.path.read_bytes()
        begin = source.rfind(b"\n", 0, self.start) + 1
        stop = source.find(b"\n", self.end)
        after = source[begin : self.start] + self.text.encode() + source[self.end : stop]
        before, after = (b" ".join(text.split()) for text in (source[begin:stop], after))
        return before.decode(), after.decode()


def mutations_of(path: Path) -> list[Mutation]:
    """Return all mutations of a file. Some are no Python (`is_python`)."""
    source = path.read_bytes()
    return list(_Finder(path, source).found(ast.parse(source)))


class _Finder:
    def __init__(self, path: Path, source: bytes) -> None:
        self.path, self.source = path, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def found(self, tree: ast.Module) -> Iterator[Mutation]:
        return self._inside(tree, (), False)

    def _inside(self, node: ast.AST, names: tuple[str, ...], is_index: bool) -> Iterator[Mutation]:
        """Yield the mutations of a node and of all nodes below it."""
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases):
                return
            names = (*names, node.name)
        for kind, old, text in self._of(node, is_index):
            start, end = self._span(old) if isinstance(old, ast.AST) else old
            line = self.source.count(b"\n", 0, start) + 1
            yield Mutation(self.path, kind, line, ".".join(names), start, end, text)
        for child in _children(node):
            if isinstance(node, ast.Subscript) and child is node.slice:
                yield from self._inside(child, names, True)
            else:
                yield from self._inside(child, names, is_index and not isinstance(child, ast.Call))

    def _span(self, node: ast.AST) -> tuple[int, int]:
        begin, end = self.starts[node.lineno - 1], self.starts[node.end_lineno - 1]  # type: ignore[attr-defined]
        return begin + node.col_offset, end + node.end_col_offset  # type: ignore[attr-defined]

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()

    def _between(self, left: ast.AST, operator: ast.AST, right: ast.AST) -> tuple[int, int]:
        """Return the span of an operator."""
        begin, end = self._span(left)[1], self._span(right)[0]
        place = self.source.index(SYMBOLS[type(operator)].encode(), begin, end)
        return place, place + len(SYMBOLS[type(operator)])

    def _of(self, node: ast.AST, is_index: bool) -> Iterator[tuple[str, ast.AST | tuple[int, int], str]]:
        """Yield kind, node or span, and new text of each mutation of this node alone."""
        match node:
            case ast.If(ast.Name("TYPE_CHECKING")):
                return
            case ast.BinOp(left, operator, right):
                if type(operator) in SWAPS:
                    yield "operators", self._between(left, operator, right), SWAPS[type(operator)]
                for side in (left, right):
                    yield "terms", node, f"({self._text(side)})"
            case ast.BoolOp(operator, values):
                for left, right in zip(values, values[1:], strict=False):
                    yield "operators", self._between(left, operator, right), SWAPS[type(operator)]
                for left_out in values:
                    rest = [f"({self._text(value)})" for value in values if value is not left_out]
                    yield "terms", node, f"({f' {SYMBOLS[type(operator)]} '.join(rest)})"
            case ast.Compare(left, operators, rights):
                for one, comparison, other in zip([left, *rights], operators, rights, strict=False):
                    yield "operators", self._between(one, comparison, other), SWAPS[type(comparison)]
            case ast.UnaryOp(ast.USub(), ast.Constant(int() as value)):  # mostly a dimension, or a last element
                yield "indices" if is_index else "constants", node, str(-value - 1)
            case ast.UnaryOp(_, operand):
                yield "operators", node, f"({self._text(operand)})"
            case ast.AugAssign(target, operator, _) if type(operator) in SWAPS:
                symbol = f"{SYMBOLS[type(operator)]}=".encode()
                place = self.source.index(symbol, self._span(target)[1])
                yield "operators", (place, place + len(symbol)), f"{SWAPS[type(operator)]}="
            case ast.Slice(lower, upper, _):
                for bound in (lower, upper):
                    if bound is not None:
                        yield "indices", bound, ""
            case ast.Constant(bool() as value):
                yield "constants", node, str(not value)
            case ast.Constant(int() | float() as value):
                kind = "indices" if is_index else "constants"
                for text in {repr(value + 1), repr(value - 1 if is_index or value == 1 else value * 2)}:
                    if text != repr(value):
                        yield kind, node, text
            case ast.Name("NEGATIVE_INFINITY", ast.Load()):
                yield "constants", node, "0.0"
            case ast.Raise() | ast.Expr(ast.Call()):
                yield "calls", node, "pass"
            case ast.Call(ast.Attribute(value, _), _) if self._text(value).split("(")[0].split(".")[0] not in MODULES:
                yield "calls", node, f"({self._text(value)})"
            case ast.Call(ast.Name(name) | ast.Attribute(_, name), [first, *_]) if name not in CONVERSIONS:
                yield "calls", node, f"({self._text(first).removeprefix('*')})"
            case ast.If(test, _, _) | ast.IfExp(test, _, _) | ast.While(test, _, _):
                for answer in ("True", "False"):
                    yield "conditions", test, answer
            case ast.comprehension(_, _, tests):
                for test in tests:
                    yield "conditions", test, "True"


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below, without those that change no result."""
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.keyword("strict"):
            return
        case ast.UnaryOp(ast.USub(), ast.Constant(int())):
            return
        case ast.Expr(ast.Call() as call):
            yield from ast.iter_child_nodes(call)
        case ast.If(ast.Name("TYPE_CHECKING")):
            return
        case ast.AnnAssign(_, _, value):
            yield from [] if value is None else [value]
        case ast.FunctionDef(_, arguments, body):
            yield from [default for default in (*arguments.defaults, *arguments.kw_defaults) if default is not None]
            yield from body
        case ast.ClassDef(_, _, _, body):
            yield from body
        case ast.Assign([ast.Name(name)], _) if name.startswith("__") or name in ("Source", "Arguments", "RowPair"):
            return
        case ast.Subscript(ast.Name(name), _) if name[:1].isupper() or name in ("tuple", "list", "dict"):
            return  # a type
        case _:
            yield from ast.iter_child_nodes(node)
