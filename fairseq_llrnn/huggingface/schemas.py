"""JSON schemas for llguidance: unsupported keywords are found, and some keywords are rewritten.

llguidance reads a keyword as JSON Schema defines it, or raises an error, but for these cases:

    numbers        bounds are float64. Whole numbers beyond 2^53 are rounded so that fewer values are allowed
    format         `date` has no leap years, `time` any leap second, `hostname` no limit of length
    pattern        Rust's syntax: `[[a]` is a nested set, and `.` and `\\s` are other characters than in ECMA-262
    minProperties  the same property may be counted twice
    keys           `{"\\u0061": 1}` is another property than "a"

Rewritten schemas have patterns for formats and exact bounds. Escapes `\\u0061` of printable characters are allowed only
where no object has other properties than listed ones (`is_closed`). A key is written as in the schema.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from fairseq_llrnn.errors import DataError, did_you_mean
from fairseq_llrnn.files.text_lines import shown
from fairseq_llrnn.huggingface.schema_lengths import Steps, steps_of
from fairseq_llrnn.huggingface.schema_parts import LISTS, MAPS, PARTS, parts_of

JSON = (str, dict, list, int, float, type(None))  # a schema that is no class
NAMED = 12  # keywords in a message
EXACT = 2**53  # up to which float64 has all whole numbers
COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
BOUNDS = {"minimum": True, "exclusiveMinimum": False, "maximum": False, "exclusiveMaximum": True}  # whether to round up
SUPPORTED = {
    *PARTS, *LISTS, *MAPS, *COUNTS, *BOUNDS, "$ref", "const", "enum", "type", "required", "pattern", "format",
    "multipleOf",
}  # fmt: skip
ANNOTATIONS = {
    "$schema", "$id", "id", "$anchor", "$comment", "$defs", "definitions", "$vocabulary", "title", "description",
    "default", "example", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType",
    "contentSchema", "x-guidance",
}  # fmt: skip
UNSUPPORTED = {  # with the first draft that has them
    **dict.fromkeys(("dependencies", "not", "uniqueItems"), 4), **dict.fromkeys(("contains", "propertyNames"), 6),
    **dict.fromkeys(("if", "then", "else"), 7),
    **dict.fromkeys(
        ("dependentRequired", "dependentSchemas", "maxContains", "minContains", "unevaluatedItems",
         "unevaluatedProperties", "$recursiveAnchor", "$recursiveRef"), 2019,
    ),
    **dict.fromkeys(("$dynamicAnchor", "$dynamicRef"), 2020),
}  # fmt: skip
NEEDED = {  # by keywords that have no effect without any of these
    ("if",): ("then", "else"), ("then", "else"): ("if",), ("contains",): ("minContains", "maxContains"),
}  # fmt: skip
WITHOUT_EFFECT = {"uniqueItems": False, "unevaluatedProperties": True, "unevaluatedItems": True, "propertyNames": True}
DRAFT = re.compile(r"https?://json-schema\.org/draft(?:/(2019|2020)-\d\d|-0([467]))/schema#?")

_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"(?:{_CLOCK}:[0-5][0-9](?:\.[0-9]+)?(?:[zZ]|[+-]{_CLOCK})|23:59:60(?:\.[0-9]+)?(?:[zZ]|[+-]00:00))"
_MULTIPLE_OF_4 = "(?:0[48]|[2468][048]|[13579][26])"  # two digits above 00
_DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{{2}}{_MULTIPLE_OF_4}|(?:00|{_MULTIPLE_OF_4})00)-02-29)"
)
_ALNUM, _LABEL = "[a-zA-Z0-9]", "[a-zA-Z0-9-]"
_HOST = (  # without -- as third and fourth character
    f"{_ALNUM}(?:{_LABEL}{{0,2}}{_ALNUM}|{_LABEL}(?:{_ALNUM}{_LABEL}|-{_ALNUM}){_LABEL}{{0,58}}{_ALNUM})?"
)
FORMATS = {  # stricter than llguidance's
    "date": {"pattern": f"^{_DATE}$"},
    "time": {"pattern": f"^{_TIME}$"},
    "date-time": {"pattern": f"^{_DATE}[tT]{_TIME}$"},
    "hostname": {"pattern": rf"^{_HOST}(?:\.{_HOST})*$", "maxLength": 253},
}
FORMATS_OF_LLGUIDANCE = {"duration", "email", "ipv4", "ipv6", "uuid", "uri"}

SPACES = r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}"  # ECMA-262
IN_PATTERN = re.compile(r"(?s)\\c[A-Za-z]|\\.|\[\^?|\]|.")


def lark_of_schema(
    schema: Any, whitespace: str | None, strict: bool, name: str
) -> tuple[str, Callable[[], Steps]]:
    """Return the texts that a JSON schema allows in llguidance's Lark syntax, and a function for its steps.

    Keywords without effect are a warning.

    Args:
        whitespace: a regular expression of the blanks between JSON's parts. None: one space or none.
        strict: raise an error for unsupported keywords. False: ignore them, with a warning.

    Raises:
        DataError: no JSON schema, or unsupported keywords.
    """
    reader = _Reader(parsed_schema(schema, name))
    ignored = reader.unknown
    if reader.unsupported and strict:
        raise unsupported_keywords(reader.unsupported, name)
    if found := [*reader.unsupported, *ignored]:
        warnings.warn(f"{name}: these keywords are ignored: {_some(found)}", stacklevel=4)
    options = {
        "whitespace_pattern": " ?" if whitespace is None else whitespace,
        "lenient": not strict,
        "json_allow_general_unicode_escapes": reader.is_closed,
        "json_allowed_escapes": 'nrbtf"\\u' if reader.is_closed else 'nrbtf"\\',
    }
    whole = reader.schema if isinstance(reader.schema, dict) else {"allOf": [reader.schema]}
    return f"%json {json.dumps({**whole, 'x-guidance': options})}", partial(steps_of, whole)


def _some(found: list[str]) -> str:
    return ", ".join(found[:NAMED]) + (f" and {len(found) - NAMED} more" if len(found) > NAMED else "")


def unsupported_keywords(found: list[str], name: str) -> DataError:
    return DataError(
        f"{name}: expected a JSON schema without unsupported keywords, found {_some(found)}; write it without "
        "them, or ignore them with strict=False"
    )


def parsed_schema(schema: Any, name: str) -> Any:
    """Return a JSON schema of text, a dictionary, or a type that Pydantic reads.

    Raises:
        DataError: it is none.
    """
    try:
        if not isinstance(schema, JSON):
            schema = TypeAdapter(schema).json_schema()
        text = schema if isinstance(schema, str) else json.dumps(schema)
        parsed = json.loads(text, parse_constant=_no_number)
    except (ValueError, TypeError, NameError, RecursionError, PydanticUserError) as error:
        raise DataError(f"{name}: expected a JSON schema, found {shown(str(error))}; fix it") from None
    if not isinstance(parsed, dict | bool):
        raise DataError(f"{name}: expected an object as JSON schema, found {shown(text)}; fix it")
    return parsed


def json_reader(schema: Any) -> Callable[[str], Any]:
    """Return a function that reads a text of a schema: `json.loads`, or Pydantic's for a class."""
    if isinstance(schema, (*JSON, partial)) or inspect.isroutine(schema):  # Pydantic would call a function
        return json.loads
    return TypeAdapter(schema).validate_json


