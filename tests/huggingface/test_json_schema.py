"""JSON schemas: each keyword is read, or is one error that names it and its place."""

import json
import math
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
import torch
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.huggingface import BackgroundProcessor

pytest.importorskip("outlines_core", reason="outlines-core is not installed: pip install '.[hf]'")
pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

byte_level = cache(lambda: tiny_tokenizer("byte_level"))
STRING, NULL = {"type": "string"}, {"type": "null"}
AGE: dict[str, Any] = {"type": "integer", "minimum": 0, "exclusiveMaximum": 120}


def inside(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a/b": {"type": "array", "items": schema}}, "required": ["a/b"]}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"propertys": {}}, "keywords of JSON Schema, found 'propertys' at PLACE; did you mean 'properties'"),
        ({**STRING, "minlength": 3}, "found 'minlength' at PLACE; did you mean 'minLength'"),
        ({**STRING, "minimumm": 3}, "found 'minimumm' at PLACE; did you mean 'minimum'"),
        ({**STRING, "foo": 3}, "found 'foo' at PLACE; remove it, or begin its name with x-"),
        ({"type": "strnig"}, "one of string, number, .* as 'type', found '\"strnig\"' at PLACE; did you mean 'string'"),
        ({"type": ["null", 3]}, "or a list of these, as 'type', found .* at PLACE; fix it"),
        ({**STRING, "format": "datetime"}, "as 'format', found 'datetime' at PLACE; did you mean 'date-time'"),
        ({"anyOf": [NULL, {"itemss": {}}]}, "found 'itemss' at PLACE/anyOf/1; did you mean 'items'"),
        *(
            ({"type": kind, key: value}, f"a whole number of at least 0 as '{key}', found .* at PLACE; fix it")
            for kind, key in (("string", "minLength"), ("array", "maxItems"), ("object", "minProperties"))
            for value in (-1, "3", 2.5, True, None, 10**30, math.inf, math.nan)
        ),
        ({**STRING, "pattern": 3}, "a string as 'pattern', found '3' at PLACE"),
        ({**STRING, "pattern": "a)|(b"}, r"as 'pattern', found 'a\)\|\(b' \(unbalanced .* at PLACE; fix it"),
        ({**STRING, "pattern": "(?i)ab"}, r"as 'pattern', found '\(\?i\)ab' \(global flags\) at PLACE; write them as"),
        *(
            ({**STRING, "pattern": pattern}, rf"without {what}.*, found {re.escape(repr(pattern))} at PLACE; write")
            for pattern, what in (
                ("^a$|^b$", "anchors"), ("(?m:^a$)", "anchors"), ("a(?=b)", "lookaround"), (r"a\b", "anchors"),
            )
        ),
        ({"const": math.nan}, "a JSON value as 'const', found 'NaN' at PLACE; fix it"),
        ({"enum": [[1, math.inf]]}, "a list of JSON values as 'enum', found .* at PLACE; fix it"),
        ({"enum": "a"}, "a list of JSON values as 'enum', found"),
        ({"anyOf": {}}, "a list of schemas as 'anyOf', found '{}' at PLACE"),
        ({"type": "array", "items": [NULL]}, "a schema, which is an object, as 'items', found .* at PLACE"),
        ({"properties": ["a"]}, "an object of schemas as 'properties', found .* at PLACE"),
        ({"properties": {"a": {}}, "required": "a"}, "a list of names as 'required', found .* at PLACE"),
        ({"properties": {"one": {}}, "required": ["onee"]}, "as 'required', found 'onee' at PLACE; did you mean 'one'"),
        ({"type": "object", "required": ["a"]}, "as 'required', found 'a' at PLACE; add it to `properties`"),
        ({**STRING, "minLength": 5, "maxLength": 3}, "'minLength' of at most 'maxLength', found 5 and 3 at PLACE"),
        ({"type": "array", "minItems": 5, "maxItems": 3}, "'minItems' of at most 'maxItems', found 5 and 3 at PLACE"),
        ({"minLength": 3}, "a type next to 'minLength', found none at PLACE; add \"type\": \"string\""),
        ({"type": "integer", "maximun": 4}, "found 'maximun' at PLACE; did you mean 'maximum'"),
        *(
            ({"minimum": value}, r"a number from -2\^53 to 2\^53 as 'minimum', found .* at PLACE; leave it out")
            for value in ("0", True, math.inf, math.nan, -(2**63), 2**53 + 1)
        ),
        ({"multipleOf": 0}, r"a number above 0 and at most 2\^53 as 'multipleOf', found '0' at PLACE; leave it out"),
        ({"minimum": 1, "allOf": [{"minimum": 3}]}, "one value of 'minimum', found another one at PLACE/allOf/0"),
        (
            {"type": "object", "patternProperties": {"^a": {"maximun": 3}}},
            r"found 'maximun' at PLACE/patternProperties/\^a; did you mean 'maximum'",
        ),
        ({"type": "object", "patternProperties": {"(": NULL}}, r"found '\(' \(missing \), .*\) at PLACE; fix it"),
        *(
            ({**STRING, "pattern": pattern, "maxLength": 9}, "a pattern that Rust, in llguidance, reads as Python does")
            for pattern in ("[[a]b]", "^[a~~b]$", "[+--]", "[]&&a]", r"\[[^\]&&]", "a{,3}")
        ),
        ({"patternProperties": []}, "an object of schemas as 'patternProperties', found .* at PLACE; fix it"),
        ({"minimum": 1, "allOf": [{"foo": 3}]}, "found 'foo' at PLACE/allOf/0; remove it"),
        ({**STRING, "nullable": True}, "without 'nullable', which is not supported, found it at PLACE; remove it"),
        ({"type": "integer", "maxDigits": 1}, "without 'maxDigits', which is not supported, found it at PLACE"),
        ({"allOf": [STRING, NULL]}, "one value of 'type', found another one at PLACE/allOf/1"),
        ({"anyOf": [NULL], **STRING}, "one value of 'type', found another one at PLACE/anyOf/0"),
    ],
)  # fmt: skip
def test_one_error_each(schema: dict[str, Any], message: str, nested: bool) -> None:
    place = "#/properties/a~1b/items" if nested else "#"
    with pytest.raises(DataError, match=f"^from_json_schema: expected .*{message.replace('PLACE', place)}"):
        BackgroundProcessor.from_json_schema(inside(schema) if nested else schema, byte_level())


