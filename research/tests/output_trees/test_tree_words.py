"""The words below nodes, by loops; which of them a picture shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_priors import SYMBOLS, make_prior

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.array_file import write_arrays
from llrnn_research.output_trees.builders import huffman_tree, random_tree
from llrnn_research.output_trees.tree import NONE, Tree, load_tree, save_tree
from llrnn_research.output_trees.tree_words import (
    CHILDREN,
    NodeWords,
    draw_tree,
    drawn,
    words_of_nodes,
)

PRIOR = make_prior()
CLASSES = PRIOR.output.num_classes
MASSES = np.bincount(PRIOR.output.class_of, np.exp(PRIOR.log_weights), CLASSES)  # 0 of some, the deepest
TREES = [
    huffman_tree(MASSES, 2),
    random_tree(CLASSES, 2, seed=3),
    huffman_tree(np.ones(CLASSES), 3),
    random_tree(CLASSES, CLASSES),
]


@pytest.mark.parametrize("tree", TREES)
def test_words_are_those_below_by_frequency(tree: Tree) -> None:
    weights = np.exp(PRIOR.log_weights)
    weights /= weights.sum()
    found = {node.node: node for node in words_of_nodes(tree, PRIOR, 3)}
    for n in range(tree.internal):
        below = [
            word
            for word in range(len(SYMBOLS))
            if n in tree.path[PRIOR.output.class_of[word]].tolist() and weights[word] > 0
        ]
        below.sort(key=lambda word: (-weights[word], word))
        if not below:
            assert n not in found
            continue
        assert found[n].words == tuple(SYMBOLS[word] for word in below[:3])
        assert (found[n].size, found[n].depth, found[n].parent) == (len(below), tree.depth[n], tree.parent[n])
        assert found[n].share == pytest.approx(sum(weights[word] for word in below))
        own = [word for word in below if tree.parent[tree.internal + PRIOR.output.class_of[word]] == n]
        assert found[n].own == len(own)
    assert found[0].share == pytest.approx(1)


@pytest.mark.parametrize("tree", TREES)
def test_nodes_are_sorted_by_level_and_share(tree: Tree) -> None:
    nodes = words_of_nodes(tree, PRIOR, 1)
    assert nodes[0].node == 0 and nodes[0].parent == NONE
    assert [(node.depth, -node.share) for node in nodes] == sorted((node.depth, -node.share) for node in nodes)


def wide_tree(children: int) -> list[NodeWords]:
    """Three levels of nodes, all with so many children, the first the heaviest."""
    nodes = [NodeWords(0, NONE, 0, 1.0, 9, 0, ("a", "$x$", "extraordinarily_long_word"))]
    for level in range(1, 4):
        above = [node for node in nodes if node.depth == level - 1]
        nodes += [
            NodeWords(len(nodes) + i * children + j, node.node, level, 0.1, 1, 1, (f"w{j}",))
            for i, node in enumerate(above)
            for j in range(children)
        ]
    return nodes


def test_a_picture_has_the_heaviest_children(tmp_path: Path) -> None:
    places = drawn(wide_tree(7))
    by_parent: dict[int, list[str]] = {}
    for node, _ in places:
        by_parent.setdefault(node.parent, []).append(node.words[0])
    assert by_parent[0] == [f"w{j}" for j in range(CHILDREN[0])]
    assert len(places) == 1 + CHILDREN[0] * (1 + CHILDREN[1] * (1 + CHILDREN[2]))
    heights = [height for node, height in places if node.depth == 3]
    assert sorted(heights, reverse=True) == heights and len(set(heights)) == len(heights)
    pytest.importorskip("matplotlib")
    draw_tree(wide_tree(7), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    draw_tree(words_of_nodes(TREES[-1], PRIOR, 4), tmp_path / "b.png")  # the root alone
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


OWN, OTHER = "ab" * 32, "cd" * 32
TREE = Tree.from_parents(np.array([-1, 0, 0, 1, 2, 1, 0]), 4)
SOUND = {"parent": TREE.parent, "leaves": np.array([4]), "classes": np.zeros(32, np.uint8)}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    save_tree(tmp_path / "a.tree", TREE, OWN)
    for classes in (OWN, None):
        tree = load_tree(tmp_path / "a.tree", classes)
        assert (tree.parent.tolist(), tree.leaves) == (TREE.parent.tolist(), 4)
    assert load_tree(tmp_path / "a.tree", OWN, 4).parent.tolist() == TREE.parent.tolist()


@pytest.mark.parametrize(("classes", "leaves"), [(OTHER, None), (OWN, 5)])
def test_a_tree_of_another_prior_is_refused(tmp_path: Path, classes: str, leaves: int | None) -> None:
    save_tree(tmp_path / "a.tree", TREE, OWN)
    with pytest.raises(DataError, match="a.tree: expected a tree over the classes of this prior.*rebuild the tree"):
        load_tree(tmp_path / "a.tree", classes, leaves)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({name: SOUND[name] for name in ("parent", "classes")}, "found no array 'leaves'"),
        ({**SOUND, "leaves": np.array([4.0])}, "found leaves of float64"),
        ({**SOUND, "leaves": np.array([4, 4])}, "found other arrays"),
        ({**SOUND, "classes": np.zeros(3, np.uint8)}, "found other arrays"),
        ({**SOUND, "parent": TREE.parent - 1}, "tree: parent of node 0: expected -1"),
        ({**SOUND, "leaves": np.array([10**18])}, "expected an integer vector of the parents"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    with (tmp_path / "a.tree").open("wb") as file:
        write_arrays(file, arrays)
    with pytest.raises(DataError) as error:
        load_tree(tmp_path / "a.tree", None)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / 'a.tree'}: ")


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("le chat\n")
    for path in (tmp_path / "text", tmp_path / "absent", tmp_path):
        with pytest.raises(DataError, match="expected a tree file, found .*give one of `save_tree`"):
            load_tree(path, None)
    with pytest.raises(DataError, match="the tree cannot be written"):
        save_tree(tmp_path / "absent" / "a.tree", TREE, OWN)
