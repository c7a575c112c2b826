"""JSON schemas: which texts are allowed, which keywords are errors or warnings."""

import math
import os
import re
import sys
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
import torch
from pydantic import BaseModel
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.huggingface import BackgroundProcessor, Limits
from fairseq_llrnn.huggingface.schemas import rust_pattern
from fairseq_llrnn.huggingface.token_texts import token_texts

pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

byte_level = cache(lambda: tiny_tokenizer("byte_level"))
STRING, NULL, WHOLE = {"type": "string"}, {"type": "null"}, {"type": "integer"}
A: dict[str, Any] = {"properties": {"a": NULL}}
CLOSED = {"type": "object", "additionalProperties": False}
DATES = {**STRING, "format": "date"}
NODE = {**CLOSED, "properties": {"next": {"anyOf": [NULL, {"$ref": "#"}]}}, "required": ["next"]}


def weights_of(schema: Any, **options: Any) -> Any:
    return BackgroundProcessor.from_json_schema(schema, byte_level(), **options).weights


def is_allowed(weights: Any, text: str) -> bool:
    """Whether the bytes of a text, and the end after them, are allowed. Each byte is a token."""
    texts = token_texts(byte_level())
    tokens = [texts.later.index(bytes([byte])) for byte in text.encode()]
    states = weights.start(1)
    for token in [*tokens, byte_level().eos_token_id]:
        (row,) = weights.rows(states, torch.zeros(1, weights.num_tokens))
        if not row.dense(weights.num_tokens, torch.zeros(1))[token].isfinite():
            return False
        states = weights.advance(states, np.array([token]))
    return True


