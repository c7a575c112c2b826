"""JSON schemas as regular expressions, by outlines-core.

References are written out before, and what outlines-core would read over is an error.
"""

from __future__ import annotations

import json
from typing import Any

from fairseq_llrnn.errors import DataError, OptionError, from_checkout
from fairseq_llrnn.files.text_lines import shown

DEEPEST_SCHEMA = 60  # objects and arrays inside each other
MOST_PARTS = 20_000  # of a schema, references written out
RECURSIONS = 3  # of a reference to what holds it
IGNORED = (  # keywords that outlines-core reads over
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "uniqueItems", "contains", "not", "if",
    "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
    "unevaluatedItems",
)  # fmt: skip


def schema_regex(schema: str | dict[str, Any], whitespace: str | None, name: str) -> str:
    """The regular expression of the texts that a JSON schema allows, by outlines-core.

    Raises:
        OptionError: outlines-core is not installed.
        DataError: no JSON schema, or one with keywords that are not supported; one that is too deep or too large.
    """
    try:
        from outlines_core.json_schema import build_regex_from_schema
    except ImportError:
        raise OptionError(f"{name}: expected the package outlines-core, found none; {from_checkout('hf')}") from None
    try:
        parsed = json.loads(schema) if isinstance(schema, str) else schema
        text = json.dumps(parsed)
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{name}: expected a JSON schema, found {shown(str(error))}; fix it") from None
    if not isinstance(parsed, dict):
        raise DataError(f"{name}: expected an object as JSON schema, found {shown(text)}; fix it")
    expanded = _Schema(parsed, name).expand(parsed)
    if expanded is None:
        raise DataError(
            f"{name}: expected a JSON schema that a finite text matches, found {shown(text)}; make a property that "
            f"holds its own object optional, or allow null (at most {RECURSIONS} recursions are written out)"
        )
    try:
        return str(build_regex_from_schema(json.dumps(expanded), whitespace))
    except (ValueError, TypeError) as error:
        raise DataError(
            f"{name}: expected a JSON schema that outlines-core supports, found {shown(str(error))}; change the schema"
        ) from None


class _Schema:
    """A JSON schema whose references are written out.

    outlines-core would end a recursion in objects without their last property, `{"a": 1, }`. Here a part without a text
    within the recursions is left out, with all that requires it.
    """

    def __init__(self, schema: dict[str, Any], name: str) -> None:
        self.schema, self.name, self.num_parts = schema, name, 0

    def expand(self, part: Any, depth: int = 0, references: tuple[str, ...] = ()) -> Any:
        """Return a part without references; None if it has no text.

        Raises:
            DataError: keywords that outlines-core reads over; a bad reference; too many or too deep parts.
        """
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
        if not isinstance(part, dict):
            return part
        ignored = [key for key in IGNORED if key in part]
        if ignored:
            raise DataError(
                f"{self.name}: expected a schema without {ignored[0]!r}, which is not supported, found it; remove it, "
                "or use `pattern` or `enum`"
            )
        found = {key: value for key, value in part.items() if key not in ("$ref", "$defs", "definitions")}
        if [] in (found.get("enum"), found.get("type")):
            return None
        for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            if isinstance(found.get(key), list):
                parts = [self.expand(each, depth + 1, references) for each in found[key]]
                found[key] = [each for each in parts if each is not None]
                least = {"allOf": max(1, len(parts)), "prefixItems": len(parts)}.get(key, 1)
                if len(found[key]) < least:
                    return None
        if isinstance(found.get("properties"), dict):
            schemas = {key: self.expand(each, depth + 1, references) for key, each in found["properties"].items()}
            found["properties"] = {key: each for key, each in schemas.items() if each is not None}
            required = found.get("required")
            if isinstance(required, list) and any(key in required for key, each in schemas.items() if each is None):
                return None
        for key in ("items", "additionalProperties"):
            if key in found:
                found[key] = self.expand(found[key], depth + 1, references)
        if "items" in found and found["items"] is None:
            if found.get("minItems"):
                return None
            del found["items"]
            found["maxItems"] = 0
        if "additionalProperties" in found and found["additionalProperties"] is None:
            return None
        reference = part.get("$ref")
        if not isinstance(reference, str):
            return found
        if references.count(reference) > RECURSIONS:
            return None
        referred = self.expand(_referred(self.schema, reference, self.name), depth, (*references, reference))
        return {**found, **referred} if isinstance(referred, dict) else referred


def _referred(schema: dict[str, Any], reference: str, name: str) -> Any:
    found: Any = schema
    if reference != "#":
        for step in reference.removeprefix("#/").split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or key not in found or not reference.startswith("#/"):
                raise DataError(
                    f"{name}: expected references to parts of the schema (#/…), found {shown(reference)}; fix it"
                )
            found = found[key]
    return found
