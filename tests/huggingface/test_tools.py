"""Calls of tools in free text, and `parse`: objects instead of tokens."""

import copy
import json
import os
import re
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
import torch

from fairseq_llrnn.errors import DataError

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")
pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")

import transformers
from pydantic import BaseModel, field_validator
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.huggingface import BackgroundProcessor, LogLinearForCausalLM, Tag
from fairseq_llrnn.huggingface.token_texts import token_texts
from fairseq_llrnn.prior import Recipe

P = BackgroundProcessor
END = 1


class Weather(BaseModel):
    city: Literal["Oslo", "Rome"]
    days: int = 1


@dataclass
class Point:
    x: bool


class Checked(BaseModel):
    n: Literal[1, 2]

    @field_validator("n")
    @classmethod
    def is_two(cls, value: int) -> int:
        if value != 2:
            raise ValueError("n has to be 2")
        return value


def add(a: bool, b: bool = False) -> bool:
    raise AssertionError("called")


def undefined(a: "Missing") -> None:  # type: ignore[name-defined]  # noqa: F821
    raise AssertionError("called")


NESTED = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"sort": {"$ref": "#/$defs/Order"}, "again": {"$ref": "#"}, "mark": {"$ref": "#mark"}},
    "required": ["sort"], "$defs": {"Order": {"enum": ["up", "down"]}, "Mark": {"$anchor": "mark", "enum": ["!"]}},
}  # fmt: skip
TOOLS = {"weather": Weather, "a/b c%~é": NESTED, "add": add, "point": Point}
FREE, NEEDED = Tag("<tool_call>", "</tool_call>", optional=True), Tag("<tool_call>", "</tool_call>")


@cache
def of_kind(is_special: bool) -> tuple[Any, Any]:
    tokenizer = tiny_tokenizer("byte_level")
    if is_special:
        tokenizer.add_special_tokens({"additional_special_tokens": ["<tool_call>", "</tool_call>"]})
    return tokenizer, softmax(tokenizer)


def softmax(tokenizer: Any) -> Any:
    torch.manual_seed(2)
    special = {"bos_token_id": END, "eos_token_id": END, "pad_token_id": 0}
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 256, "initializer_range": 0.5}
    config = transformers.GPT2Config(vocab_size=len(tokenizer), **sizes, **special)
    return transformers.GPT2LMHeadModel(config).eval()


def accepts(processor: BackgroundProcessor, text: str, tokenizer: Any) -> bool:
    """Whether a text may end where it ends. Tags are special tokens if they can be."""
    texts = token_texts(tokenizer)
    written = []
    for part in re.split("(</?tool_call>)", text):
        special = part.encode() in texts.spelled
        pieces = [part.encode()] if special else [bytes([byte]) for byte in part.encode()]
        written += [texts.spelled.index(piece) for piece in pieces]
    states = processor.weights.start(1)
    for token in written:
        states = processor.weights.advance(states, np.array([token]))
    return processor.weights.rows(states, torch.zeros(1))[0].has(END)


def tagged(call: str) -> str:
    return f"<tool_call>{call}</tool_call>"


CALL = '{"name": "weather", "arguments": {"city": "Oslo"}}'
TAGGED = tagged(CALL)


@pytest.mark.parametrize("is_special", [False, True])
@pytest.mark.parametrize(
    ("text", "free", "needed", "alone"),
    [
        ("Oslo.", True, False, False), (TAGGED, True, True, False), (CALL, True, False, True),
        (f"I call\n{TAGGED}\n{TAGGED} twice", True, True, False), (TAGGED[:-1], False, False, False),
        (f"<tool_call>\n{CALL}\n</tool_call>", True, True, False), ("<tool_call>", False, False, False),
        (TAGGED.replace("Oslo", "Paris"), False, False, False),
        (TAGGED.replace("weather", "wether"), False, False, False),
        (TAGGED.replace("}}", ', "wind": 1}}'), False, False, False),
        (tagged('{"name":"point","arguments":{"x":true}}'), True, True, False),
        (tagged('{"name":"a/b c%~é","arguments":{"sort":"up","again":{"sort":"down"}}}'), True, True, False),
        (tagged('{"name":"a/b c%~é","arguments":{"sort":"left"}}'), False, False, False),
        (tagged('{"name":"a/b c%~é","arguments":{"sort":"up","mark":"!"}}'), True, True, False),
        (tagged('{"name":"add","arguments":{"a":true}}'), True, True, False),
        (tagged('{"name":"add","arguments":{"b":true}}'), False, False, False),
    ],
)  # fmt: skip
def test_what_calls_are(text: str, free: bool, needed: bool, alone: bool, is_special: bool) -> None:
    tokenizer, _ = of_kind(is_special)
    for after, expected in ((FREE, free), (NEEDED, needed), (None, alone)):
        assert accepts(P.from_tools(TOOLS, tokenizer, after=after), text, tokenizer) == expected
    assert accepts(P.from_tools(TOOLS, tokenizer), text, tokenizer) == free, "the default"