PERSON: dict[str, Any] = {"type": "object", "properties": {"age": AGE, "in": {"type": "array", "items": {"$ref": "#"}}}}
OF_LLGUIDANCE: list[tuple[dict[str, Any], str, list[Any], list[Any]]] = [  # schema, keyword, allowed, forbidden
    (AGE, "'minimum' at #", [0, 119], [-1, 120, 1.5, "a"]),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, "'exclusiveMinimum' at #", [0.5, 1], [0, 1.5]),
    ({"maximum": 3}, "'maximum' at #", [3, "a", None], [4]),
    ({"type": "integer", "multipleOf": 5}, "'multipleOf' at #", [0, 10], [3]),
    ({**STRING, "format": "ipv4"}, "'format': 'ipv4' at #", ["1.2.3.4"], ["1.2.3", "a"]),
    ({**STRING, "pattern": "^a+$", "maxLength": 3}, "'maxLength' next to 'pattern' at #", ["aaa"], ["aaaa", "b"]),
    ({**STRING, "format": "date", "minLength": 3}, "'minLength' next to 'format' at #", ["2020-01-02"], ["2020"]),
    ({"enum": ["a", "bcde"], "maxLength": 3}, "'maxLength' next to 'enum' at #", ["a"], ["bcde"]),
    ({"const": "ab", "pattern": "a."}, "'pattern' next to 'const' at #", ["ab"], ["a"]),
    ({"properties": {"a": NULL}, "enum": [{"a": None}, {}]}, "'enum' next to 'properties' at #", [{"a": None}], [3]),
    (
        {"type": "object", "properties": {"a": NULL}, "required": ["a"], "maxProperties": 2},
        "'maxProperties' next to 'properties' at #", [{"a": None}], [{}, {"a": None, "b": 1}],
    ),
    ({"type": "object", "minProperties": 2}, "'minProperties' above 1 at #", [{"a": 1, "b": 2}], [{"a": 1}]),
    (
        {"type": "object", "patternProperties": {"^a": NULL}, "additionalProperties": False},
        "'patternProperties' at #", [{}, {"ab": None}], [{"ab": 1}, {"b": None}],
    ),
    (
        {"type": "array", "prefixItems": [NULL], "items": {"const": 1}, "maxItems": 3},
        "'items' next to 'prefixItems' at #", [[], [None, 1]], [[None, 2], [None, 1, 1, 1]],
    ),
    ({"type": "array", "prefixItems": [NULL], "minItems": 2}, "'minItems' next to 'prefix", [[None, 1]], [[None]]),
    ({"type": "array", "prefixItems": [NULL], "maxItems": 0}, "'maxItems' next to 'prefixItems' at #", [[]], [[None]]),
    (
        {"type": ["array", "null"], "items": {"oneOf": [{**STRING, "maxLength": 2}, {**STRING, "format": "ipv6"}]}},
        "'format': 'ipv6' at #/items/oneOf/1", [None, ["ab", "::1"]], [["abc"]],
    ),
    (PERSON, "'minimum' at #/properties/age", [{"age": 3, "in": [{"in": []}]}], [{"age": 120}, {"b": 1}]),
    (
        {"properties": {"a": {**STRING, "pattern": "[A-C]{2}"}, "n": AGE}, "additionalProperties": True},
        "'minimum' at #/properties/n", [{"a": "AC", "n": 3}, {}], [{"a": "xACx"}, {"n": 3, "x": 1}],
    ),
    (
        {"properties": {"a": NULL}, "additionalProperties": {"type": "integer"}},
        "'additionalProperties' next to 'properties' at #", [{"a": None}, {"b": 3}], [{"b": "x"}],
    ),
    (
        {"allOf": [{"properties": {"a": NULL}}, {"$ref": "#/$defs/b"}],
         "$defs": {"b": {"patternProperties": {"b": AGE}}}},
        "'patternProperties' at #/$defs/b", [{"a": None, "abc": 3}], [{"abc": -1}, {"c": 1}],
    ),
    (
        {"$schema": "https://my.org/schema", "$id": "https://my.org/x", "x-guidance": {"coerce_one_of": False},
         "oneOf": [AGE, {"enum": [200.0, "x", 1.5], "type": ["integer", "string"]}], "title": "t"},
        "'minimum' at #/oneOf/0", [3, 200, "x"], [1.5, 150],
    ),
    ({**STRING, "pattern": r"[\[\-&]\{,", "maxLength": 5}, "'maxLength' next to 'pattern'", ["&{,", "[{,"], ["&"]),
    ({"type": "object", "properties": {"a": {"enum": []}, "b": AGE}}, "'minimum'", [{}, {"b": 1}], [{"a": 1}]),
    ({"type": "array", "items": False, "prefixItems": [AGE]}, "'minimum' at #/prefixItems/0", [[1]], [[1, 2]]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(OF_LLGUIDANCE)))
