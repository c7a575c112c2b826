"""How many bytes one step may add to the shortest completion of a JSON schema: an estimate from above.

A step begins at most one part of the schema: a property with its value, an item, a string, a number. This is the size
of the largest part, with all that is required inside of it. It is infinite if a part has no finite text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NUMBER, SCALAR, FORMAT = 32, 8, 80  # bytes of a number, of null or an empty value, and of a text with a format
LARGEST = 100_000
COUNT = re.compile(r"\{(\d+)")


@dataclass(frozen=True)
class Steps:
    """What one step may do to the completion of a text."""

    largest: float = math.inf  # bytes that it adds, at most
    names: frozenset[bytes] | None = None  # keys, if all other strings are free but for their length. None: unknown
    patterns: tuple[str, ...] = ()  # of strings, in Rust's syntax


def steps_of(schema: Any, referred: Callable[[str], Any]) -> Steps:
    """Return the steps of a schema.

    Args:
        schema: that llguidance reads. referred: the part of a reference, None if it is unknown.
    """
    sizes = _Sizes(referred)
    largest = sizes.largest(schema)
    parts = [part for part in sizes.parts if {"pattern", "format", "patternProperties"} & {*part}]
    patterns = dict.fromkeys(part["pattern"] for part in parts if isinstance(part.get("pattern"), str))
    return Steps(largest, None if parts else frozenset(sizes.keys()), tuple(patterns))


class _Sizes:
    def __init__(self, referred: Callable[[str], Any]) -> None:
        self.referred = referred
        self.known: dict[int, float] = {}  # the size of each part
        self.parts: list[Any] = []  # keeps them alive

    def largest(self, schema: Any) -> float:
        waiting = [schema]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict) and id(part) not in self.known:
                self.known[id(part)] = math.inf
                self.parts.append(part)
                waiting += self._inner(part)
        changed = True
        while changed:  # from below: parts that hold themselves have a size once all else has
            changed = False
            for part in reversed(self.parts):
                size = self._size_of(part)
                if size < self.known[id(part)]:
                    changed = changed or not math.isfinite(self.known[id(part)])
                    self.known[id(part)] = size
        sizes = [self.known[id(part)] for part in self.parts]
        keys = [*map(len, self.keys())]
        values = [len(json.dumps(value)) for part in self.parts for value in part.get("enum", [])]
        largest = max([SCALAR, *sizes]) + max([0, *keys]) + max([0, *values]) + SCALAR
        return largest if largest < LARGEST else math.inf

    def keys(self) -> list[bytes]:
        """All keys of properties, as JSON writes them."""
        keys = [key for part in self.parts for key in (*part.get("properties", {}), *part.get("required", []))]
        return [json.dumps(key, ensure_ascii=False)[1:-1].encode() for key in keys]

    def _inner(self, part: dict[str, Any]) -> list[Any]:
        found = [part[key] for key in ("items", "additionalItems", "additionalProperties") if key in part]
        found = [each for value in found for each in (value if isinstance(value, list) else [value])]
        for key in ("allOf", "anyOf", "oneOf", "prefixItems"):
            found += part.get(key, [])
        for key in ("properties", "patternProperties"):
            found += part.get(key, {}).values()
        if "$ref" in part:
            found.append(self.referred(part["$ref"]))
        return found

    def size(self, part: Any) -> float:
        if part is True or part == {}:
            return SCALAR
        return self.known[id(part)] if isinstance(part, dict) else math.inf

    def _size_of(self, part: dict[str, Any]) -> float:
        """The bytes of a text, about: the sum over all keywords, as each of them may demand something."""
        total: float = SCALAR
        if "const" in part:
            total += len(json.dumps(part["const"]))
        if "enum" in part:
            total += max(map(len, map(json.dumps, part["enum"])), default=math.inf)
        for key in ("anyOf", "oneOf"):
            if key in part:
                total += min(map(self.size, part[key]), default=math.inf)
        total += sum(map(self.size, part.get("allOf", [])))
        if "$ref" in part:
            total += self.size(self.referred(part["$ref"]))
        total += part.get("minLength", 0) + (FORMAT if "format" in part else 0)
        if "pattern" in part:
            total += len(part["pattern"]) * math.prod(max(1, int(count)) for count in COUNT.findall(part["pattern"]))
        if {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} & {*part}:
            total += NUMBER
        properties = part.get("properties", {})
        for key in part.get("required", []):
            total += len(key.encode()) + 6 + self.size(properties.get(key, part.get("additionalProperties", True)))
        others = [part.get("additionalProperties", True), *part.get("patternProperties", {}).values()]
        if part.get("minProperties", 0) > len(part.get("required", [])):
            total += part["minProperties"] * (16 + min(map(self.size, [*others, *properties.values()])))
        least = part.get("minItems", 0)
        if least:
            items = part.get("prefixItems", []) or (part["items"] if isinstance(part.get("items"), list) else [])
            rest = part.get("items", True)
            total += sum(map(self.size, items[:least])) + 2 * least
            if least > len(items):
                total += (least - len(items)) * self.size(True if isinstance(rest, list) else rest)
        return total
