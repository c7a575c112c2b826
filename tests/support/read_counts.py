"""What readers say that they have read and left out (files/text_lines.py), and which functions read files at all."""

from __future__ import annotations

import ast
import importlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

import fairseq_llrnn
from fairseq_llrnn.files.text_lines import ReadCount

PACKAGE = Path(fairseq_llrnn.__file__).parent
# what gives the lines or bytes of a file
SOURCES = {"iter_lines", "iter_sentences", "numbered", "opened", "read_whole", "iter_blocks", "map_blocks", "ReadCount"}


@contextmanager
def counted() -> Iterator[list[ReadCount]]:
    """The counts that are said meanwhile."""
    found: list[ReadCount] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            for one in record.args or ():
                assert isinstance(one, ReadCount)
                found.append(replace(one, left_out=one.left_out.copy()))  # as it is said

    logger, handler = logging.getLogger("fairseq_llrnn.files.text_lines"), Kept()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def check_counts(counts: list[ReadCount]) -> None:
    """Raise AssertionError where entries are neither read nor left out."""
    for count in counts:
        assert count.entries == count.read + count.left_out.total(), f"{count}: some of {count.entries} are lost"


def functions_that_read() -> dict[str, set[str]]:
    """Of each function of the package that asks for lines or bytes of files, outside of files/: reasons it leaves
    something out for. By `module:function`."""
    found: dict[str, set[str]] = {}
    research = PACKAGE.parent / "research"
    for path in sorted((*PACKAGE.rglob("*.py"), *research.rglob("llrnn_research/**/*.py"))):
        root = research if research in path.parents else PACKAGE.parent
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        if ".files." in name:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and "llrnn.files" in (n.module or "")]
        sources = SOURCES & {alias.name for one in imported for alias in one.names}
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                inside = list(ast.walk(function))
                called = {n.func.id for n in inside if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
                reasons = [n.slice for n in inside if isinstance(n, ast.Subscript) and _is_left_out(n.value)]
                if called & sources or reasons:
                    found[f"{name}:{function.name}"] = {r for one in reasons for r in _reasons(one, name)}
    return found


def _is_left_out(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "left_out"


def _reasons(node: ast.expr, module: str) -> list[str]:
    """The constants of a module that a reason may be."""
    if isinstance(node, ast.IfExp):
        return _reasons(node.body, module) + _reasons(node.orelse, module)
    assert isinstance(node, ast.Name), f"{module}: expected a constant as reason, found {ast.unparse(node)}"
    return [getattr(importlib.import_module(module), node.id)]


@contextmanager
def called() -> Iterator[set[str]]:
    """The functions of the package that are called meanwhile, by `module:function`."""
    found: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.add(f"{frame.f_globals.get('__name__')}:{frame.f_code.co_name}")

    sys.setprofile(watch)
    try:
        yield found
    finally:
        sys.setprofile(None)