def test_keywords_that_llguidance_reads(case: int) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
    schema, keyword, allowed, forbidden = OF_LLGUIDANCE[case]
    weights = BackgroundProcessor.from_json_schema(schema, byte_level()).weights
    for values, wanted in ((allowed, True), (forbidden, False)):
        for value in values:
            assert _is_allowed(weights, json.dumps(value)) == wanted, value
    for options in ({"longest": 9}, {"canonical": True}):
        ((option, value),) = options.items()
        message = f"^from_json_schema: {option}={value} does not go with {re.escape(keyword)}.* llguidance reads; leave"
        with pytest.raises(OptionError, match=message):
            BackgroundProcessor.from_json_schema(schema, byte_level(), **options)  # type: ignore[arg-type]


def test_whitespace_of_both_packages() -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
    items: list[dict[str, Any]] = [{"type": "integer"}, {"type": "integer", "minimum": 0}]
    wanted = {None: {"[1,2]", "[1, 2]"}, "": {"[1,2]"}, r"[\n ]*": {"[1,2]", "[1, 2]", "[1,\n2]"}}
    for item, (whitespace, right) in product(items, wanted.items()):
        schema = {"type": "array", "items": item}
        weights = BackgroundProcessor.from_json_schema(schema, byte_level(), whitespace=whitespace).weights
        assert {text for text in ("[1,2]", "[1, 2]", "[1,\n2]") if _is_allowed(weights, text)} == right


