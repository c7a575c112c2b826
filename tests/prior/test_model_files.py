"""The files of another model inside a prior (prior/model_files.py): copies, hashes, and shared words."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairseq_llrnn.prior.model_files import ModelFiles, SharedWords


@pytest.fixture
def files(tmp_path: Path) -> ModelFiles:
    trained = tmp_path / "trained"
    (trained / "prior" / "model").mkdir(parents=True)
    for name in ("checkpoint_best.pt", "dict.txt", "prior/prior.json", "prior/model/dict.txt"):
        (trained / name).write_text(f"the bytes of {name}")
    return ModelFiles.of(trained / "checkpoint_best.pt", trained / "dict.txt", trained / "prior", 0.5, 2.0)


def test_what_is_written_is_what_is_read(files: ModelFiles, tmp_path: Path) -> None:
    files.write(tmp_path / "new")
    found = ModelFiles.described(files.description(), tmp_path / "new")
    assert found.identity == files.identity and (found.weight, found.temperature) == (0.5, 2.0)
    assert found.prior == tmp_path / "new" / "prior"
    assert {name: path.read_text() for name, path in found.paths.items()} == {
        "checkpoint.pt": "the bytes of checkpoint_best.pt",
        **{name: f"the bytes of {name}" for name in ("dict.txt", "prior/prior.json", "prior/model/dict.txt")},
    }
    found.write(tmp_path / "newer")
    assert ModelFiles.described(found.description(), tmp_path / "newer").identity == files.identity


def test_files_that_are_no_priors_stay_where_they_are(files: ModelFiles, tmp_path: Path) -> None:
    """An earlier version copied them, and the new prior was then rejected for their names."""
    for name in (".DS_Store", "prior.json~", "my notes.txt", "model/.DS_Store"):
        (tmp_path / "trained" / "prior" / name).write_text("something else")
    places = (tmp_path / "trained" / name for name in ("checkpoint_best.pt", "dict.txt", "prior"))
    assert ModelFiles.of(*places, 0.5, 2.0).hashes == files.hashes


def test_the_identity_is_of_contents_weight_and_temperature(files: ModelFiles, tmp_path: Path) -> None:
    (tmp_path / "trained" / "dict.txt").write_text("other words")
    places = (tmp_path / "trained" / name for name in ("checkpoint_best.pt", "dict.txt", "prior"))
    changed = ModelFiles.of(*places, 0.5, 2.0)
    sharper, alone = replace(files, temperature=1.0), replace(files, weight=1.0)
    assert len({files.identity, changed.identity, sharper.identity, alone.identity}) == 4


@pytest.mark.parametrize(
    ("entry", "value", "said"),
    [
        ("temperature", 0, "expected a temperature from 0.01 to 100, found 0"),
        ("weight", 1.5, "expected a weight of the model above 0 and up to 1, found 1.5"),
        ("weight", 0, "expected a weight of the model above 0 and up to 1, found 0"),
        ("temperature", True, "expected a temperature from 0.01 to 100, found True"),
        ("files", [], "expected a model's files checkpoint.pt and dict.txt"),
        ("files", {"checkpoint.pt": "1"}, "expected a model's files checkpoint.pt and dict.txt"),
        ("files", {"checkpoint.pt": "1", "dict.txt": "2", "../../secret": "3"}, "expected names of a model's files"),
        ("files", {"checkpoint.pt": "1", "dict.txt": "2", "/etc/passwd": "3"}, "expected names of a model's files"),
        ("files", {"checkpoint.pt": "1", "dict.txt": 2}, "expected names of a model's files"),
    ],
)
def test_an_untrusted_description_is_checked(
    entry: str, value: Any, said: str, files: ModelFiles, tmp_path: Path
) -> None:
    files.write(tmp_path)
    with pytest.raises(ValueError, match=said):
        ModelFiles.described(files.description() | {entry: value}, tmp_path)


def test_a_missing_or_changed_file_is_named(files: ModelFiles, tmp_path: Path) -> None:
    files.write(tmp_path / "model")
    (tmp_path / "model" / "checkpoint.pt").write_text("other weights")
    with pytest.raises(ValueError, match=r"model/checkpoint.pt is not the one that the prior was built with"):
        ModelFiles.described(files.description(), tmp_path / "model")
    (tmp_path / "model" / "checkpoint.pt").unlink()
    with pytest.raises(ValueError, match=r"expected the model's file model/checkpoint.pt, found none"):
        ModelFiles.described(files.description(), tmp_path / "model")


def test_words_that_the_other_model_lacks_share_its_unknown_mass() -> None:
    ours = ("<s>", "<pad>", "</s>", "<unk>", "chat", "rose", "roi", "mer")
    others = ("<s>", "<pad>", "</s>", "<unk>", "mer", "chat", "pont", "lac", "vent")
    allowed = np.array([False, False, True, True, True, True, True, True])
    ordinary = np.array([False] * 4 + [True] * 5)
    shared = SharedWords.of(ours, allowed, others, ordinary)
    np.testing.assert_array_equal(shared.index, [0, 1, 2, 3, 5, 3, 3, 4])
    np.testing.assert_allclose(np.exp(shared.log_share), [1, 1, 1, 1 / 3, 1, 1 / 3, 1 / 3, 1])
    assert (shared.in_both, shared.lacking, shared.dropped, shared.unknown) == (2, 2, 3, 3)
    # what b₀ forbids gets no part of it
    allowed[5] = False
    shared = SharedWords.of(ours, allowed, others, ordinary)
    assert (shared.lacking, np.exp(shared.log_share[6])) == (1, pytest.approx(1 / 2))
