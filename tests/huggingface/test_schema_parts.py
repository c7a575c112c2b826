"""Parts of JSON schemas that only references reach, mistakes that llguidance does not read, and hostile schemas."""

import math
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface import schema_lengths
from fairseq_llrnn.huggingface.schema_lengths import Steps, steps_of
from fairseq_llrnn.huggingface.schema_parts import part_at, parts_of
from fairseq_llrnn.huggingface.schemas import lark_of_schema

ANCHOR = {"$anchor": "m", "not": {}}


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"$ref": "#m", "$defs": {"s": {"definitions": {"a/b": ANCHOR}}}}, "#/.defs/s/definitions/a~1b"),
        ({"properties": {"p": {"$ref": "#m", "$defs": {"s": ANCHOR}}}}, "#/properties/p/.defs/s"),
        ({"$ref": "#m", "$defs": {"s": {"items": {"$defs": {"s": ANCHOR}}}}}, "#/.defs/s/items/.defs/s"),
    ],
)
def test_anchors_are_in_any_definition(schema: dict[str, Any], place: str) -> None:
    with pytest.raises(DataError, match=f"found 'not' at {place}; write it without"):
        lark_of_schema(schema, None, True, "from_json_schema")
    assert not any("$anchor" in part for part, _ in parts_of({**schema, "$ref": "#", "properties": {}}))


def test_pointers_into_lists() -> None:
    schema = {"anyOf": [{"const": 1}, {"const": 2}]}
    found = [part_at(f"#/anyOf/{step}", schema) for step in ("1", "0", "2", "-1", "01", "²", "1" * 5000, "a", "")]
    assert found == [{"const": 2}, {"const": 1}, *[None] * 7]


@pytest.mark.parametrize(
    "mistake",
    [
        {"minLength": {}}, {"pattern": 3}, {"enum": False}, {"properties": True}, {"required": 5}, {"required": [5]},
        {"minItems": 1.5, "prefixItems": []}, {"anyOf": 3}, {"pattern": "{" + "9" * 5000},
        {"minProperties": 1, "patternProperties": 3},
    ],
)  # fmt: skip
def test_mistakes_in_parts_that_llguidance_does_not_read(mistake: dict[str, Any]) -> None:
    _, steps = lark_of_schema({"type": "null", "additionalItems": mistake}, None, True, "from_json_schema")
    assert steps() == Steps(math.inf, None, ())


def test_the_time_of_hostile_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not grow with the square of the size."""
    reads, sizes = [], []

    class Definitions(dict[str, Any]):
        def items(self) -> Any:
            reads.append(1)
            return super().items()

    assert len([*parts_of({"anyOf": [{"$ref": "#m"}] * 9, "$defs": Definitions(a={}, b={})})]) == 4
    assert len(reads) == 1
    plain = schema_lengths._Sizes._size_of
    monkeypatch.setattr(schema_lengths._Sizes, "_size_of", lambda *args: (sizes.append(1), plain(*args))[1])
    schema = {"anyOf": [{"type": "null"}, *({"allOf": [{"$ref": f"#/anyOf/{at}"}]} for at in range(99))]}
    assert steps_of(schema).largest == math.inf
    assert len(sizes) <= 20 * 200