def test_a_schema_that_llguidance_does_not_read() -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
    message = "with 'minimum' at # that llguidance reads within .*, found: Unsatisfiable schema: minimum .*; fix it"
    with pytest.raises(DataError, match=message) as raised:
        BackgroundProcessor.from_json_schema({"type": "integer", "minimum": 5, "maximum": 3}, byte_level())
    assert raised.value.__context__ is None  # one traceback, not two
    with pytest.raises(DataError, match=r"whitespace: expected a regular expression, found '\(' \(.*\); fix it"):
        BackgroundProcessor.from_json_schema(AGE, byte_level(), whitespace="(")


def test_without_llguidance_the_message_has_the_keyword(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(OptionError, match="with 'minimum' at #: expected the library llguidance, found none; "):
        BackgroundProcessor.from_json_schema({"type": "integer", "minimum": 5}, byte_level())


def test_a_place_behind_a_reference() -> None:
    schema = {"items": {"$ref": "#/$defs/x"}, "type": "array", "$defs": {"x": {"enumm": []}, "y": {"not": {}}}}
    with pytest.raises(DataError, match="found 'enumm' at #/\\$defs/x; did you mean 'enum'"):
        BackgroundProcessor.from_json_schema(schema, byte_level())


RECURSION = "make a property that holds its own object optional, or allow null"


@pytest.mark.parametrize(
    ("schema", "place", "advice"),
    [
        ({"anyOf": []}, "", "allow a value there"),
        ({"type": []}, "", "allow a value there"),
        ({"anyOf": [{"enum": []}, False]}, "", "allow a value there"),
        ({"allOf": [False]}, "/allOf/0", "allow a value there"),
        ({"prefixItems": [NULL, {"enum": []}]}, "/prefixItems/1", "allow a value there"),
        (
            {"properties": {"o": {"$ref": "#"}, "a": {"enum": []}, "b": False}, "required": ["a"]},
            "/properties/a", "allow a value there",
        ),
        ({"type": "array", "minItems": 3, "items": False}, "/items", "allow a value there"),
        ({"type": "object", "minProperties": 1, "additionalProperties": False}, "/additionalProperties", "allow"),
        ({"$ref": "#"}, "", RECURSION),
        ({"anyOf": [{"enum": []}, {"$ref": "#"}]}, "", RECURSION),
        ({"properties": {"a": {"$ref": "#"}, "b": False}, "required": ["a"]}, "/properties/a", RECURSION),
        ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, "/items", RECURSION),
        ({"properties": {"a": AGE, "c": {"$ref": "#"}}, "required": ["a", "c"]}, "/properties/c", RECURSION),
        ({"type": "integer", "minimum": 3, "enum": [2.5]}, "", "allow a value there"),
    ],
)  # fmt: skip
def test_a_schema_without_a_text(schema: dict[str, Any], place: str, advice: str) -> None:
    with pytest.raises(DataError, match=f"that a finite text matches, found none for the part at #{place}; {advice}"):
        BackgroundProcessor.from_json_schema(schema, byte_level())


@pytest.mark.parametrize("reference", ["#/anyOf/2", "#/anyOf/00", "#/anyOf/-1", "#/$defs/a%20b", "%23/anyOf/0"])
def test_a_reference_to_nothing(reference: str) -> None:
    schema = {"anyOf": [NULL, {"$ref": reference}], "$defs": {"a%20b": NULL}}
    with pytest.raises(DataError, match=rf"references to parts of the schema \(#/…\), found '{re.escape(reference)}'"):
        BackgroundProcessor.from_json_schema(schema, byte_level())