def test_the_list_of_a_chat_template() -> None:
    tokenizer, _ = of_kind(False)
    openai = {"type": "function", "function": {"name": "weather", "parameters": Weather.model_json_schema()}}
    for tools in ([add, openai], [openai["function"], add], (add, openai)):
        processor = P.from_tools(tools, tokenizer, after=NEEDED)
        assert accepts(processor, TAGGED, tokenizer)
        assert accepts(processor, tagged('{"name":"add","arguments":{"a":true}}'), tokenizer)
        assert not accepts(processor, TAGGED.replace("Oslo", "Paris"), tokenizer)
    nothing: dict[str, Any] = {"type": "object", "properties": {}}
    for parameters in ({}, {"parameters": None}, {"parameters": {}}, {"parameters": nothing}):
        now = {"type": "function", "function": {"name": "now", **parameters}}
        processor = P.from_tools([now], tokenizer, after=None)
        assert accepts(processor, '{"name": "now", "arguments": {}}', tokenizer)
        assert not accepts(processor, '{"name": "now", "arguments": 1}', tokenizer)


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ({}, "expected schemas by name, or a list of functions and dictionaries .*, found {}; give at least one tool"),
        ([], "expected schemas by name"), ("add", "expected schemas by name"), ({1: add}, "expected schemas by name"),
        ([{"type": "object"}], "expected schemas by name"), ([3], "expected schemas by name"),
        ([add, {"name": "add"}], r"expected tools with different names, found \['add', 'add'\]; rename one"),
        ({"f": {"not": {}}}, "expected a JSON schema without unsupported keywords, found 'not' at #/\\$defs/f; write"),
        (
            [{"name": "f", "inputSchema": {"type": "object"}}],
            "expected a tool with the keys description, name, parameters, .*, found 'inputSchema'; rename it",
        ),
        ([undefined], "undefined: expected a JSON schema, found .*Missing.*; fix it"),
        ({"\ud800": add}, "expected a JSON schema that llguidance reads"),
        ({"f": [1]}, "f: expected an object as JSON schema, found .*; fix it"),
        ({"f": {"$ref": "#/$defs/no"}}, "expected a JSON schema that llguidance reads within its limits"),
    ],
)  # fmt: skip
def test_tools_that_are_none(tools: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"^from_tools: {message}"):
        P.from_tools(tools, of_kind(False)[0])


@pytest.mark.parametrize(
    ("search", "is_special"),
    [({}, False), ({"num_beams": 3}, True), ({"do_sample": True, "num_return_sequences": 2}, True)],
)
def test_parsed_texts(search: dict[str, Any], is_special: bool) -> None:
    tokenizer, model = of_kind(is_special)
    many = 2 if "do_sample" in search else 1
    prompts = torch.tensor([[5, 6], [7, 8]])
    options = {"max_new_tokens": 70, "attention_mask": torch.ones_like(prompts), **search}

    def values(processor: BackgroundProcessor, **more: Any) -> list[Any]:
        found = processor.generate(model, prompts, parse=True, **options, **more)
        assert isinstance(found, list) and len(found) == 2 * many
        return found

    assert all(isinstance(value, Weather) for value in values(P.from_json_schema(Weather, tokenizer)))
    after = P.from_json_schema(list[Point], tokenizer, after="</think>")
    assert all(isinstance(point, Point) for value in values(after, return_dict_in_generate=True) for point in value)
    assert {*values(P.from_json_schema({"enum": [1, 2]}, tokenizer))} <= {1, 2}
    assert {*values(P.from_regex("yes|no", tokenizer, after=":"))} <= {"yes", "no"}
    product = P.from_regex("[a-z ]*", tokenizer) * P.from_regex(".*o", tokenizer)
    assert all(text.endswith("o") for text in values(product))
    for calls in values(P.from_tools(TOOLS, tokenizer, after=NEEDED)):
        assert calls
        for call in calls:
            kind = {"weather": Weather, "point": Point}.get(call["name"], dict)
            assert isinstance(call["arguments"], kind) and list(call) == ["name", "arguments"]
    for row, value in enumerate(values(P.per_row([P.from_json_schema(Point, tokenizer), None]))):
        assert isinstance(value, Point if row < many else str)
    inputs, healed = P.from_json_schema(Weather, tokenizer).heal(["le ch", "the ca"])
    assert all(isinstance(value, Weather) for value in healed.generate(model, **inputs, parse=True, max_new_tokens=70))