def _no_number(text: str) -> None:
    raise ValueError(f"{text}, which is no JSON")


class _Reader:
    """A JSON schema, rewritten for llguidance. Parts that no keyword reaches are left as they are."""

    def __init__(self, schema: Any) -> None:
        """schema: changed in place."""
        self.schema = schema
        self.unsupported: list[str] = []  # keywords and their places
        self.unknown: list[str] = []
        self.is_closed = True  # whether no object has other properties than those that are listed
        self.draft = 2020
        if isinstance(self.schema, dict):
            draft = DRAFT.fullmatch(str(self.schema.get("$schema", "")))
            if draft is not None:
                self.draft = int(draft[1] or draft[2])
            else:
                self.schema.pop("$schema", None)
        for part, place in parts_of(self.schema):
            self._rewrite(part, place)

    def _rewrite(self, part: dict[str, Any], place: str) -> None:
        """Find the unsupported and unknown keywords of a part, and rewrite others."""
        for needed, keys in NEEDED.items():
            if not {*needed} & {*part}:
                for key in keys:
                    part.pop(key, None)
        for key, value in [*part.items()]:
            if key in UNSUPPORTED and self.draft >= UNSUPPORTED[key]:
                if key in WITHOUT_EFFECT and value == WITHOUT_EFFECT[key]:
                    del part[key]
                else:
                    self.unsupported.append(f"{key!r} at {place}")
            elif key in BOUNDS and _is_whole(value) and abs(value) > EXACT:
                part[key] = _rounded(value, BOUNDS[key])
            elif key in COUNTS and isinstance(value, float) and value.is_integer():
                part[key] = int(value)
            elif key in ("const", "enum", "multipleOf") and any(map(_is_beyond_exact, _leaves(value))):
                self.unsupported.append(f"{key!r} with whole numbers beyond 2^53 at {place}")
            elif key not in SUPPORTED and key not in ANNOTATIONS:
                advice = did_you_mean(key, sorted(SUPPORTED), "", cutoff=0.8)
                self.unknown.append(f"{key!r} at {place}{f' ({advice})' if advice else ''}")
        if isinstance(part.get("pattern"), str):
            part["pattern"] = rust_pattern(part["pattern"])
        if isinstance(part.get("patternProperties"), dict):
            part["patternProperties"] = {rust_pattern(key): each for key, each in part["patternProperties"].items()}
        self._rewrite_format(part, place)
        self._check_properties(part, place)

    def _rewrite_format(self, part: dict[str, Any], place: str) -> None:
        name = part.get("format")
        if not isinstance(name, str):
            return
        types, others = part.get("type", "string"), part.get("allOf", [])
        if "string" not in (types if isinstance(types, list) else [types]):
            del part["format"]  # of strings only
        elif name in FORMATS and isinstance(others, list):
            del part["format"]
            part["allOf"] = [*others, FORMATS[name]]
        elif name not in FORMATS and name not in FORMATS_OF_LLGUIDANCE:
            self.unsupported.append(f"'format': {name!r} at {place}")

    def _check_properties(self, part: dict[str, Any], place: str) -> None:
        required = part.get("required", [])
        if not isinstance(required, list) or not all(isinstance(key, str) for key in required):
            return  # llguidance raises the error
        if "required" in part:
            part["required"] = required = [*dict.fromkeys(required)]
        is_open = part.get("additionalProperties", True) is not False
        if {"properties", "patternProperties", "required"} & {*part} and is_open:
            self.is_closed = False
        least = part.get("minProperties")
        can_repeat = is_open or "patternProperties" in part
        if can_repeat and isinstance(least, int) and least > 1 + len(required):
            self.unsupported.append(f"'minProperties' of {least}, above the required properties and one, at {place}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_beyond_exact(value: Any) -> bool:
    return _is_whole(value) and abs(value) > EXACT


def _leaves(value: Any) -> Iterator[Any]:
    """All values inside a JSON value."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list):
            waiting += each.values() if isinstance(each, dict) else each
        else:
            yield each


def _rounded(value: int, up: bool) -> int | float:
    """Return the nearest float64 that is not below a whole number (up), or not above it."""
    try:
        near = float(value)
    except OverflowError:
        return value
    if int(near) != value and (int(near) < value) == up:
        near = math.nextafter(near, math.inf if up else -math.inf)
    return int(near)


def rust_pattern(pattern: str) -> str:
    """Return a regular expression of ECMA-262 in Rust's syntax, which has nested sets, other spaces and another dot."""
    written, in_set = [], False
    for match in IN_PATTERN.finditer(pattern):
        piece = match.group()
        if piece[0] == "[" and not in_set:
            in_set = True
        elif piece == "]":
            in_set = False
        elif piece == r"\s":
            piece = SPACES if in_set else f"[{SPACES}]"
        elif piece == r"\S":
            piece = f"[^{SPACES}]"
        elif piece.startswith(r"\c") and len(piece) == 3:
            piece = rf"\x{{{ord(piece[2]) % 32:x}}}"
        elif piece == "." and not in_set:
            piece = r"[^\n\r\x{2028}\x{2029}]"
        elif in_set and piece[0] in "[&~":
            piece = "".join(f"\\{character}" for character in piece)
        written.append(piece)
    return "".join(written)
