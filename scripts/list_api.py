#!/usr/bin/env python3
"""List the public Python interface: the names that users import, with their signatures, in docs/public-api.txt.

    python scripts/list_api.py [--check]

The listing is committed, so that a review shows each change of the interface. `--check` compares instead of writing.
A name is public if a module of MODULES exports it (`__all__`, or `import X as X`) or defines it.
Methods that torch or Python define themselves are left out.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LISTING = ROOT / "docs" / "public-api.txt"
PACKAGE = "fairseq_llrnn"
MODULES = ("", "head", "prior", "extend", "functional", "testing", "huggingface")


def public_names(module: ModuleType) -> list[str]:
    """Return the names that a module exports: those of `__all__`, or its re-exports and own definitions."""
    if exported := getattr(module, "__all__", None):
        return sorted(exported)
    assert module.__file__ is not None
    names = set[str]()
    for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname == alias.name}
    names |= {name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    return sorted(name for name in names if not name.startswith("_"))


def annotation(value: Any) -> str:
    """Return an annotation without the metadata of `Annotated`, which only describes an option."""
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    tree = ast.parse(text, mode="eval").body
    while isinstance(tree, ast.Subscript) and ast.unparse(tree.value).endswith("Annotated"):
        tree = tree.slice.elts[0] if isinstance(tree.slice, ast.Tuple) else tree.slice
    return ast.unparse(tree)


class Plain:
    """A text that `repr` prints without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def signature(value: Any) -> str:
    try:
        full = inspect.signature(value)
    except (TypeError, ValueError):  # a value, or a class without a constructor of its own
        return ""
    parameters = []
    for each in full.parameters.values():
        if each.annotation is not each.empty:
            each = each.replace(annotation=Plain(annotation(each.annotation)))
        if each.default is not each.empty and hasattr(each.default, "__name__"):  # the repr has an address
            each = each.replace(default=Plain(each.default.__name__))
        parameters.append(each)
    returned = full.return_annotation
    if returned is not full.empty:
        returned = Plain(annotation(returned))
    return str(full.replace(parameters=parameters, return_annotation=returned))


def entries(path: str, value: Any) -> Iterator[str]:
    """Yield one line for a function or value, and for a class one for itself and one for each public member of our
    classes.
    """
    if not inspect.isclass(value):
        yield path + (signature(value) if callable(value) else "")
        return
    yield f"class {path}{signature(value)}"
    members = dict[str, Any]()
    for base in reversed(value.__mro__):
        if base.__module__.partition(".")[0] == PACKAGE:
            members.update(vars(base))
    for name, member in sorted(members.items()):
        if name.startswith("_"):
            continue
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        if inspect.isfunction(member):
            yield f"    .{name}{signature(member)}"
        elif isinstance(member, property) or type(member).__name__ == "cached_property":
            yield f"    .{name}"


def listing() -> str:
    lines, first_module = list[str](), dict[int, str]()
    for name in MODULES:
        module = importlib.import_module(f"{PACKAGE}.{name}".rstrip("."))
        lines.append(f"# {module.__name__}")
        for public in public_names(module):
            value = getattr(module, public)
            if inspect.isclass(value) and first_module.setdefault(id(value), module.__name__) != module.__name__:
                lines.append(f"class {public}: see {first_module[id(value)]}")
            else:
                lines += entries(public, value)
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with 1 if the committed listing differs")
    args = parser.parse_args()
    text = listing()
    if args.check:
        if text != LISTING.read_text(encoding="utf-8"):
            print(f"{LISTING.name} differs from the code; run `python scripts/list_api.py` and review", file=sys.stderr)
            return 1
        return 0
    LISTING.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