CASES: list[tuple[Any, list[str], list[str]]] = [  # schema, texts that are allowed, and others
    (STRING, ['"é"', r'"\u00e9"', r'"\u007f"', r'"\ud83d\ude00"'], [r'"\ud83d"', '"\n"', "3"]),
    ({**STRING, "maxLength": 2}, ['"é"', r'"\u00e9a"'], [r'"\u00e9ab"']),
    ({**STRING, "minLength": 2.0}, ['"ab"'], ['"a"']),
    ({**STRING, "pattern": "^a+$", "maxLength": 3}, ['"aaa"'], ['"aaaa"', '"b"']),
    ({**STRING, "pattern": "b"}, ['"abc"'], ['"ac"']),
    (
        {**STRING, "pattern": r"^[[a]\d.\s$"},
        ['"[3x "', '"a3\u2003\ufeff"'], ['"b3x "', r'"a3\r "', '"a٣x "', '"a3x\x85"'],
    ),
    ({"type": "number"}, ["1e5", "-1.5E-3", "0"], ["01", "1.", "+1"]),
    ({**WHOLE, "minimum": 0, "exclusiveMaximum": 120}, ["0", "119"], ["-1", "120", "1.5"]),
    ({**WHOLE, "maximum": 2**53 + 1}, [str(2**53)], [str(2**53 + 2)]),
    ({"type": "number", "minimum": 2**53 + 1}, [str(2**53 + 2)], [str(2**53)]),
    ({**WHOLE, "multipleOf": 5}, ["0", "10"], ["3"]),
    ({"const": -2.0}, ["-2"], ["2", "-2.5"]),
    ({"enum": ["a", [1, {"b": None}]]}, ['"a"', '[1, {"b": null}]'], ["[1]"]),
    (
        {"type": "array", "uniqueItems": False, "unevaluatedItems": True, "minContains": 2, "then": False},
        ["[1,1]"], [],
    ),
    ({"type": "array", "prefixItems": [NULL, WHOLE]}, ["[]", "[null]", '[null,1,"a"]'], ["[1]"]),
    ({"type": "array", "items": [NULL], "additionalItems": False}, ["[]", "[null]"], ["[null,null]"]),
    ({"allOf": [{"prefixItems": [{"const": 1}]}], "items": {"const": 2}, "type": "array"}, ["[]"], ["[1]", "[1,2]"]),
    ({"items": {"const": 2}, "allOf": [{"prefixItems": [{"const": 1}]}], "type": "array"}, ["[]"], ["[1]", "[1,2]"]),
    ({"allOf": [A], **CLOSED}, ["{}"], ['{"a":null}']),
    ({**CLOSED, "allOf": [A]}, ["{}"], ['{"a":null}']),
    ({**A, "type": "object", "additionalProperties": True}, ['{"a":null,"b":[3]}', "{}"], ['{"a":3}']),
    ({**A, **CLOSED}, ['{"a":null}', "{}"], ['{"b":1}', '{"a":null,"a":null}']),
    ({**A, "type": "object"}, ['{"b":1}', '{"a":null}'], [r'{"\u0061":1}', '{"a":1}']),
    ({"type": "object", "patternProperties": {"^a": NULL}}, ['{"ab":null,"b":1}'], ['{"ab":1}', r'{"\u0061":1}']),
    ({"type": "object", "required": ["x"], "additionalProperties": WHOLE}, ['{"x":1,"y":2}'], ["{}", '{"x":1,"x":2}']),
    ({"type": "object", "minProperties": 1}, ['{"a":1}'], ["{}"]),
    ({**CLOSED, **A, "properties": {"a": NULL, "b": NULL}, "minProperties": 1}, ['{"b":null}'], ["{}"]),
    ({"oneOf": [NULL, STRING]}, ["null", '"a"'], ["1"]),
    ({"anyOf": [{"minLength": 3}, {"maxLength": 1}], **STRING}, ['"a"', '"abc"'], ['"ab"', "null"]),
    ({"$ref": "#/$defs/a%20b~1", "$defs": {"a b/": NULL, "c": {"not": {}}}}, ["null"], ["1"]),
    ({"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "null"}}}, ["null"], ["1"]),
    (NODE, ['{"next":{"next":null}}', '{"next":' * 9 + "null" + "}" * 9], ["{}"]),
    (DATES, ['"2024-02-29"', '"2000-02-29"', '"2023-12-31"'], ['"2023-02-29"', '"1900-02-29"', '"2023-11-31"']),
    ({**DATES, "pattern": "^2", "minLength": 3}, ['"2023-12-31"'], ['"1999-12-31"', '"2"']),
    (
        {**STRING, "format": "date-time"},
        ['"2020-01-01T00:00:00+02:00"', '"2020-01-01t23:59:60.5Z"'],
        ['"2020-01-01T00:00:00"', '"2020-01-01T22:59:60Z"'],
    ),
    ({**STRING, "format": "time"}, ['"01:02:03.4Z"'], ['"01:02:03"', '"24:00:00Z"', '"22:59:60Z"']),
    (
        {**STRING, "format": "hostname"},
        ['"a.b-c.de"', '"abcd"', '"abc"', '"ab-c"', '"a-b"', f'"{"a" * 63}"'],
        ['"a--b.-c"', '"xn--a"', f'"{"a" * 64}"', f'"{"a." * 127}"', f'"{"a." * 126}ab"', '"a.b--"'],
    ),
    ({"format": "int32", **WHOLE}, ["1"], ['"a"']),
    ({"type": "object", "$schema": "https://my.org/schema", "x-guidance": {"lenient": True}}, ["{}"], []),
    (True, ["[1, 2]", "null"], ["[1,  2]", " 1"]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_texts_of_a_schema(case: int) -> None:
    schema, allowed, forbidden = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weights = weights_of(schema)
    assert [text for text in allowed if not is_allowed(weights, text)] == []
    assert [text for text in forbidden if is_allowed(weights, text)] == []


class Model(BaseModel, extra="forbid"):
    """A record."""

    name: str
    tags: list[Literal["a", "b"]] = []


@dataclass
class Record:
    """A record with another one in it."""

    age: int
    model: Model | None = None


def test_classes_as_schemas() -> None:
    weights = weights_of(Model)
    assert is_allowed(weights, '{"name":"é","tags":["b"]}') and not is_allowed(weights, '{"name":"x","tags":["c"]}')
    weights = weights_of(Record)
    assert is_allowed(weights, '{"age":3,"model":{"name":""}}') and not is_allowed(weights, '{"model":null}')
    with pytest.raises(DataError, match="^from_json_schema: expected a JSON schema, found .Unable to generate .*; fix"):
        weights_of(torch.Tensor)


def test_whitespace() -> None:
    wanted = {None: {"[1,2]", "[1, 2]"}, "": {"[1,2]"}, r"[\n ]+": {"[1,2]", "[1, 2]", "[1,\n2]", "[1,  2]"}}
    for whitespace, right in wanted.items():
        weights = weights_of({"type": "array", "items": WHOLE}, whitespace=whitespace)
        assert {t for t in ("[1,2]", "[1, 2]", "[1,\n2]", "[1,  2]") if is_allowed(weights, t)} == right


def inside(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a/b": {"type": "array", "items": schema}}, "required": ["a/b"]}


UNSUPPORTED: list[tuple[dict[str, Any], str]] = [
    ({"not": NULL}, "'not' at PLACE"),
    ({"type": "array", "uniqueItems": True, "contains": {}}, "'uniqueItems' at PLACE, 'contains' at PLACE"),
    ({"if": NULL, "then": False}, "'if' at PLACE, 'then' at PLACE"),
    ({"anyOf": [{"dependentRequired": {}}, {"$dynamicRef": "#a"}]}, "'dependentRequired' at PLACE/anyOf/0, .*/anyOf/1"),
    ({**STRING, "format": "idn-email"}, "'format': 'idn-email' at PLACE"),
    ({"const": 2**53 + 1}, r"'const' with whole numbers beyond 2\^53 at PLACE"),
    ({"enum": [[{"a": -(2**60)}]]}, r"'enum' with whole numbers beyond 2\^53 at PLACE"),
    ({"type": "object", "minProperties": 3, "required": ["a"]}, "'minProperties' of 3, above .* and one, at PLACE"),
]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(("schema", "message"), UNSUPPORTED)
def test_unsupported_keywords_are_one_error(schema: dict[str, Any], message: str, nested: bool) -> None:
    message = message.replace("PLACE", "#/properties/a~1b/items" if nested else "#")
    given = inside(schema) if nested else schema
    wanted = f"^from_json_schema: expected a JSON schema without unsupported keywords, found {message}; write it with"
    with pytest.raises(DataError, match=wanted):
        weights_of(given)
    with pytest.warns(UserWarning, match=f"^from_json_schema: these keywords are ignored: {message}$") as found:
        weights_of(given, strict=False)
    assert len(found) == 1 and found[0].filename.endswith("test_json_schema.py")


def test_unsupported_keywords_that_llguidance_finds() -> None:
    both = {"oneOf": [STRING, {"maxLength": 3}]}
    with pytest.raises(DataError, match=r"unsupported keywords, found 'oneOf' whose .* \(anyOf allows both\); write"):
        weights_of(both)
    assert is_allowed(weights_of(both, strict=False), '"a"')


def test_many_unsupported_keywords() -> None:
    with pytest.raises(DataError, match="found 'not' at #/anyOf/0, .*, 'not' at #/anyOf/11 and 88 more; write it"):
        weights_of({"anyOf": [{"not": {}}] * 50 + [{"not": {}}] * 50})


def test_unknown_keywords_are_one_warning() -> None:
    schema = {**A, "type": "object", "self": 3, "links": [], "_comment": "", "x-y": 1, "minimun": 3, "nullable": True}
    names = ("self", "links", "_comment", "x-y")
    message = ", ".join(f"'{name}' at #" for name in names) + r", 'minimun' at # \(did you mean 'minimum'\?\), 'nullab"
    with pytest.warns(UserWarning, match=f"^from_json_schema: these keywords are ignored: {message}") as found:
        weights = weights_of(schema)
    assert len(found) == 1 and is_allowed(weights, '{"a":null}') and not is_allowed(weights, '{"a":1}')


def test_keywords_of_other_drafts() -> None:
    schema = {"if": NULL, "then": False, "$schema": "http://json-schema.org/draft-04/schema#"}
    with pytest.warns(UserWarning, match="ignored: 'if' at #, 'then' at #$"):
        assert is_allowed(weights_of(schema), "null")


DEEP: dict[str, Any] = {}
for _ in range(2000):
    DEEP = {"items": DEEP}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "a JSON schema, found 'Expecting property name"),
        ("[]", r"an object as JSON schema, found '\[\]'"),
        ({"const": math.nan}, "a JSON schema, found 'NaN, which is no JSON'; fix it"),
        ({"const": {1, 2}}, "a JSON schema, found 'Object of type set is not JSON"),
        (DEEP, "a JSON schema, found 'maximum recursion depth"),
        ({"type": "strnig"}, "a JSON schema that llguidance reads within its limits, found: Invalid type: strnig; fix"),
        ({**WHOLE, "minimum": 5, "maximum": 3}, "found: Unsatisfiable schema: minimum .*; fix it"),
        ({"format": "date", "type": 3}, "found: type must be a string or array of strings"),
        ({"format": "date", "allOf": 3}, "found: allOf must be an array"),
        ({"required": "a"}, "llguidance reads within its limits, found: .*required"),
        ({"required": 5, "minProperties": 3}, "llguidance reads within its limits, found: .*required"),
        ({**STRING, "pattern": "(?=a)b"}, "found: regex parse error"),
        ({"$ref": "http://x/y"}, "found: Resource 'http://x/y' is not present"),
        ({"$ref": "#/$defs/a"}, "found: Pointer '/.defs/a' does not exist"),
        ({"type": "object", "patternProperties": {"a": {}, "b": {}}}, "found: patternProperty regexes .* not disjoint"),
    ],
)  # fmt: skip
def test_one_error_each(schema: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"^from_json_schema: expected .*{message}") as raised:
        weights_of(schema)
    assert raised.value.__context__ is None or raised.value.__suppress_context__


def test_limits_and_options() -> None:
    many = {"type": "object", "properties": {f"name{at}": STRING for at in range(300)}}
    for schema in (many, {"enum": [f"v{at:05}" for at in range(9000)]}, {**STRING, "maxLength": 500}):
        weights_of(schema)
    weights = weights_of({**STRING, "pattern": "^(a|b)*a(a|b){14}$"}, limits=Limits(states=20))
    with pytest.raises(DataError, match="too many states: 20 .*; raise the limit with limits=Limits.states=…"):
        is_allowed(weights, '"ababbabaabbbaaababaabbaba"')
    with pytest.raises(DataError, match="llguidance reads within its limits, found: regex parse error"):
        weights_of(WHOLE, whitespace="(")


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(OptionError, match="^from_json_schema: JSON schema: expected the library llguidance, found"):
        weights_of(NULL)


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (r"[[a&&~~]\[&\]", r"[\[a\&\&\~\~]\[&\]"),
        (r"\cA\S[\S]", rf"\x{{1}}[^{'SPACES'}][[^{'SPACES'}]]"),
        (r"\.[.]", r"\.[.]"),
        ("[^[]", r"[^\[]"),
    ],
)  # fmt: skip
def test_patterns_in_the_syntax_of_rust(pattern: str, written: str) -> None:
    spaces = re.escape(rust_pattern(r"\s")[1:-1])
    assert re.sub(spaces, "SPACES", rust_pattern(pattern)) == written
