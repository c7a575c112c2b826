"""A name in the package says what a thing is, and not that somebody knew, made, found, owned, gave or said it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

WORDS = frozenset("known made found own given said".split())  # no name is, begins with or ends with one
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # found, words: of found_words, FoundWords and FOUND_WORDS
# Fields and methods that users call, or that are keys of files and of JSON
ALLOWED = {
    "given": "Background.given, a method of the contract",
    "known": "in prior.json: of a text's words, those that a package has (lexicon/languages/findings.py)",
    "known_bits": "in the JSON of `llrnn score`",
    "made_from": "in prior.json: where an automaton comes from",
    "own": "in the JSON of `llrnn show` of a tree",
    "own_features": "of an explanation (docs/guides/python.md)",
}


def bound_names(node: ast.AST, in_class: bool = False) -> Iterator[tuple[int, str, bool]]:
    """(line, name, whether it is a field or method) of all variables, arguments, functions, classes, `import … as`."""
    for child in ast.iter_child_nodes(node):
        line = getattr(child, "lineno", 0)
        if isinstance(child, ast.Name | ast.Attribute) and isinstance(child.ctx, ast.Store):
            is_attribute = isinstance(child, ast.Attribute)
            yield line, child.attr if is_attribute else child.id, in_class or is_attribute
        elif isinstance(child, ast.arg):
            yield line, child.arg, False
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield line, child.name, in_class
        elif isinstance(child, ast.alias):
            yield line, child.asname or "", False
        elif isinstance(child, ast.MatchAs | ast.MatchStar | ast.ExceptHandler):
            yield line, child.name or "", False
        inner = isinstance(child, ast.ClassDef) or (in_class and isinstance(child, ast.AnnAssign | ast.Assign))
        yield from bound_names(child, inner)


def vague_names(file: Path) -> list[str]:
    vague = []
    for line, name, is_member in bound_names(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        parts = [part.lower() for part in PARTS.findall(name)] or [""]
        if not WORDS.isdisjoint((parts[0], parts[-1])) and not (is_member and name in ALLOWED):
            vague.append(f"{file}:{line} {name}: say what it is")
    return vague


def test_names_say_what_things_are(root: Path) -> None:
    assert [text for file in sorted((root / "fairseq_llrnn").rglob("*.py")) for text in vague_names(file)] == []


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "def f(known): ...",
        "def made(): ...",
        "class OwnTask: ...",
        "lambda given: 0",
        "class A:\n    def f(self):\n        self.said = 1",
        "import a as known_a",
        "for found_word in []: ...",
        "class A:\n    def f(self):\n        known = 1",
        "class A:\n    known_words: int",
        "try: ...\nexcept OSError as found: ...",
    ],
)
def test_a_vague_name_is_found(tmp_path: Path, source: str) -> None:
    file = tmp_path / "a.py"
    file.write_text(source + "\n", encoding="utf-8")
    assert len(vague_names(file)) == 1


@pytest.mark.parametrize(
    "source", ["unknown = 1", "class A:\n    known: int\n    def given(self): ...", "a.known_bits = 1", "f(own=1)"]
)
def test_other_names_pass(tmp_path: Path, source: str) -> None:
    file = tmp_path / "a.py"
    file.write_text(source + "\n", encoding="utf-8")
    assert vague_names(file) == []
