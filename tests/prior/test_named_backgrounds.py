"""Backgrounds registered from outside (prior/named_backgrounds.py)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from fairseq_llrnn import registry
from fairseq_llrnn.backgrounds.algebra import Tempered
from fairseq_llrnn.backgrounds.background import Background
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.prior.background_terms import kind_of, read_background
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.named_backgrounds import Inputs, named_background, register_background
from fairseq_llrnn.prior.part import BuildContext, Part, PriorView, register_part
from fairseq_llrnn.prior.recipe import Recipe


@register_part("flattened")
@dataclass(frozen=True)
class FlattenedPart(Part):
    temperature: float

    is_base = True

    def background(self, below: Background, context: BuildContext) -> Background:
        return Tempered(below, self.temperature)


@register_background("flat", FlattenedPart, example="flat:2")
def read(source: str, prior: PriorView, inputs: Inputs) -> tuple[Part, dict[str, int]]:
    return FlattenedPart(float(source)), {"words": len(prior.symbols)}


def test_an_expression_names_it() -> None:
    symbols = ["<s>", "<pad>", "</s>", "<unk>", "le", "la"]
    prior = build_prior(symbols, Recipe(top_words=0, background="flat:2"))
    assert prior.find(FlattenedPart) == FlattenedPart(2.0)
    mixed = build_prior(symbols, Recipe(top_words=0, background="flat:2 times unigram"))
    assert mixed.expression is not None and str(mixed.expression) == "flat:2 times unigram"
    assert kind_of("flat:2") == ("flat", "2")


def test_nothing_behind_the_colon_is_answered_with_its_example() -> None:
    with pytest.raises(OptionError, match="found none; write e.g. flat:2"):
        read_background("flat:")


@register_background("flattest", FlattenedPart, example="flattest")
def read_flattest(source: str, prior: PriorView, inputs: Inputs) -> tuple[Part, dict[str, int]]:
    return FlattenedPart(100.0), {}


@pytest.mark.parametrize("text", ["flattest:3", "flattest(3)", "unigram:foo"])
def test_a_name_that_takes_no_text(text: str) -> None:
    with pytest.raises(OptionError, match="expected nothing after the name, found (3|foo); leave it out"):
        read_background(text)


def test_a_name_that_nobody_registered_is_a_file() -> None:
    assert named_background("nobody") is None
    assert kind_of("nobody:x") == ("", "nobody:x")
    assert kind_of("language:fr") == ("language", "fr")


def test_parts_of_systems_are_found_by_their_files(tmp_path: Path) -> None:
    for name in ("one/part.py", "one/other.py", "two/deep/part.py", "three/part.py"):
        file = tmp_path / "systems" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    of_files = {name: f"fairseq_llrnn.systems.{name}.part" for name in ("one", "three")}
    found = registry.names("parts", tmp_path)
    assert of_files.items() <= found.items() and "deep" not in found