Case = tuple[dict[str, Any], Callable[[Any], object], list[Any], list[Any]]
CASES: list[Case] = [  # schema, whether a value is right, examples
    (
        {"title": "t", "description": "", "$comment": "", "x-y": {}, "default": 1, "examples": [], **STRING,
         "minLength": 2, "maxLength": 3},
        lambda v: isinstance(v, str) and 2 <= len(v) <= 3, ["ab", "abc"], ["a", "abcd", 12],
    ),
    ({**STRING, "pattern": "^a.{1,2}[^b]$"}, re.compile("a.{1,2}[^b]").fullmatch, ['a"\\', "a\\ \n"], ["ab"]),
    ({**STRING, "pattern": r'"\\n?(?-m:.)\d'}, re.compile(r'"\\n?.[0-9]').fullmatch, ['"\\"1', '"\\na2'], ['"\\a٣']),
    ({**STRING, "pattern": r"\$"}, lambda v: v == "$", ["$"], ["\\"]),
    ({**STRING, "format": "time"}, re.compile(r"\d\d:\d\d:\d\d(\.\d+)?Z?").fullmatch, ["01:02:03.4"], ["1"]),
    ({**STRING, "format": "email"}, lambda v: "@" in v, ["a@b.c", '"a"@b.c'], ["a"]),
    (
        {"type": "object", "properties": {'a"b': NULL}, "required": ['a"b']},
        lambda v: v == {'a"b': None}, [{'a"b': None}], [{}],
    ),
    (
        {"enum": [{"a.b": [1]}, 3, 2.5, "x", True], "type": ["object", "integer"]},
        lambda v: v in ({"a.b": [1]}, 3) and v is not True, [{"a.b": [1]}, 3], ["x", True, 2.5, {"acb": [1]}],
    ),
    ({"const": 1, "type": "number"}, lambda v: v == 1, [1], [2]),
    ({"type": "array", "items": {"title": "n", **NULL}, "maxItems": 2}, lambda v: {*v} <= {None}, [[], [None]], [[1]]),
    ({"type": "array", "items": False}, lambda v: v == [], [[]], [[None]]),
    ({"type": "object", "additionalProperties": False}, lambda v: v == {}, [{}], [{"a": None}]),
    ({"prefixItems": [{"const": 1}, True], "items": False, "minItems": 2}, lambda v: v[0] == 1, [[1, ["a"]]], [2, [1]]),
    (
        {"properties": {"a": {}}, "required": ["a"], "additionalProperties": True},
        lambda v: list(v) == ["a"], [{"a": 1}, {"a": {"b": [None]}}], [{}, 1, {"b": 1}],
    ),
    (
        {"allOf": [STRING, {"$ref": "#/$defs/a"}], "minLength": 2, "$defs": {"a": {"maxLength": 3}}},
        lambda v: 2 <= len(v) <= 3, ["ab"], ["a", "abcd"],
    ),
    (
        {"anyOf": [{"minLength": 3}, {"maxLength": 1}], **STRING},
        lambda v: len(v) != 2, ["a", "abc"], ["ab", None],
    ),
    (
        {"properties": {"a": NULL, "b": NULL}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        lambda v: bool(v), [{"a": None}, {"b": None}], [{}],
    ),
    (
        {"type": ["object", "null"], "properties": {"a": NULL}, "required": ["a"]},
        lambda v: v in (None, {"a": None}), [None, {"a": None}], [{}, []],
    ),
    (
        {"type": ["array", "string", "object"], "prefixItems": [NULL], "minLength": 2, "properties": {"a": NULL}},
        lambda v: v in ([None], {}, {"a": None}) or len(v) > 1, [[None], {}, "ab"], [[], "a", None],
    ),
    ({"type": ["null"], "properties": {"a": NULL}}, lambda v: v is None, [None], [{}]),
    ({"type": "integer", "enum": [1.0, 2.5, 3]}, lambda v: type(v) is int, [1, 3], [1.0, 2.5, 2]),
    ({"type": ["integer", "null"], "const": -2.0}, lambda v: v == -2, [-2], [-2.0, None]),
    ({"type": "number", "enum": [1.0, 2.5]}, lambda v: v in (1, 2.5), [1.0, 2.5], [3]),
    ({**STRING, "minLength": 2.0, "maxLength": 3.0}, lambda v: 2 <= len(v) <= 3, ["ab", "abc"], ["a", "abcd"]),
    (
        {"anyOf": [{"$ref": "#/anyOf/1/prefixItems/0"}, {"prefixItems": [{"$ref": "#/anyOf/2"}]}, NULL]},
        lambda v: v in (None, [None]), [None, [None]], [[]],
    ),
    (
        {"anyOf": [{"$ref": "#/$defs/a%20b"}, {"$ref": "#/$defs/c~1%25%7E0"}],
         "$defs": {"a b": NULL, "c/%~": {"const": 1}}},
        lambda v: v in (None, 1), [None, 1], [2],
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_texts_of_a_schema(case: int) -> None:
    """Random texts are JSON of the schema, and single values are allowed or not."""
    schema, is_right, allowed, forbidden = CASES[case]
    (automaton,) = BackgroundProcessor.from_json_schema(schema, byte_level()).weights.bytes
    generator = np.random.default_rng(case)
    for _ in range(20):
        text = _random_text(automaton, generator)
        assert is_right(json.loads(text, strict=False)), text
    for values, wanted in ((allowed, True), (forbidden, False)):
        for value in values:
            assert _is_accepted(automaton, json.dumps(value, ensure_ascii=False)) == wanted, value


def test_a_recursive_schema() -> None:
    """At most three recursions are written out, and what is allowed is valid JSON."""
    node = {"type": "object", "properties": {"v": {"type": "null"}}, "required": ["v", "next"]}
    node["properties"]["next"] = {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}  # type: ignore[index]
    schemas: list[tuple[dict[str, Any], Callable[[int], str]]] = [
        ({"$ref": "#/$defs/node", "$defs": {"node": node}}, lambda n: '{"v":null,"next":' * n + "null" + "}" * n),
        ({"type": "array", "items": {"$ref": "#"}}, lambda n: "[" * n + "]" * n),
    ]
    for schema, nested in schemas:
        processor = BackgroundProcessor.from_json_schema(schema, byte_level(), whitespace="")
        (automaton,) = processor.weights.bytes
        depths = [depth for depth in range(1, 9) if _is_accepted(automaton, nested(depth))]
        assert depths in ([1, 2, 3, 4], [1, 2, 3, 4, 5])
        assert not _is_accepted(automaton, nested(1).replace('"next":null', "")) or schema["type"] == "array"
        generator = np.random.default_rng(1)
        for _ in range(20):
            json.loads(_random_text(automaton, generator))


def _is_accepted(automaton: Any, text: str) -> bool:
    state = 0
    for byte in text.encode():
        state = automaton.nexts[state, byte]
        if state < 0:
            return False
    return bool(automaton.finals[state] == 0)


def _is_allowed(weights: Any, text: str) -> bool:
    tokens = byte_level().convert_tokens_to_ids([*"".join(byte_level().tokenize(text))])
    states = weights.start(1)
    for token in [*tokens, byte_level().eos_token_id]:
        (row,) = weights.rows(states, torch.zeros(1, weights.num_tokens))
        if token not in row.tokens.tolist():
            return False
        states = weights.advance(states, np.array([token]))
    return True


def _random_text(automaton: Any, generator: np.random.Generator) -> str:
    state, text = 0, b""
    while True:
        ways = [*np.flatnonzero(automaton.nexts[state] >= 0), *[-1] * (9 if automaton.finals[state] == 0 else 0)]
        byte = int(generator.choice(ways))
        if byte < 0:
            return text.decode()
        state, text = automaton.nexts[state, byte], text + bytes([byte])
