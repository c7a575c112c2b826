"""A tree written and read again; files that hold none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.array_file import write_arrays
from fairseq_llrnn.systems.output_trees.tree import Tree, load_tree, save_tree

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
    with pytest.raises(DataError, match="a.tree: expected a tree over the classes of this prior.*build the tree anew"):
        load_tree(tmp_path / "a.tree", classes, leaves)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({name: SOUND[name] for name in ("parent", "classes")}, "found nothing called 'leaves'"),
        ({**SOUND, "leaves": np.array([4.0])}, "found leaves of float64"),
        ({**SOUND, "leaves": np.array([4, 4])}, "found other arrays"),
        ({**SOUND, "classes": np.zeros(3, np.uint8)}, "found other arrays"),
        ({**SOUND, "parent": TREE.parent - 1}, "tree: parent of node 0: expected -1"),
        ({**SOUND, "leaves": np.array([10**18])}, "expected a row of parents"),
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
        with pytest.raises(DataError, match="expected a tree, found .*give a file that a tree was saved to"):
            load_tree(path, None)
    with pytest.raises(DataError, match="the tree cannot be written"):
        save_tree(tmp_path / "absent" / "a.tree", TREE, OWN)
