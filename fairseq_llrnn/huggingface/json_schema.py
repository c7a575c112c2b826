"""JSON schemas as regular expressions, by outlines-core, or as grammars of llguidance.

outlines-core reads one kind of keyword of each part of a schema, in the order of SELECTORS and then `type`, and ignores
the others. So parts are rewritten before. References and `allOf` are merged into the part that has them, and what is
next to `anyOf` into each of its alternatives. If outlines-core would ignore a keyword that restricts the texts,
`schema_regex` raises UnsupportedKeyword, and `json_grammar` rewrites the schema for llguidance. `oneOf` is read as
`anyOf`. An object has the listed `properties` in their order, and others only if `additionalProperties` or
`patternProperties` has a schema for them. A `pattern` is matched as a whole.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple
from urllib.parse import unquote

from fairseq_llrnn.errors import DataError, did_you_mean, need_library
from fairseq_llrnn.files.text_lines import shown
from fairseq_llrnn.huggingface.constraints import parse_regex

DEEPEST_SCHEMA = 60  # objects and arrays inside each other
MOST_PARTS = 20_000  # of a schema, references written out
RECURSIONS = 3  # of a reference to what holds it
LARGEST_COUNT = 2**32 - 2  # of a repetition in Python's regular expressions
LARGEST_BOUND = 2**53  # of a number, as a float64 has it
NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
SELECTORS = ("properties", "prefixItems", "enum", "const")
BY_TYPE: dict[str, tuple[str, ...]] = {  # keywords that restrict the texts of a type
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": NUMBERS,
    "integer": NUMBERS,
    "boolean": (),
    "null": (),
    "array": ("prefixItems", "items", "minItems", "maxItems"),
    "object": (
        "properties", "patternProperties", "required", "additionalProperties", "minProperties", "maxProperties",
    ),
}  # fmt: skip
LENGTHS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
BOUNDS = (("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties"))
ANYTHING = {"type": [kind for kind in BY_TYPE if kind != "integer"]}
DEFINITIONS = ("$defs", "definitions")
OF_ANY_TYPE = ("$ref", "type", "enum", "const", "allOf", "anyOf", "oneOf")
KEYWORDS = {*DEFINITIONS, *OF_ANY_TYPE, *(key for keys in BY_TYPE.values() for key in keys)}
ANNOTATIONS = {
    "$schema", "$id", "$anchor", "$comment", "$vocabulary", "title", "description", "default", "example", "examples",
    "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema", "discriminator",
    "externalDocs", "xml", "id",
}  # fmt: skip
BY_LLGUIDANCE = {*NUMBERS, "patternProperties"}
FORMATS = ("date-time", "date", "time", "uuid", "uri", "email")
FORMATS_BY_LLGUIDANCE = ("duration", "hostname", "ipv4", "ipv6")
NOT_SUPPORTED = {
    "uniqueItems", "contains", "minContains", "maxContains", "additionalItems", "not", "if", "then", "else",
    "propertyNames",
    "dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "nullable",
    "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor",
    "minDigits", "maxDigits", "minDigitsInteger", "maxDigitsInteger", "minDigitsFraction", "maxDigitsFraction",
    "minDigitsExponent", "maxDigitsExponent",
}  # fmt: skip


ESCAPE = re.compile(r"\\.", re.DOTALL)
OTHERWISE_IN_RUST = re.compile(r"\{,|\[\^?\]?[^\]]*?(?:\[|&&|~~|--)")  # without escapes


class UnsupportedKeyword(DataError):
    """A keyword that outlines-core would ignore, and its place. llguidance reads it."""


def schema_regex(schema: str | dict[str, Any], whitespace: str | None, name: str) -> str:
    """Return the regular expression of the texts that a JSON schema allows, by outlines-core.

    Groups with the flags `am` are the inside of JSON strings (`regex_automaton`).

    Raises:
        OptionError: outlines-core is not installed.
        UnsupportedKeyword: outlines-core would ignore a keyword. The other keywords that it reads are right.
        DataError: no JSON schema, or one that has unsupported keywords, or is too deep or too large.
    """
    need_library(name, "outlines_core", "hf")
    from outlines_core import json_schema

    try:
        re.compile(whitespace or "")
    except re.error as error:
        raise DataError(
            f"{name}: whitespace: expected a regular expression, found {shown(str(whitespace))} ({error}); fix it"
        ) from None
    formats = {format: getattr(json_schema, format.replace("-", "_").upper())[1:-1] for format in FORMATS}
    formats["time"] = formats["time"].replace(r"\\.", r"\.")  # a slip of outlines-core 0.2
    reader = _Schema(_parsed(schema, name), formats, name)
    expanded = reader.whole()
    if reader.unsupported is not None:
        raise UnsupportedKeyword(reader.unsupported)
    try:
        return str(json_schema.build_regex_from_schema(json.dumps(expanded), whitespace))
    except (ValueError, TypeError) as error:
        raise DataError(
            f"{name}: expected a JSON schema that outlines-core supports, found {shown(str(error))}; change the schema"
        ) from None


def json_grammar(schema: str | dict[str, Any], whitespace: str | None, name: str) -> str:
    """Return a Lark grammar of the texts that a JSON schema allows, for llguidance.

    Raises:
        DataError: as `schema_regex`.
    """
    expanded = _SchemaOfLLGuidance(_parsed(schema, name), dict.fromkeys(FORMATS, ""), name).whole()
    options = {"coerce_one_of": True, "whitespace_pattern": " ?" if whitespace is None else whitespace}
    return f"start: %json {json.dumps(expanded | {'x-guidance': options})}"


def _parsed(schema: str | dict[str, Any], name: str) -> dict[str, Any]:
    try:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        parsed = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{name}: expected a JSON schema, found {shown(str(error))}; fix it") from None
    if not isinstance(parsed, dict):
        raise DataError(f"{name}: expected an object as JSON schema, found {shown(text)}; fix it")
    return parsed


class _Keyword(NamedTuple):
    """A keyword of a part."""

    value: Any
    place: str  # of the part that has it, as a JSON pointer
    references: tuple[str, ...]  # that were followed to it


class _NoText(NamedTuple):
    """Instead of a part that no text matches: the reason."""

    place: str  # as a JSON pointer
    is_recursion: bool = False  # its text would need more than the RECURSIONS written out


class _Schema:
    """A JSON schema, rewritten for outlines-core.

    outlines-core would end a recursion in objects without their last property, `{"a": 1, }`. Here a part without a text
    within the recursions is left out, with all that requires it.
    """

    keywords = KEYWORDS - BY_LLGUIDANCE

    def __init__(self, schema: dict[str, Any], formats: dict[str, str], name: str) -> None:
        """formats: regular expressions by the values of `format`."""
        self.schema, self.formats, self.name, self.num_parts = schema, formats, name, 0
        self.supported = {*formats.values()}  # patterns
        self.unsupported: str | None = None  # the first keyword that needs llguidance, and its place

    def whole(self) -> Any:
        """Return the schema. Raises DataError if no finite text matches it, or as `expand`."""
        expanded = self.expand(self.schema)
        if isinstance(expanded, _NoText):
            advice = "allow a value there"
            if expanded.is_recursion:
                advice = (
                    "make a property that holds its own object optional, or allow null (at most "
                    f"{RECURSIONS} recursions are written out)"
                )
            raise DataError(
                f"{self.name}: expected a JSON schema that a finite text matches, found none for the part at "
                f"{expanded.place}; {advice}"
            )
        return expanded

    def expand(
        self, part: Any, place: str = "#", depth: int = 0, references: tuple[str, ...] = (),
        outer: dict[str, _Keyword] | None = None,
    ) -> Any:  # fmt: skip
        """Return a part as outlines-core reads it, or _NoText.

        Args:
            outer: keywords next to the `anyOf` whose alternative it is.

        Raises:
            DataError: a wrong or unsupported keyword, a bad reference, or too many or too deep parts.
        """
        keywords = dict(outer or {})
        if nothing := self._gather(part, place, depth, references, keywords):
            return nothing
        choice = next((key for key in ("anyOf", "oneOf") if key in keywords), None)
        if choice is not None:
            values, place, references = keywords.pop(choice)
            steps = [f"{place}/{choice}/{number}" for number in range(len(values))]
            ways = [self.expand(*way, depth + 1, references, keywords) for way in zip(values, steps, strict=True)]
            return _any_of(ways, place)
        found = {key: keyword.value for key, keyword in keywords.items()}
        for low, high in BOUNDS:
            if low in found and high in found and found[low] > found[high]:
                wanted = f"{low!r} of at most {high!r}"
                raise self._error(keywords[low].place, wanted, f"{found[low]} and {found[high]}")

        own_type = {"properties": "object", "prefixItems": "array"}
        types = _types(found)
        if types is not None and any(key in found and types != [kind] for key, kind in own_type.items()):
            ways = []
            for kind in types:
                read = (*BY_TYPE[kind], "enum", "const")
                outer = {key: keyword for key, keyword in keywords.items() if key in read}
                ways.append(self.expand({"type": kind}, place, depth + 1, references, outer))
            return _any_of(ways, place)

        def expanded(key: str, *steps: Any) -> Any:
            inner, at, followed = keywords[key]
            for step in steps:
                inner = inner[step]
            return self.expand(inner, "/".join([at, key, *map(_pointer_step, steps)]), depth + 1, followed)

        if "prefixItems" in found:
            found["prefixItems"] = [expanded("prefixItems", number) for number in range(len(found["prefixItems"]))]
            if nothing := next((each for each in found["prefixItems"] if isinstance(each, _NoText)), None):
                return nothing
        for key in ("properties", "patternProperties"):
            if key in found:
                found[key] = {name: expanded(key, name) for name in found[key]}
        for key in ("items", "additionalProperties"):
            if key in found:
                found[key] = expanded(key)
        return self._finished(found, place)

    def _gather(
        self, part: Any, place: str, depth: int, references: tuple[str, ...], keywords: dict[str, _Keyword]
    ) -> _NoText | None:
        """Add the keywords of a part, and of what it refers to. Return _NoText if it is sure to have none."""
        self.num_parts += 1
        if self.num_parts > MOST_PARTS:
            raise DataError(
                f"{self.name}: expected at most {MOST_PARTS:,} parts in a schema with its references written out, "
                "found more; use fewer references, or a smaller schema"
            )
        if depth > 2 * DEEPEST_SCHEMA:
            raise DataError(
                f"{self.name}: expected at most {DEEPEST_SCHEMA} objects and arrays inside each other, found more; "
                "make the schema flatter"
            )
        if isinstance(part, bool):
            return None if part else _NoText(place)
        if not isinstance(part, dict):
            raise self._error(place, "a schema, which is an object", shown(json.dumps(part)))
        for key, value in part.items():
            self._check(key, value, place)
            if key == "$ref":
                if references.count(value) > RECURSIONS:
                    return _NoText(place, is_recursion=True)
                referred = _referred(self.schema, value, self.name)
                if nothing := self._gather(referred, value, depth + 1, (*references, value), keywords):
                    return nothing
            elif key == "allOf":
                for number, each in enumerate(value):
                    if nothing := self._gather(each, f"{place}/allOf/{number}", depth + 1, references, keywords):
                        return nothing
            elif key in KEYWORDS - self.keywords:
                self._skip(repr(key), place)
            elif key in KEYWORDS and key not in DEFINITIONS:
                if key in LENGTHS:
                    value = int(value)
                before = keywords[key].value if key in keywords else value
                if key == "required":
                    value = list({**dict.fromkeys(before), **dict.fromkeys(value)})
                elif before != value:
                    advice = "parts that `allOf`, `anyOf` or `$ref` puts together cannot both have it; write one part"
                    raise self._error(place, f"one value of {key!r}", "another one", advice)
                keywords[key] = _Keyword(value, place, references)
        return None

    def _check(self, key: str, value: Any, place: str) -> None:
        """Raise DataError for an unknown or unsupported keyword, or a value that it cannot have."""
        if key in ANNOTATIONS or key.startswith("x-"):
            return
        if key in NOT_SUPPORTED:
            raise DataError(
                f"{self.name}: expected a schema without {key!r}, which is not supported, found it at {place}; remove "
                "it, or use `pattern`, `enum` or `anyOf`"
            )
        if key not in KEYWORDS:
            advice = did_you_mean(key, sorted(KEYWORDS | NOT_SUPPORTED), "remove it, or begin its name with x-")
            raise self._error(place, "keywords of JSON Schema", repr(key), advice)
        wanted, is_right = _values_of(key)
        if not is_right(value):
            advice = "leave it out" if key in NUMBERS else "fix it"
            if key == "type" and isinstance(value, str):
                advice = did_you_mean(value, BY_TYPE, "fix it")
            raise self._error(place, f"{wanted} as {key!r}", shown(json.dumps(value)), advice)

    def _finished(self, found: dict[str, Any], place: str) -> Any:
        """Return a part with the keywords that outlines-core reads, or _NoText.

        Raises:
            DataError: another keyword that would restrict the texts.
        """
        types = _types(found)
        if types == []:
            return _NoText(place)
        selector = next((key for key in SELECTORS if key in found), "type")
        others = [key for key in found if key not in (selector, "type")]
        if selector in ("enum", "const"):
            self._skip_ignored(selector, others, found, place)
            values = _values_of_types(found["enum"] if selector == "enum" else [found["const"]], types)
            return {"enum": [_quoted(value) for value in values]} if values else _NoText(place)
        if selector in ("properties", "prefixItems"):
            self._skip_ignored(selector, [*SELECTORS], found, place)
            return (self._object if selector == "properties" else self._tuple)(found, place)
        if types is None and others:
            of_type = next(kind for kind, keys in BY_TYPE.items() if others[0] in keys)
            raise self._error(place, f"a type next to {others[0]!r}", "none", f'add "type": "{of_type}"')
        if types is None:  # any value
            return ANYTHING
        part: dict[str, Any] = {"type": types}
        if "string" in types:
            part |= self._string(found, place)
        if "array" in types:
            part |= {key: found[key] for key in ("items", "minItems", "maxItems") if key in found}
            if isinstance(found.get("items"), _NoText):  # only the empty list is left
                if found.get("minItems"):
                    return found["items"]
                del part["items"]
                part["maxItems"] = 0
        if "object" in types:
            for key, most in (("minProperties", 1), ("maxProperties", 0)):
                if found.get(key, 0) > most:
                    self._skip(f"{key!r} above {most}", place)
            self._check_required(found, {}, place)
            of_objects = ("minProperties", "maxProperties", "additionalProperties")
            part |= {key: found[key] for key in of_objects if key in found}
            if isinstance(found.get("additionalProperties"), _NoText):
                if found.get("minProperties"):
                    return found["additionalProperties"]
                del part["additionalProperties"]
                part["maxProperties"] = 0
        return part

    def _string(self, found: dict[str, Any], place: str) -> dict[str, Any]:
        own = ("pattern", "format", "minLength", "maxLength")
        first, *others = [key for key in own if key in found] or [""]
        if first in ("pattern", "format"):
            self._skip_ignored(first, others, found, place)
            if first == "pattern":
                return {"pattern": f"(?am:{self._pattern(found['pattern'], place)})"}
            self._check_format(found["format"], place)
            if found["format"] in FORMATS:
                return {"pattern": f"(?am:{self.formats[found['format']]})"}
            self._skip(f"'format': {found['format']!r}", place)
            return {}
        return {key: found[key] for key in ("minLength", "maxLength") if key in found}

    def _check_format(self, format: str, place: str) -> None:
        known = (*FORMATS, *FORMATS_BY_LLGUIDANCE)
        if format not in known:
            advice = did_you_mean(format, known, "use `pattern`")
            raise self._error(place, f"one of {', '.join(known)} as 'format'", repr(format), advice)

    def _pattern(self, given: str, place: str) -> str:
        """Return a pattern without the anchors at its ends. Raises DataError unless it is one that we support."""
        pattern = _whole(given)
        try:
            if pattern not in self.supported:
                re.compile(pattern)
                parse_regex(f"(?am:{pattern})", f"{shown(given)} at {place}", self.name, has_json_strings=True)
                self.supported.add(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            wanted = "a regular expression in Python's syntax as 'pattern'"
            reason, advice = str(error), "fix it"
            if "global flags" in reason:  # which Python reads at the start of the whole expression only
                reason, advice = "global flags", "write them as in (?i:…)"
            raise self._error(place, wanted, f"{shown(given)} ({reason})", advice) from None
        return pattern

    def _object(self, found: dict[str, Any], place: str) -> Any:
        ignored = ["minProperties", "maxProperties"]
        additional = found.get("additionalProperties", ANYTHING)
        if additional != ANYTHING and not isinstance(additional, _NoText):
            ignored.append("additionalProperties")
        self._skip_ignored("properties", ignored, found, place)
        properties = self._properties(found, place)
        if isinstance(properties, _NoText):
            return properties
        required = [*map(_in_quotes, found.get("required", []))]
        return {"properties": {_in_quotes(key): each for key, each in properties.items()}, "required": required}

    def _properties(self, found: dict[str, Any], place: str) -> Any:
        """Return the properties that have a text, or _NoText if a required one has none."""
        self._check_required(found, found["properties"], place)
        required = (found["properties"][key] for key in found.get("required", []))
        if nothing := next((each for each in required if isinstance(each, _NoText)), None):
            return nothing
        return {key: each for key, each in found["properties"].items() if not isinstance(each, _NoText)}

    def _tuple(self, found: dict[str, Any], place: str) -> Any:
        length = len(found["prefixItems"])
        items = found.get("items", ANYTHING)
        ignored = [] if items == ANYTHING or isinstance(items, _NoText) else ["items"]
        ignored += ["minItems"] if found.get("minItems", 0) > length else []
        ignored += ["maxItems"] if found.get("maxItems", length) < length else []
        self._skip_ignored("prefixItems", ignored, found, place)
        return {"prefixItems": found["prefixItems"]}

    def _check_required(self, found: dict[str, Any], properties: dict[str, Any], place: str) -> None:
        unknown = [key for key in found.get("required", []) if key not in properties]
        if unknown:
            advice = did_you_mean(unknown[0], properties, "add it to `properties`")
            raise self._error(place, "names of `properties` as 'required'", repr(unknown[0]), advice)

    def _skip_ignored(self, read: str, keys: list[str], found: dict[str, Any], place: str) -> None:
        """Note the first of some keywords of a part that outlines-core ignores next to `read`."""
        ignored = next((key for key in keys if key != read and key in found), None)
        if ignored is not None:
            self._skip(f"{ignored!r} next to {read!r}", place)

    def _skip(self, keyword: str, place: str) -> None:
        self.unsupported = self.unsupported or f"{keyword} at {place}"

    def _error(self, place: str, wanted: str, found: str, advice: str = "fix it") -> DataError:
        return DataError(f"{self.name}: expected {wanted}, found {found} at {place}; {advice}")


class _SchemaOfLLGuidance(_Schema):
    """A JSON schema with its references and `allOf` merged, and all other keywords, for llguidance."""

    keywords = KEYWORDS

    def _finished(self, found: dict[str, Any], place: str) -> Any:
        types = _types(found)
        part = {key: False if isinstance(value, _NoText) else value for key, value in found.items()}
        if "enum" in found:
            part["enum"] = _values_of_types(found["enum"], types)
        if types == [] or part.get("enum") == []:
            return _NoText(place)
        if "format" in found:
            self._check_format(found["format"], place)
        if "pattern" in found:
            part["pattern"] = f"^(?:{self._same_in_rust(found['pattern'], place)})$"
        if "patternProperties" in found:
            schemas = found["patternProperties"].items()
            part["patternProperties"] = {key: not isinstance(each, _NoText) and each for key, each in schemas}
            for key in found["patternProperties"]:
                self._same_in_rust(key, place)
        if "properties" in found:
            part["properties"] = self._properties(found, place)
            if isinstance(part["properties"], _NoText):
                return part["properties"]
            part["additionalProperties"] = part.get("additionalProperties") or False
        return part

    def _same_in_rust(self, given: str, place: str) -> str:
        pattern = self._pattern(given, place)
        if OTHERWISE_IN_RUST.search(ESCAPE.sub("x", pattern)):
            wanted = "a pattern that Rust, in llguidance, reads as Python does"
            advice = r"write \[, \&, \~ and \- for [, &, ~ and - inside of brackets, and {0,n} for {,n}"
            raise self._error(place, wanted, shown(given), advice)
        return pattern


def _values_of(key: str) -> tuple[str, Any]:
    """Return what the value of a keyword must be, in words and as a predicate."""

    def is_schema(value: Any) -> bool:
        return isinstance(value, dict | bool)

    def is_list(value: Any, of: Any) -> bool:
        return isinstance(value, list) and all(map(of, value))

    if key in NUMBERS:
        wanted = "a number above 0 and at most 2^53" if key == "multipleOf" else "a number from -2^53 to 2^53"
        least = 0 if key == "multipleOf" else -LARGEST_BOUND - 1
        return wanted, lambda value: type(value) in (int, float) and least < value <= LARGEST_BOUND
    if key in LENGTHS:
        return (
            "a whole number of at least 0",
            lambda value: type(value) in (int, float) and 0 <= value <= LARGEST_COUNT and value % 1 == 0,
        )
    if key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return "a list of schemas", lambda value: is_list(value, is_schema)
    if key in ("properties", "patternProperties", *DEFINITIONS):
        return "an object of schemas", lambda value: isinstance(value, dict) and all(map(is_schema, value.values()))
    if key in ("items", "additionalProperties"):
        return "a schema, which is an object,", is_schema
    if key == "required":
        return "a list of names", lambda value: is_list(value, lambda name: isinstance(name, str))
    if key == "type":
        wanted = f"one of {', '.join(BY_TYPE)}, or a list of these,"
        return wanted, lambda value: is_list([value] if isinstance(value, str) else value, tuple(BY_TYPE).__contains__)
    if key == "enum":
        return "a list of JSON values", lambda value: isinstance(value, list) and _is_json(value)
    if key == "const":
        return "a JSON value", _is_json
    return "a string", lambda value: isinstance(value, str)  # pattern, format, $ref


def _types(found: dict[str, Any]) -> list[str] | None:
    """Return the value of `type` as a list. None if there is none."""
    types = found.get("type")
    return [types] if isinstance(types, str) else types


def _any_of(ways: list[Any], place: str) -> Any:
    """Return the alternatives that have a text."""
    texts = [way for way in ways if not isinstance(way, _NoText)]
    return {"anyOf": texts} if texts else _NoText(place, any(way.is_recursion for way in ways))


def _values_of_types(values: list[Any], types: list[str] | None) -> list[Any]:
    """Return the values of some types. None: all types."""
    if types is None:
        return values
    values = [value for value in values if any(_is_of(value, kind) for kind in types)]
    if "integer" in types:  # outlines-core writes 1.0 otherwise
        values = [int(value) if _is_of(value, "integer") else value for value in values]
    return values


def _is_json(value: Any) -> bool:
    """Whether a value has no NaN and no infinity."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _is_of(value: Any, kind: str) -> bool:
    """Whether a value is of a type of JSON Schema."""
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float):
        return kind == "number" or (kind == "integer" and value.is_integer())
    types: dict[str, type] = {"null": type(None), "string": str, "array": list, "object": dict}
    return isinstance(value, types.get(kind, int)) and kind != "boolean"


def _in_quotes(text: str) -> str:
    """Return a text as JSON writes it between quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _quoted(value: Any) -> Any:
    """Return a value of `enum` whose keys outlines-core can put into a regular expression as they are."""
    if isinstance(value, dict):
        return {re.escape(_in_quotes(key)): _quoted(each) for key, each in value.items()}
    return [_quoted(each) for each in value] if isinstance(value, list) else value


def _whole(pattern: str) -> str:
    """Return a pattern without ^ at its beginning and $ at its end."""
    return re.sub(r"(?<!\\)((?:\\\\)*)\$$", r"\1", pattern.removeprefix("^"))


def _pointer_step(step: Any) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


def _referred(schema: dict[str, Any], reference: str, name: str) -> Any:
    found: Any = schema
    if reference != "#":
        for step in unquote(reference).removeprefix("#/").split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = {str(number): each for number, each in enumerate(found)}
            if not isinstance(found, dict) or key not in found or not reference.startswith("#/"):
                raise DataError(
                    f"{name}: expected references to parts of the schema (#/…), found {shown(reference)}; fix it"
                )
            found = found[key]
    return found
