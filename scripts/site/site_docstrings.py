"""Prepare the Python reference of the site (scripts/site/mkdocs.yml).

A module shows the names that docs/public-api.txt has for it, each name once. A class also shows the functions of a
module that are its methods (`advance = search.advance`). Markdown takes `<unk>` and `</s>` for HTML tags, so they are
escaped. Lists of files in the docstrings of packages are left out.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

API = Path(__file__).resolve().parents[2] / "docs" / "public-api.txt"
CODE = re.compile(r"(`+[^`]*`+)")
FILE_LIST = re.compile(r"\s*[\w/]+\.py\b")
NAME = re.compile(r"^(?:class )?(\w+)(?!\w*: see )", re.MULTILINE)


def public_names(text: str) -> dict[str, list[str]]:
    """Return the names of each module: text of docs/public-api.txt -> {module: names}."""
    modules = (part.split("\n", 1) for part in text.removeprefix("# ").split("\n# "))
    return {module: NAME.findall(body) for module, body in modules}


def assigned_functions(node: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    """Yield name, module and function of assignments in a class such as `start, step = search.start, search.step`."""
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            names, values = ast.unparse(statement.targets[0]).split(", "), ast.unparse(statement.value).split(", ")
            for name, value in zip(names, values, strict=False):
                if found := re.fullmatch(r"\(?(\w+)\.(\w+)\)?", value):
                    yield name.strip("()"), found[1], found[2]


class SiteDocstrings(griffe.Extension):
    def __init__(self) -> None:
        self.exports = public_names(API.read_text(encoding="utf-8"))

    def on_class_members(self, *, node: Any, cls: griffe.Class, **_: Any) -> None:
        for name, module, function in assigned_functions(node):
            if module in cls.module.imports:
                cls.set_member(name, griffe.Alias(name, f"{cls.module.imports[module]}.{function}", parent=cls))

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.path in self.exports:
            obj.exports = [*self.exports[obj.path]]
        if obj.docstring:
            paragraphs = obj.docstring.value.split("\n\n")
            text = "\n\n".join(text for text in paragraphs if not (obj.is_module and FILE_LIST.match(text)))
            parts = CODE.split(text)
            parts[::2] = [re.sub(r"<(?=[/\w])", "&lt;", part) for part in parts[::2]]
            obj.docstring.value = "".join(parts)