def test_the_constraint_may_hold_the_string_that_ends_it() -> None:
    tokenizer, _ = of_kind(False)
    processor = P.from_json_schema({"type": "string"}, tokenizer, after=NEEDED)
    text = 'a <tool_call>"b</tool_call>"</tool_call>c<tool_call>"d"</tool_call>'
    assert accepts(processor, text, tokenizer)
    texts = token_texts(tokenizer)
    tokens = [texts.spelled.index(bytes([byte])) for byte in text.encode()]
    assert processor.parse(torch.tensor([[*tokens, END, 7], [*tokens, END, 0]])) == [["b</tool_call>", "d"]] * 2
    assert P.from_tools([add], tokenizer).parse(torch.tensor([tokens[:2]])) == [[]]


def test_texts_that_are_not_complete() -> None:
    tokenizer, model = of_kind(False)
    tokens = [token_texts(tokenizer).spelled.index(bytes([byte])) for byte in b'x<tool_call>{"x":true}']
    after = P.from_json_schema(Point, tokenizer, after="<tool_call>")
    assert after.parse(torch.tensor([tokens])) == [Point(True)]
    expected = r"^parse: expected a text with all of Tag\(begin='<tool_call>', .*, found .*; allow it more tokens"
    with pytest.raises(DataError, match=expected):
        after.parse(torch.tensor([tokens[:7]]))
    with pytest.raises(DataError, match=expected):
        P.from_json_schema(Point, tokenizer, after=NEEDED).parse(torch.tensor([tokens]))
    accepted = "^parse: expected a text that the schema and its class accept, found"
    with pytest.raises(DataError, match=f"{accepted} .*; allow it more tokens if it is cut off"):
        after.parse(torch.tensor([tokens[:-7]]))
    processor = P.from_json_schema(Checked, tokenizer) * P.from_regex(".*1.*", tokenizer)
    with pytest.raises(DataError, match=f"{accepted} .*n has to be 2"):
        processor.generate(model, torch.tensor([[5]]), max_new_tokens=30, parse=True)


def test_from_json_schema_reads_all_types_of_pydantic() -> None:
    tokenizer, _ = of_kind(False)
    texts = ((Literal["a"], '"a"'), (list[bool], "[true]"), (add, '{"a":true}'), (int, "7"), (Point, '{"x":true}'))
    for schema, text in texts:
        assert accepts(P.from_json_schema(schema, tokenizer), text, tokenizer)


def test_tokens_of_another_shape_or_that_the_tokenizer_lacks() -> None:
    tokenizer, _ = of_kind(False)
    regex = P.from_regex("[a-z]+", tokenizer)
    rows = P.per_row([regex, None])
    text = tokenizer("le chat")["input_ids"]
    wrong: list[Any] = [[text], None, torch.tensor(text), torch.tensor([[1.0]])]
    for tokens in wrong:
        with pytest.raises(DataError, match=r"^parse: expected whole numbers of shape \(N, T\), .* found"):
            regex.parse(tokens)
    for count in (1, 3):
        with pytest.raises(DataError, match="N a multiple of 2, found .*; give found"):
            rows.parse(torch.tensor([text] * count))
    more = torch.tensor([[len(tokenizer), *text, -100, len(tokenizer) + 9, END]] * 2)
    assert rows.parse(more) == regex.parse(more) == ["le chat"] * 2
    tagged = P.from_json_schema(Point, tokenizer, after=Tag("<a>", "</a>"))
    tokens = torch.tensor([[999, *tokenizer('<a>{"x": true}</a>')["input_ids"], 999, -1, END]])
    assert tagged.parse(tokens) == [[Point(True)]]


