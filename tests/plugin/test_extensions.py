"""What extensions make of a model: each part of it by one of them."""

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import pytest
from fairseq.dataclass import FairseqDataclass
from torch import nn

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.models import extensions, options
from fairseq_llrnn.plugin.models.extensions import Extension, all_head_arguments, non_default_options


class Makes(Extension):
    def __init__(self, **parts: Any) -> None:
        self.parts = parts

    def head_arguments(self, args: Any, task: Any) -> dict[str, Any]:
        return dict(self.parts)

    def source_embedding(self, args: Any, task: Any, size: int, row_rms: float | None) -> nn.Module | None:
        return self.parts.get("mass_change")


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> list[Extension]:
    mine: list[Extension] = [Makes(classes=[1]), Makes(classes=[2], mass_change=nn.Identity())]
    for module in (extensions, options):
        monkeypatch.setattr(module, "EXTENSIONS", mine)
    return mine


@dataclass
class SomeConfig(FairseqDataclass):
    width: int = 3
    path: str = "p"
    once: bool = False


def test_options_are_given_that_differ_from_their_defaults() -> None:
    assert non_default_options(SomeConfig(), SomeConfig) == non_default_options(Namespace(), SomeConfig) == {}
    assert non_default_options(Namespace(width=0, path="", once=False), SomeConfig) == {"width": 0, "path": ""}


def test_classes_of_all_come_together_and_all_else_is_of_one(two: list[Extension]) -> None:
    found = all_head_arguments(Namespace(), None)
    assert found["classes"] == [1, 2] and isinstance(found["mass_change"], nn.Identity)
    assert options.source_embedding(Namespace(), None, 4) is found["mass_change"]
    two.append(Makes(mass_change=nn.Identity()))
    with pytest.raises(OptionError, match="several options set the mass_change of the model; remove all but one"):
        all_head_arguments(Namespace(), None)
    with pytest.raises(OptionError, match="expected one option for the embedding of the encoder"):
        options.source_embedding(Namespace(), None, 4)
