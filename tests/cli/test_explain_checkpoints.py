"""`llrnn explain` and checkpoints whose data went elsewhere, or that cannot be used: one clear line for each."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from small_corpus import Change, Explain
from tiny_world import World

# ---- where data and prior are ---------------------------------------------------------------------------------------


def test_data_that_went_elsewhere(explain: Explain, world: World, changed: Change) -> None:
    def move(state: dict[str, Any]) -> None:
        state["cfg"]["task"].update(data="gone/data-bin", prior=None)

    path = changed(move)
    assert explain("le", path=path).error == (
        f"{path} was trained with the data folder 'gone/data-bin', but there is no such folder, relative to the "
        "working directory or the checkpoint; name the folder with --data DATA-BIN"
    )
    assert explain("--data", "gone", "le", path=path).error == (
        "--data gone: expected the folder of fairseq-preprocess, found no such folder; give another one"
    )
    done = explain("--data", world.data, "le chat", path=path)  # its folder `prior` is the prior
    assert done.code == 0, done.err
    assert done.out == explain("le chat").out


def test_a_prior_that_went_elsewhere(explain: Explain, world: World, changed: Change, tmp_path: Path) -> None:
    bare = tmp_path / "data"
    bare.mkdir()
    shutil.copy(world.data / "dict.txt", bare)
    path = changed(lambda state: state["cfg"]["task"].update(prior="gone/prior"))
    found = explain("le chat", path=path)
    assert found.out == explain("le chat").out, "the one with its fingerprint, in the data folder"
    assert f"trained with the prior in 'gone/prior'; '{world.prior('prior')}' is used instead" in found.err
    path = changed(lambda state: state["cfg"]["task"].update(data=str(bare), prior="gone/prior"))
    assert explain("le", path=path).error == (
        f"{path}: expected the prior of its training, found none, or another one, in 'gone/prior', relative to the "
        "working directory or the checkpoint; name its folder with --prior DIR"
    )
    copy = path.parent / "copy"
    shutil.copytree(world.prior("prior"), copy)
    assert explain("--prior", copy, "le chat", path=path).out == explain("le chat").out


def test_a_prior_for_another_dictionary(explain: Explain, world: World, tmp_path: Path) -> None:
    (tmp_path / "dict.txt").write_text("le 1\n", encoding="utf-8")
    error = explain("--data", tmp_path, "le").error
    assert "the prior was made for another dictionary than" in error
    assert error.endswith("use the data folder and the prior that it was trained with")


# ---- checkpoints that cannot be used --------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [[1, 2], {"model": {}}, {"a": 1}, torch.zeros(3), None, "text"])
def test_what_is_no_checkpoint(explain: Explain, tmp_path: Path, content: Any) -> None:
    path = tmp_path / "other.pt"
    torch.save(content, path)
    assert explain("le", path=path).error.startswith(
        (
            f"{path}: expected a checkpoint of fairseq, found none (",
            f"{path}: expected a whole checkpoint, found one that is cut short or damaged",
            f"{path}: refused: expected a checkpoint that fairseq saved",
        )
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state["cfg"]["model"].update(cell="hopfield"),
        lambda state: state["cfg"]["model"].update(decoder_layers="two"),
        lambda state: state["cfg"]["model"].update(decoder_layers=0),
        lambda state: state["cfg"]["task"].update(_name="translation"),
        lambda state: state["cfg"].update(model=None),
        lambda state: state["model"].pop("decoder.head.output.weight"),
        lambda state: state["model"].update({"decoder.head.output.weight": "weights"}),
        lambda state: state["model"].update({"decoder.head.prior_fingerprint": 3}),
        lambda state: state.update(model=[]),
        lambda state: state.update(cfg=7, args=None),
        lambda state: state.pop("extra_state"),
        lambda state: state.update(optimizer_history=[]),
    ],
    ids=range(12),
)
def test_checkpoints_that_somebody_changed(
    explain: Explain, changed: Change, change: Callable[[dict[str, Any]], None]
) -> None:
    assert len(explain("le", path=changed(change)).error) < 600


def test_weights_that_went_astray(explain: Explain, changed: Change) -> None:
    path = changed(lambda state: state["model"]["decoder.head.output.bias"].fill_(float("nan")))
    assert explain("le", path=path).error == (
        f"{path}: expected finite weights, found NaN or infinity in decoder.head.output.bias: the training "
        "diverged; use an earlier checkpoint, and train with a smaller --lr or with --clip-norm"
    )
