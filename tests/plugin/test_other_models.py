"""A training in a folder with checkpoints of a model with other options."""

from pathlib import Path

import pytest
import torch
from shell import Shell
from tiny_world import World
from torch import nn
from translation_world import SIZES, TranslationWorld

from fairseq_llrnn.plugin.compat.other_models import _fits
from fairseq_llrnn.registry import lost

QUICK = ["--cpu", "--num-workers", 0, "--max-tokens", 128]
SMALL = ["--decoder-embed-dim", 8, "--decoder-hidden-size", 8]
CHANGED = {
    "sizes": (["--decoder-hidden-size", 9], "--decoder-hidden-size 8"),
    "layers": (["--decoder-layers", 1, "--dropout", 0.3], "--dropout 0.0, --decoder-layers 2"),
    "cell": (["--cell", "gru"], "--cell lstm"),
    "tied": (["--tie-features"], "no --tie-features"),
    "tied, with advice of fairseq": (["--tie-features", "--reset-optimizer"], "no --tie-features"),
    "another schedule": (["--lr-scheduler", "cosine", "--layer-norm"], "no --layer-norm"),
    "architecture": (["--arch", "llrnn_lbl"], "--arch llrnn_lm"),
    "small network": (
        ["--arch", "llrnn_lm_small"],
        "--arch llrnn_lm, no --tie-features, --dropout 0.0, no --variational-dropout, …",
    ),
}


@pytest.fixture(scope="module")
def finished(shell: Shell, world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("finished")
    shell.run("llrnn", "train", world.data, *QUICK, *SMALL, "--max-update", 1, "--save-dir", place)
    return place


@pytest.mark.parametrize("name", CHANGED)
def test_another_model_needs_another_folder(shell: Shell, world: World, finished: Path, name: str) -> None:
    options, found = CHANGED[name]
    last = finished / "checkpoint_last.pt"
    before = last.read_bytes()
    result = shell.run(
        "llrnn", "train", world.data, *QUICK, *SMALL, "--max-update", 2, *options, "--save-dir", finished, code=2
    )
    assert result.err.splitlines()[-1] == (
        f"llrnn train: error: {last}: expected a checkpoint of this model, found one of another model ({found}); use "
        "another --save-dir to train this model"
    )
    assert last.read_bytes() == before


def test_a_system_of_the_new_model(shell: Shell, world: World, finished: Path) -> None:
    if lost("--output-tree"):
        pytest.skip("systems/output_trees is not there")
    options = ["--output-tree", "huffman", "--save-dir", finished]
    result = shell.run("llrnn", "train", world.data, *QUICK, *SMALL, *options, "--max-update", 2, code=2)
    assert "found one of another model (no --output-tree" in result.err


def test_options_of_training_may_change(shell: Shell, world: World, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoint_last.pt").write_bytes((finished / "checkpoint_last.pt").read_bytes())
    options = ["--dropout", 0.1, "--save-dir", tmp_path, "--max-update", 2]
    shell.run("llrnn", "train", world.data, *QUICK, *SMALL, *options)


def test_a_checkpoint_that_the_user_names(shell: Shell, world: World, finished: Path, tmp_path: Path) -> None:
    options = ["--restore-file", finished / "checkpoint_last.pt", "--save-dir", tmp_path, "--tie-features"]
    result = shell.run("llrnn", "train", world.data, *QUICK, *SMALL, *options, "--max-update", 2, code=2)
    assert result.err.endswith("(no --tie-features); use the checkpoint's options\n")


def test_a_translator(shell: Shell, translation: TranslationWorld, tmp_path: Path) -> None:
    """Its options are those of the whole command line."""
    begin = ["llrnn", "train", translation.data, *QUICK, "--arch", "llrnn_transformer", *SIZES["llrnn_transformer"]]
    shell.run(*begin, "--max-update", 1, "--save-dir", tmp_path)
    options = ["--feature-input", "--lr", 0.1, "--max-update", 2, "--save-dir", tmp_path]
    assert "found one of another model (no --feature-input); use another" in shell.run(*begin, *options, code=2).err


def test_shared_weights_may_be_stored_as_copies() -> None:
    """As a GPU stores them."""
    tied, free = (nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)}) for _ in range(2))
    tied["b"].weight = tied["a"].weight
    copied = {name: value.clone() for name, value in tied.state_dict().items()}
    assert _fits(tied, copied) and not _fits(free, copied)
    assert _fits(free, free.state_dict()) and not _fits(tied, free.state_dict())
    assert not _fits(free, {**free.state_dict(), "c": torch.zeros(1)})
