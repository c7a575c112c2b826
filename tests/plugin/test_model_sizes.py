"""A checkpoint that asks for a larger model than it holds is refused in one line, before memory or time are spent."""

import argparse
import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from tiny_world import World, read_checkpoint
from torch import nn

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.plugin.compat import user_errors
from fairseq_llrnn.plugin.compat.checkpoint_sizes import EXTRA_AT_ONCE, EXTRA_TENSORS, no_larger_than
from fairseq_llrnn.plugin.compat.loading import Places
from fairseq_llrnn.plugin.scoring.text_bits import load_text_scorer

LINEAR = {"weight": torch.zeros(3, 2), "bias": torch.zeros(3)}


def many(module: Callable[[], nn.Module], how_many: int = 10**8) -> None:
    nn.ModuleList(module() for _ in range(how_many))


@pytest.mark.parametrize(
    "build",
    [
        lambda: nn.Linear(10**9, 10**9),
        lambda: nn.Linear(2, 10**9),
        lambda: nn.Embedding(10**5, 10**5),
        lambda: nn.LSTM(10**9, 4),
        lambda: nn.Parameter(torch.randn(10**6, 10**6)),
        lambda: torch.arange(10**10),
        lambda: torch.zeros(10**5, 1) * torch.zeros(1, 10**5),
        lambda: many(lambda: nn.Linear(1, 1)),
        lambda: many(lambda: nn.LSTMCell(1, 1)),
        lambda: many(lambda: nn.Linear(100, 10_000)),
        lambda: nn.ParameterList(nn.Parameter(torch.zeros(0)) for _ in range(10**8)),
    ],
)
def test_what_is_larger_than_the_checkpoint(build: Callable[[], object]) -> None:
    with no_larger_than(LINEAR), pytest.raises(ValueError, match="checkpoint holds 9 numbers in 2 tensors"):
        build()


def test_what_is_not_goes_on() -> None:
    with no_larger_than(LINEAR):
        layer = nn.Linear(2, 3)
        layer.register_parameter("none", None)
        many(lambda: nn.Linear(2, 3, bias=False), EXTRA_TENSORS)
        torch.zeros(EXTRA_AT_ONCE)
        with no_larger_than({"a": torch.zeros(1).expand(10**4, 3 * 10**4)}):  # of the model of a background
            nn.Linear(2000, 2000)
        with pytest.raises(ValueError, match="checkpoint holds 9 numbers"):
            nn.Linear(2000, 2000)
    nn.Linear(2000, 2000)


@pytest.fixture
def state(trained: Path) -> dict[str, Any]:
    return read_checkpoint(trained / "checkpoint_best.pt")


def changed(state: dict[str, Any], part: str, option: str, value: object) -> dict[str, Any]:
    cfg = copy.deepcopy(state["cfg"])
    options = cfg[part]
    if isinstance(options, argparse.Namespace):
        setattr(options, option, value)
    else:
        options[option] = value
    return {**state, "cfg": cfg}


def in_llrnn(path: Path, world: World) -> None:
    load_text_scorer(str(path), 100, Places(data=str(world.data)))


def in_fairseq(path: Path, world: World) -> None:
    """As fairseq-validate, which has no task before."""
    checkpoint_utils.load_model_ensemble_and_task([str(path)])


WRONG = [
    *[("model", "decoder_layers", value) for value in (10**8, 10**30, "two", None, [2], 1e308, -1, 0, "9" * 10_000)],
    *[("model", name, 10**9) for name in ("decoder_embed_dim", "decoder_hidden_size")],
    *[("model", name, 10**5) for name in ("decoder_embed_dim", "decoder_hidden_size")],
    *[("model", "decoder_hidden_size", value) for value in ("wide", None, {}, -(10**9))],
    *[("model", "context_window", value) for value in (10**8, 1001, -1, "some")],
    ("model", "dropout", "much"),
    ("task", "tokens_per_sample", "many"),
    ("model", "_name", "nothing"),
]


@pytest.mark.parametrize(
    ("load", "part", "option", "value"),
    [*((in_llrnn, *wrong) for wrong in WRONG), *((in_fairseq, *WRONG[i]) for i in (2, 9, 11, 21, -1))],
)
def test_options_of_a_checkpoint(
    load: Callable[[Path, World], None], part: str, option: str, value: object, state: dict[str, Any], world: World,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv(user_errors.COMMAND, str(os.getpid()))
    torch.save(changed(state, part, option, value), tmp_path / "a.pt")
    with pytest.raises((DataError, OptionError)) as refused:
        load(tmp_path / "a.pt", world)
    assert len(str(refused.value)) < 600 and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "overrides", [{"decoder_layers": 10**8}, {"decoder_hidden_size": 7}, {"decoder_embed_dim": "wide"}]
)
def test_overrides_that_do_not_fit(
    trained: Path, monkeypatch: pytest.MonkeyPatch, overrides: dict[str, object]
) -> None:
    monkeypatch.setenv(user_errors.COMMAND, str(os.getpid()))
    path = str(trained / "checkpoint_best.pt")
    with pytest.raises(OptionError, match="--model-overrides .*: the model of .* cannot be built with these options"):
        checkpoint_utils.load_model_ensemble_and_task([path], overrides)
