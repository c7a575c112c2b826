"""Tools that a model may call: a JSON schema of all calls `{"name": …, "arguments": …}`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface.free_text import Tag
from fairseq_llrnn.huggingface.schema_parts import is_pointer, parts_of, pointer_step
from fairseq_llrnn.huggingface.schemas import json_reader, parsed_schema

Tools = Mapping[str, Any] | Sequence[Any]
TOOL_CALL = Tag("<tool_call>", "</tool_call>", optional=True)
KEYS = {"type", "name", "description", "parameters", "return", "strict"}  # of a tool
OTHERS = {"$ref", "allOf", "anyOf", "oneOf", "additionalProperties", "patternProperties"}  # may have more properties


def schema_of_calls(tools: Tools, name: str) -> tuple[dict[str, Any], Callable[[str], Any]]:
    """Return the JSON schema of a call of one of several tools, and a function that reads a call.

    Raises:
        DataError: no tools, two of one name, or no JSON schema of a tool.
    """
    definitions, calls, readers = {}, [], {}
    for tool, schema in _named(tools, name).items():
        place = _quoted(f"#/$defs/{pointer_step(tool)}")
        definitions[tool] = _moved(parsed_schema(schema, f"{name}: {tool}"), place)
        readers[tool] = json_reader(schema)
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"const": tool}, "arguments": {"$ref": place}},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )

    def read(text: str) -> dict[str, Any]:
        call = json.loads(text)
        if not isinstance(call, dict) or {*call} != {"name", "arguments"} or str(call["name"]) not in readers:
            raise ValueError(f"expected name and arguments of {', '.join(readers)}")
        return {**call, "arguments": readers[call["name"]](json.dumps(call["arguments"]))}

    return {"$defs": definitions, "anyOf": calls}, read


def _named(tools: Tools, name: str) -> dict[str, Any]:
    """Return the schema of each tool's arguments by its name."""
    if isinstance(tools, Mapping):
        pairs = [*tools.items()]
    else:
        try:
            pairs = [_named_tool(tool) for tool in tools]
        except DataError as error:
            raise DataError(f"{name}: {error}") from None
        except (KeyError, TypeError, AttributeError):
            pairs = []
    if not pairs or not all(isinstance(tool, str) for tool, _ in pairs) or isinstance(tools, str):
        raise DataError(
            f"{name}: expected schemas by name, or a list of functions and dictionaries as for apply_chat_template, "
            f"found {tools!r:.60}; give at least one tool"
        )
    if len({tool for tool, _ in pairs}) < len(pairs):
        raise DataError(f"{name}: expected tools with different names, found {[tool for tool, _ in pairs]}; rename one")
    return dict(pairs)


def _named_tool(tool: Any) -> tuple[str, Any]:
    if not isinstance(tool, Mapping):
        return tool.__name__, tool
    function = tool.get("function", tool)
    if others := {*function} - KEYS:
        raise DataError(f"expected a tool with the keys {', '.join(sorted(KEYS))}, found {min(others)!r}; rename it")
    return function["name"], function.get("parameters") or {"type": "object", "properties": {}}


def _moved(schema: Any, place: str) -> Any:
    """Return a schema, which changes, at another place of a document, without unlisted arguments.

    Anchors become pointers, since two tools may have the same one.
    """
    parts = [*parts_of(schema)]
    pointers = {f"#{part['$anchor']}": _quoted(at) for part, at in parts if isinstance(part.get("$anchor"), str)}
    for part, _ in parts:
        reference = part.get("$ref")
        if isinstance(reference, str) and (reference in pointers or is_pointer(reference)):
            part["$ref"] = place + pointers.get(reference, reference)[1:]
        if isinstance(part.get("$anchor"), str):
            del part["$anchor"]
    if isinstance(schema, dict):
        for key in ("$schema", "$id", "id"):
            schema.pop(key, None)
        if "properties" in schema and not OTHERS & {*schema}:
            schema["additionalProperties"] = False
    return schema


def _quoted(pointer: str) -> str:
    return quote(pointer, safe="#/", errors="surrogatepass")
