"""An option of any package that names a user's code: a checkpoint's own is forgotten, and weights may need one."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.plugin.compat import loading, safe_checkpoints
from fairseq_llrnn.plugin.compat.loading import Places, build_model
from fairseq_llrnn.plugin.models import frozen_lm
from fairseq_llrnn.plugin.models.frozen_lm import find_model_files

USERS, THEIRS = "mine.py:Mine", "evil.py:Evil"


class Code:
    """As a module of the group `user_code`."""

    OPTION = "theirs"

    @staticmethod
    def trained(weights: Mapping[str, Any]) -> int:
        return int("theirs" in weights)

    @staticmethod
    def files(value: str | None) -> dict[str, Path]:
        return {"theirs": Path(str(value))}

    @staticmethod
    def check(option: str, checkpoint: str, weights: Mapping[str, Any], given: int) -> None:
        raise OptionError(f"{option}: {given} of {checkpoint}")


@pytest.fixture(autouse=True)
def announced(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (loading, safe_checkpoints, frozen_lm):
        monkeypatch.setattr(module, "load_all", lambda group: [Code] if group == "user_code" else [])


@pytest.mark.parametrize(
    ("overrides", "kept"), [({}, None), ({"theirs": None}, None), ({"theirs": USERS}, THEIRS)]
)
def test_what_a_checkpoint_names_is_forgotten_unless_the_user_names_it(
    overrides: dict[str, Any], kept: str | None
) -> None:
    """fairseq has put what the user names into its place by then."""
    state = {"args": Namespace(theirs=THEIRS), "cfg": {"task": Namespace(theirs=THEIRS), "model": Namespace()}}
    safe_checkpoints.forget_user_code(state, overrides)
    assert state["args"].theirs == state["cfg"]["task"].theirs == kept


def test_weights_are_checked_before_a_model_is_built() -> None:
    with pytest.raises(OptionError, match="--lm-theirs: 1 of it.pt"):
        build_model("it.pt", {"model": {}}, Places(options="--lm-{}", code={"theirs": USERS}))


def test_a_background_runs_none(trained: Path, tmp_path: Path) -> None:
    state = torch.load(trained / "checkpoint_last.pt", weights_only=False)
    state["model"]["theirs"] = torch.zeros(1)
    torch.save(state, tmp_path / "lm.pt")
    with pytest.raises(DataError, match="a model that was trained with --theirs cannot be a background"):
        find_model_files(str(tmp_path / "lm.pt"), Places(options="{} of --background model(…)"))
