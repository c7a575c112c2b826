"""The parts of a JSON schema that are schemas. What `const`, `enum`, `default` and `examples` hold is data.

A place is a JSON pointer after `#`, without percent-encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

PARTS = ("items", "additionalItems", "additionalProperties")  # keywords whose value is a schema
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")  # … a list of schemas
MAPS = ("properties", "patternProperties")  # … schemas by name
DEFINITIONS = ("$defs", "definitions")  # … that only references reach
LIST_INDEX = re.compile("0|[1-9][0-9]{0,8}")  # in a pointer


def parts_of(schema: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the parts that keywords and references reach, each once, with their places. The caller may change them.

    llguidance resolves references that are no pointers. They may be to any definition.
    """
    waiting, seen = [(schema, "#")], set()
    definitions: list[tuple[Any, str]] = []
    has_names = False
    while waiting:
        part, place = waiting.pop()
        if isinstance(part, dict) and id(part) not in seen:
            seen.add(id(part))
            waiting += reversed([*inner_parts(part, schema, place)])
            definitions += _definitions_of(part, place)
            has_names |= "$ref" in part and not is_pointer(part["$ref"])
            yield part, place
        if has_names and not waiting:
            waiting, definitions = definitions[::-1], []


def inner_parts(part: dict[str, Any], schema: Any, place: str = "#") -> Iterator[tuple[Any, str]]:
    """Yield the schemas of a part of a schema, with their places. Some may be no schemas, but mistakes."""
    for key, value in part.items():
        at = f"{place}/{key}"
        if key in PARTS and isinstance(value, dict):
            yield value, at
        elif key in LISTS and isinstance(value, list):
            yield from ((each, f"{at}/{number}") for number, each in enumerate(value))
        elif key in MAPS and isinstance(value, dict):
            yield from _by_name(value, at)
        elif key == "$ref" and is_pointer(value):
            yield part_at(value, schema), unquote(value)


def _by_name(schemas: dict[str, Any], place: str) -> Iterator[tuple[Any, str]]:
    return ((each, f"{place}/{pointer_step(name)}") for name, each in schemas.items())


def _definitions_of(part: dict[str, Any], place: str) -> Iterator[tuple[Any, str]]:
    """Yield the definitions that a part has, with their places."""
    for key in DEFINITIONS:
        if isinstance(part.get(key), dict):
            yield from _by_name(part[key], f"{place}/{key}")


def is_pointer(reference: Any) -> bool:
    """Return whether a reference is a place in the same document."""
    return isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))


def part_at(reference: Any, schema: Any) -> Any:
    """Return the part that a JSON pointer refers to, None if there is none."""
    if not is_pointer(reference):
        return None
    found = schema
    for step in unquote(reference).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            found = found[int(key)] if LIST_INDEX.fullmatch(key) and int(key) < len(found) else None
        else:
            found = found.get(key) if isinstance(found, dict) else None
    return found


def pointer_step(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