def test_free_rows_of_a_model_with_more_tokens_than_its_tokenizer() -> None:
    tokenizer, _ = of_kind(False)
    model = softmax(range(len(tokenizer) + 300))
    rows, prompts = P.per_row([P.from_regex("yes|no", tokenizer), None]), torch.tensor([[5, 6], [7, 8]])
    torch.manual_seed(1)
    search = {"attention_mask": torch.ones_like(prompts), "max_new_tokens": 20, "do_sample": True}
    found = rows.generate(model, prompts, **search)
    assert int(found.max()) >= len(tokenizer)
    assert rows.parse(found[:, 2:])[0] in ("yes", "no")


def test_texts_that_are_no_calls() -> None:
    tokenizer, _ = of_kind(False)
    tools = P.from_tools(TOOLS, tokenizer, after=None)
    texts = (
        "[]", "3", "null", '{"name": "point"}', '{"name": "line", "arguments": {}}', '{"arguments": {"x": true}}',
        '{"name": ["point"], "arguments": {}}', '{"name": "point", "arguments": {"x": true}, "y": 1}',
    )  # fmt: skip
    for text in texts:
        with pytest.raises(DataError, match="^parse: expected .*: expected name and arguments of weather, .*, add, p"):
            tools.parse(torch.tensor([tokenizer(text)["input_ids"]]))
    bracket = tokenizer.convert_tokens_to_ids("[")
    with pytest.raises(DataError, match="^parse: expected a text that the schema and its class accept, found"):
        P.from_json_schema(True, tokenizer).parse(torch.full((1, 100_000), bracket))


def test_parse_calls_no_function() -> None:
    tokenizer, _ = of_kind(False)
    for function in (add, partial(add, b=True)):
        read = P.from_json_schema(function, tokenizer)
        assert read.parse(torch.tensor([tokenizer('{"a": true}')["input_ids"]])) == [{"a": True}]


DATA = {"$ref": "#/x", "$anchor": "a", "pattern": r"\\s", "properties": {"$ref": "#"}}
OTHER_DATA = {"$ref": "#/$defs/t/x", "pattern": r"\\s", "properties": {"$ref": "#/$defs/t"}}
NAMES = {  # of properties
    "$ref": {"type": "integer"}, "const": {"$ref": "#/$defs/s"}, "$anchor": {"type": "boolean"},
    "default": {"$ref": "#/properties/$ref"}, "$defs": {"const": {"$ref": "#"}}, "allOf": {"$ref": "#/parts/a%20b"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "right", "wrong"),
    [
        ({"a": {"const": DATA}}, {"a": DATA}, {"a": OTHER_DATA}),
        ({"a": {"enum": [[DATA], 3]}}, {"a": [DATA]}, {"a": [OTHER_DATA]}),
        ({"a": {"const": [{"a": DATA}]}}, {"a": [{"a": DATA}]}, {"a": [{"a": OTHER_DATA}]}),
        ({"a": {"type": "integer", "default": DATA, "examples": [DATA]}}, {"a": 1}, {"a": DATA}),
        (NAMES, {"$ref": 1, "const": "u", "default": 2, "$defs": {"$ref": "#"}, "allOf": ["u"]}, {"const": "v"}),
        (NAMES, {"$anchor": True, "allOf": ["u"]}, {"$defs": {"$ref": "#/$defs/t"}}),
        (NAMES, {"default": 2}, {"allOf": ["v"]}),
    ],
)
def test_data_of_a_schema_has_no_references(properties: Any, right: Any, wrong: Any) -> None:
    """Keywords inside of `const`, `enum`, `default` and `examples` are data, and properties may have their names."""
    tokenizer, _ = of_kind(False)
    parts = {"a b": {"type": "array", "items": {"$ref": "#/parts/c"}}, "c": {"enum": ["u"]}}
    schema = {"type": "object", "properties": properties, "$defs": {"s": {"enum": ["u"]}}, "parts": parts}
    with pytest.warns(UserWarning, match="these keywords are ignored: 'parts' at #"):
        alone, tools = P.from_json_schema(schema, tokenizer), P.from_tools({"t": schema}, tokenizer, after=None)
    for value, is_right in ((right, True), (wrong, False)):
        assert accepts(alone, json.dumps(value), tokenizer) == is_right
        assert accepts(tools, json.dumps({"name": "t", "arguments": value}), tokenizer) == is_right
    assert tools.for_search(None, 0, 99).weights.least(tools.for_search(None, 0, 99).weights.start(1)) < 99


