"""Options that fairseq writes as Python, such as `[(512, 3)] * 4`, evaluated without running any code.

fairseq calls `eval` on some options of its models and criterions. They also come from checkpoints, which must not be
able to run anything: `plain_options` is for the time in which our tasks build what a checkpoint describes.
"""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fairseq_llrnn.errors import DataError

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
LARGEST_REPEAT = 10_000


def evaluate(text: str) -> Any:
    """The value of numbers, strings, tuples, lists, sets and dicts of them, and of + - * / between them.

    Raises:
        DataError: any other Python. TypeError: no string, as `eval` itself.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected a string, found {type(text).__name__}")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
        raise DataError(
            f"option value {text!r}: expected numbers, strings, tuples or lists, joined by + - * /, found other "
            "Python, which is not run; correct the option, or use another checkpoint"
        ) from None


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(map(_value, node.elts))
    if isinstance(node, ast.List):
        return list(map(_value, node.elts))
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        left, right = _value(node.left), _value(node.right)
        for one, other in ((left, right), (right, left)):
            if isinstance(one, str | list | tuple) and isinstance(other, int) and len(one) * other > LARGEST_REPEAT:
                raise ValueError("`[0] * 10**9` would fill the memory")
        return OPERATORS[type(node.op)](left, right)
    return ast.literal_eval(node)


@contextmanager
def plain_options() -> Iterator[None]:
    """While this lasts, `eval` means `evaluate` in all of fairseq's modules. May be nested."""
    of_fairseq = (sys.modules[name] for name in list(sys.modules) if name.startswith("fairseq."))
    modules = [vars(module) for module in of_fairseq if module]
    before = [(names, names.get("eval", eval)) for names in modules]
    for names in modules:
        names["eval"] = evaluate
    try:
        yield
    finally:
        for names, value in before:
            if value is eval:
                names.pop("eval", None)
            else:
                names["eval"] = value
