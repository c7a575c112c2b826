"""`llrnn show --tree` of a file: levels, paths of words, JSON, pictures, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from shell import Shell
from small_corpus import Corpus, Llrnn
from tiny_world import World, read_checkpoint

from fairseq_llrnn.cli.tables import WIDTH, columns
from fairseq_llrnn.errors import DataError, PriorError
from fairseq_llrnn.prior.prior import Prior
from llrnn_research.output_trees.builders import random_tree
from llrnn_research.output_trees.output_tree import class_fingerprint
from llrnn_research.output_trees.plugin.checkpoint_tree import tree_of_checkpoint
from llrnn_research.output_trees.tree import Tree, save_tree


@pytest.fixture
def prior(corpus: Corpus, llrnn: Llrnn) -> Path:
    done = llrnn("prior", "--dict", corpus.dictionary, "--softmax", "--out", corpus.out)
    assert done.code == 0, done.err
    return corpus.out


@pytest.fixture
def tree(prior: Path, tmp_path: Path) -> Path:
    """Every word is a class: two nodes, one for `le` and `la`, one for all others."""
    loaded = Prior.load(prior)
    above = np.full(loaded.output.num_classes, 2)
    for word in ("le", "la"):
        above[loaded.output.class_of[loaded.symbols.index(word)]] = 1
    made = Tree.from_parents(np.concatenate([[-1, 0, 0], above]), loaded.output.num_classes)
    save_tree(tmp_path / "a.tree", made, class_fingerprint(loaded.symbols, loaded.output.class_of))
    return tmp_path / "a.tree"


def test_nodes_level_by_level(prior: Path, tree: Path, llrnn: Llrnn) -> None:
    done = llrnn("show", prior, "--tree", tree)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == f"tree {tree}"[:WIDTH] or lines[0].endswith("…")
    assert any("arity" in line and "depth 2; 3 nodes with words" in line for line in lines)
    [few] = [line for line in lines if line.split()[:1] == ["1"]]
    assert few.split()[2:] == ["2", "le,", "la"]
    assert [line for line in lines if line.startswith("level")] == ["level 0   1 node", "level 1   2 nodes"]
    assert all(columns(line) <= WIDTH for line in lines)


def test_nodes_as_json(prior: Path, tree: Path, llrnn: Llrnn) -> None:
    shown = json.loads(llrnn("show", prior, "--tree", tree, "--json").out)
    assert (shown["depth"], len(shown["nodes"])) == (2, 3)
    few = next(node for node in shown["nodes"] if node["node"] == 1)
    assert (few["words"], few["size"], few["own"], few["parent"]) == (["le", "la"], 2, 2, 0)


def test_the_path_of_a_word(prior: Path, tree: Path, llrnn: Llrnn) -> None:
    done = llrnn("show", prior, "LA", "chat", "--tree", tree)
    assert done.err == "note: 'LA' is not in the dictionary of this prior; showing 'la'\n"
    first, second = (text.splitlines() for text in done.out.split("\n\n"))
    assert first[0] == "LA" and [line.split()[0] for line in first[2:]] == ["0", "1"]
    assert second[0] == "chat" and [line.split()[0] for line in second[2:]] == ["0", "2"]
    shown = json.loads(llrnn("show", prior, "la", "--tree", tree, "--json").out)
    assert [node["node"] for node in shown["paths"]["la"]] == [0, 1]


def test_a_picture(prior: Path, tree: Path, llrnn: Llrnn, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = llrnn("show", prior, "--tree", tree, "--picture", tmp_path / "a.png")
    assert (done.code, done.err) == (0, "")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_long_levels_are_cut(prior: Path, tmp_path: Path, llrnn: Llrnn) -> None:
    loaded = Prior.load(prior)
    leaves = loaded.output.num_classes
    above = np.concatenate([[-1], np.zeros(leaves, dtype=int), 1 + np.arange(leaves)])
    made_for = class_fingerprint(loaded.symbols, loaded.output.class_of)
    save_tree(tmp_path / "b.tree", Tree.from_parents(above, leaves), made_for)
    done = llrnn("show", prior, "--tree", tmp_path / "b.tree")
    assert "lighter node" in done.out and "--json lists all" in done.out


def test_what_is_refused(prior: Path, tree: Path, llrnn: Llrnn, tmp_path: Path) -> None:
    other = tmp_path / "other.tree"
    save_tree(other, random_tree(5, 2), "ab" * 32)
    text = tmp_path / "text"
    text.write_text("le chat\n", encoding="utf-8")
    for arguments, message in (
        ((prior, "--picture", "a.png"), "--picture a.png: it needs --tree FILE; add that"),
        (("--tree", tree), f"--tree {tree}: a tree file needs PRIOR, the prior that it was made for; give it"),
        ((prior, "--tree", other), f"{other}: expected a tree over the classes of this prior"),
        ((prior, "--tree", tree, "--neighbours", "le"), "--neighbours and --tree exclude each other; use one at a"),
        ((prior, "--tree", tree, "--prior", "p"), f"--prior p: expected one prior, found {prior} as well; leave one"),
        ((prior, "zebra", "--tree", tree), f"{prior}: expected a word of its dictionary, found 'zebra'"),
        ((prior, "--tree", tree, "--picture", tmp_path / "absent" / "a.png"), "a.png: expected a place in a folder, "
         "but there is no such folder; make it first"),
    ):  # fmt: skip
        assert message in llrnn("show", *arguments).error


KEY = "decoder.head.tree.parent"


def test_the_tree_of_a_checkpoint(shell: Shell, world: World, tmp_path: Path) -> None:
    tree = ("--output-tree", "huffman", "--tree-arity", "3")
    shell.run("fairseq-train", *world.train_args(save_dir=tmp_path / "model"), *tree, "--max-epoch", 1)
    path = tmp_path / "model" / "checkpoint_last.pt"
    shown = shell.run("llrnn", "show", "--tree", path).out
    assert "arity 3" in shown and "level 0   1 node" in shown
    nodes = json.loads(shell.run("llrnn", "show", "--tree", path, "--json").out)["nodes"]
    assert nodes[0]["share"] == pytest.approx(1)
    shell.run("llrnn", "export", path, tmp_path / "exported")
    assert shell.run("llrnn", "show", "--tree", tmp_path / "exported").out.splitlines()[1:] == shown.splitlines()[1:]
    at_word = shell.run("llrnn", "show", world.prior("prior"), "le", "--tree", path).out
    assert at_word.splitlines()[0] == "le"

    state = read_checkpoint(path)
    assert tree_of_checkpoint(str(path), None)[0].parent.tolist() == state["model"][KEY].tolist()
    for name, value, message in (
        ("floats", state["model"][KEY].float(), "expected integers as the parents of its tree, found other values"),
        ("circle", torch.zeros_like(state["model"][KEY]), "tree: parent of node 0: expected -1, for the root"),
        ("none", None, "the model has no output tree; give a checkpoint that was"),
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
