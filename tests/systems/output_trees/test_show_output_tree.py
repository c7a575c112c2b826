"""`llrnn show --tree` of a checkpoint: its tree, its prior found near it, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from shell import Shell
from tiny_world import World, read_checkpoint

from fairseq_llrnn.errors import DataError, PriorError
from fairseq_llrnn.systems.output_trees.plugin.checkpoint_tree import tree_of_checkpoint

KEY = "decoder.head.tree.parent"


def test_the_tree_of_a_checkpoint(shell: Shell, world: World, tmp_path: Path) -> None:
    tree = ("--output-tree", "huffman", "--tree-arity", "3")
    shell.run("fairseq-train", *world.train_args(save_dir=tmp_path / "model"), *tree, "--max-epoch", 1)
    path = tmp_path / "model" / "checkpoint_last.pt"
    shown = shell.run("llrnn", "show", "--tree", path).out
    assert "arity 3" in shown and "level 0   1 node" in shown
    nodes = json.loads(shell.run("llrnn", "show", "--tree", path, "--json").out)["nodes"]
    assert nodes[0]["share"] == pytest.approx(1)
    at_word = shell.run("llrnn", "show", world.prior("prior"), "le", "--tree", path).out
    assert at_word.splitlines()[0] == "le"

    state = read_checkpoint(path)
    assert tree_of_checkpoint(str(path), None)[0].parent.tolist() == state["model"][KEY].tolist()
    for name, value, message in (
        ("floats", state["model"][KEY].float(), "expected whole numbers as the parents of its tree, found others"),
        ("circle", torch.zeros_like(state["model"][KEY]), "tree: parent of node 0: expected -1, for the root"),
        ("none", None, "expected a checkpoint of a model with a tree, found none in it; give one that was"),
    ):
        weights = {key: value if key == KEY else kept for key, kept in state["model"].items()}
        if value is None:
            del weights[KEY]
        damaged = path.with_name(f"{name}.pt")
        torch.save({**state, "model": weights}, damaged)
        with pytest.raises(DataError) as error:
            tree_of_checkpoint(str(damaged), None)
        assert f"{damaged}: {message}" in str(error.value)
    with pytest.raises(PriorError, match="was trained with another prior than"):
        tree_of_checkpoint(str(path), str(world.prior("flat")))
    shutil.rmtree(tmp_path / "model")