@pytest.mark.parametrize("is_inside", [False, True])
def test_two_tools_with_the_same_anchor(is_inside: bool) -> None:
    tokenizer, _ = of_kind(False)

    def schema(value: int) -> dict[str, Any]:
        of_anchor = {"$defs": {"a/b": {"$anchor": "m", "enum": [value]}}}
        part, whole = (of_anchor, {}) if is_inside else ({}, of_anchor)
        return {"type": "object", "properties": {"a": {**part, "$ref": "#m"}}, "required": ["a"], **whole}

    tools = P.from_tools({"one": schema(1), "two": schema(2)}, tokenizer, after=None)
    for name, value, is_right in (("one", 1, True), ("one", 2, False), ("two", 1, False), ("two", 2, True)):
        call = f'{{"name": "{name}", "arguments": {{"a": {value}}}}}'
        assert accepts(tools, call, tokenizer) == is_right, call


@pytest.mark.parametrize("search", [{"do_sample": True}, {"num_beams": 4}])
def test_other_ends_of_the_model_do_not_end_a_text(search: dict[str, Any]) -> None:
    """Chat models have several ends. Free text holds any token but these."""
    tokenizer, model = of_kind(False)
    others = [token for token, text in enumerate(token_texts(tokenizer).spelled) if not text.isascii()]
    ends, prompts = [END, *others], torch.tensor([[5, 6]] * 8)
    options = {"max_new_tokens": 30, "attention_mask": torch.ones_like(prompts), "eos_token_id": ends, **search}
    torch.manual_seed(1)
    for after in ("x", Tag("x", "y")):
        processor = P.from_regex("yes", tokenizer, after=after)
        for value in processor.generate(model, prompts, parse=True, **options):
            assert {*([value] if isinstance(value, str) else value)} == {"yes"}
    own = LogLinearForCausalLM.wrap(copy.deepcopy(model), tokenizer, Recipe(background="uniform"))
    for limit in ({}, {"longest": 30}):
        processor = P.from_regex("yes", tokenizer, after="x", **limit)
        found = own.generate(prompts, logits_processor=[processor], **options)
        assert processor.parse(found[:, 2:]) == ["yes"] * 8
    terms = P.from_terms(["yes"], tokenizer)
    assert all("yes" in text for text in terms.generate(model, prompts, parse=True, **options))
    rows = P.per_row([terms, None] * 4).generate(model, prompts, **options)[:, 2:]
    assert all(END in row for row in rows[::2].tolist())
    if "do_sample" in search:
        assert {*others} & {*rows[1::2].flatten().tolist()}, "free rows end as before"


@pytest.mark.parametrize("search", [{}, {"do_sample": True}, {"num_beams": 4}])
def test_other_ends_of_our_own_model_end_no_text_of_its_constraint(search: dict[str, Any]) -> None:
    tokenizer, model = of_kind(False)
    ends = [END, *tokenizer.convert_tokens_to_ids(["b", "c"])]
    regex = P.from_regex("[abcd]{4}", tokenizer)
    own = LogLinearForCausalLM.wrap(copy.deepcopy(model), tokenizer, Recipe(background="uniform"), regex)
    torch.manual_seed(1)
    prompts = torch.full((8, 1), END)
    for row in own.generate(prompts, max_new_tokens=9, eos_token_id=ends, pad_token_id=0, **search)[:, 1:].tolist():
        assert row.index(END) == 4 and not {*ends[1:]} & {*row}


def test_ends_that_are_no_tokens_forbid_none() -> None:
    """transformers allows −1 for no end."""
    tokenizer, model = of_kind(False)
    regex = P.from_regex(re.escape(tokenizer.decode([len(tokenizer) - 1])), tokenizer)
    own = LogLinearForCausalLM.wrap(copy.deepcopy(model), tokenizer, Recipe(background="uniform"), regex)
    search = {"max_new_tokens": 2, "eos_token_id": [END, -1, 9999], "pad_token_id": 0}
    prompt = torch.tensor([[END]])
    for found in (regex.generate(model, prompt, **search), own.generate(prompt, **search)):
        assert found[0].tolist() == [END, len(tokenizer) - 1, END]


def test_generate_takes_what_that_of_a_model_takes() -> None:
    tokenizer, model = of_kind(False)
    prompts, config = torch.tensor([[5, 6]]), transformers.GenerationConfig(max_new_tokens=5, pad_token_id=0)
    assert P.from_regex("yes", tokenizer).generate(model, prompts, config, logits_processor=None, parse=True) == ["yes"]
