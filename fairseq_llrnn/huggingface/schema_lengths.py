"""How many bytes one step may add to the shortest completion of a JSON schema: an estimate from above.

A step begins at most one part of the schema: a property with its value, an item, a string, a number. This is the size
of the largest part, with all that is required inside of it. It is infinite if a part has no finite text.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from fairseq_llrnn.huggingface.schema_parts import part_at, parts_of

NUMBER, SCALAR, FORMAT = 32, 8, 80  # bytes of a number, of null or an empty value, and of a text with a format
LARGEST = 100_000
ROUNDS = 20  # after which the size of a part is unknown: a hostile schema needs a round for each part
COUNT = re.compile(r"\{(\d+)")


@dataclass(frozen=True)
class Steps:
    """What one step may do to the completion of a text."""

    largest: float = math.inf  # bytes that it adds, at most
    names: frozenset[bytes] | None = None  # keys, if all other strings are free but for their length. None: unknown
    patterns: tuple[str, ...] = ()  # of strings and keys, in Rust's syntax


def steps_of(schema: Any) -> Steps:
    """Return the steps of a schema that llguidance reads."""
    sizes = _Sizes(schema)
    try:
        largest = sizes.largest()
    except (TypeError, AttributeError, ValueError, ArithmeticError):  # mistakes in parts that llguidance does not read
        return Steps()
    are_free = not any({"pattern", "format", "patternProperties"} & {*part} for part in sizes.parts)
    patterns = [each for part in sizes.parts for each in (part.get("pattern"), *part.get("patternProperties", {}))]
    names = frozenset(sizes.keys()) if are_free else None
    return Steps(largest, names, tuple(pattern for pattern in patterns if isinstance(pattern, str)))


class _Sizes:
    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.parts = [part for part, _ in parts_of(schema)]
        self.known = {id(part): math.inf for part in self.parts}  # the size of each part

    def largest(self) -> float:
        for _ in range(ROUNDS):  # parts that hold themselves have a size once all else has
            changed = False
            for part in reversed(self.parts):
                size = self._size_of(part)
                if size < self.known[id(part)]:
                    changed = changed or not math.isfinite(self.known[id(part)])
                    self.known[id(part)] = size
            if not changed:
                break
        sizes = [self.known[id(part)] for part in self.parts]
        keys = [*map(len, self.keys())]
        values = [len(json.dumps(value)) for part in self.parts for value in part.get("enum", [])]
        largest = max([SCALAR, *sizes]) + max([0, *keys]) + max([0, *values]) + SCALAR
        return largest if largest < LARGEST else math.inf

    def keys(self) -> list[bytes]:
        """All keys of properties, as JSON writes them."""
        keys = [key for part in self.parts for key in (*part.get("properties", {}), *part.get("required", []))]
        return [json.dumps(key, ensure_ascii=False)[1:-1].encode() for key in keys]

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
            total += self.size(part_at(part["$ref"], self.schema))
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
