"""Folders that moved since the training: priors and dictionaries are found again, and never others."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from shell import Shell
from tiny_world import World, read_checkpoint

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.compat.loading import Places, prior_of_state, take_places
from fairseq_llrnn.plugin.compat.loading import read_checkpoint as read_safely
from fairseq_llrnn.plugin.compat.moved_folders import fingerprint_in, places_of
from fairseq_llrnn.prior.directory import FINGERPRINT, read_description
from fairseq_llrnn.prior.prior import Prior

Take = Callable[..., tuple[str, str]]


def save(source: Path, place: Path, **options: Any) -> None:
    """A checkpoint whose training had these data and prior, and wrote it to `checkpoints`."""
    state = read_checkpoint(source)
    state["cfg"]["task"].update(options)
    state["cfg"]["checkpoint"]["save_dir"] = "checkpoints"
    place.parent.mkdir(parents=True)
    torch.save(state, place)


@pytest.fixture
def project(world: World, trained: Path, tmp_path: Path) -> Path:
    """A folder with data, prior and checkpoint, as a training in it leaves them."""
    folder = tmp_path / "project"
    shutil.copytree(world.data, folder / "data-bin")
    save(trained / "checkpoint_best.pt", folder / "checkpoints" / "best.pt", data="data-bin", prior="data-bin/prior")
    return folder


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch) -> Take:
    """Where data and prior of a checkpoint are found, absolute, from a folder."""

    def run(here: Path, path: Path, **places: str) -> tuple[str, str]:
        monkeypatch.chdir(here)
        state = read_safely(str(path))
        task = state["cfg"].task
        (dictionary,) = take_places(str(path), task, Places(**places), state)
        assert dictionary.is_file() and dictionary.parent.samefile(task.data)
        return str(Path(task.data).resolve()), str(Path(task.prior).resolve())

    return run


def test_a_saved_prior_says_its_fingerprint(world: World, trained: Path) -> None:
    for folder in sorted(path.parent for path in world.data.glob("*/prior.json")):
        assert read_description(folder)[FINGERPRINT] == Prior.load(folder).fingerprint, folder
    of_weights = fingerprint_in(read_checkpoint(trained / "checkpoint_best.pt"), "best.pt")
    assert of_weights == Prior.load(world.prior("prior")).fingerprint


def test_a_place_is_seen_from_here_and_from_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = [str(place) for place in places_of("data-bin/prior", "run/checkpoints", "moved/run/checkpoints/best.pt")]
    assert found == ["data-bin/prior", "moved/data-bin/prior"]
    absolute = list(map(str, places_of("/old/data/prior", "/old/run", str(tmp_path / "new" / "run" / "a.pt"))))
    assert absolute == ["/old/data/prior", "new/data/prior"]
    assert list(map(str, places_of("data", None, "a.pt"))) == ["data"]


def test_the_whole_folder_moved(project: Path, take: Take, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    moved = tmp_path / "elsewhere" / "renamed"
    moved.parent.mkdir()
    project.rename(moved)
    assert take(tmp_path, moved / "checkpoints" / "best.pt") == (
        str(moved / "data-bin"), str(moved / "data-bin" / "prior")
    )  # fmt: skip
    assert [record.message for record in caplog.records] == [
        f"{moved}/checkpoints/best.pt: trained with the data folder in 'data-bin'; "
        "'elsewhere/renamed/data-bin' is used instead",
        f"{moved}/checkpoints/best.pt: trained with the prior in 'data-bin/prior'; "
        "'elsewhere/renamed/data-bin/prior' is used instead",
    ]


def test_another_project_at_the_same_names_is_not_mistaken(
    project: Path, take: Take, world: World, tmp_path: Path
) -> None:
    """The current folder has data and prior of these names, but others."""
    other = tmp_path / "other"
    shutil.copytree(world.prior("softmax"), other / "data-bin" / "prior")
    (other / "data-bin" / "dict.txt").write_text("autre 1\nmot 1\n", encoding="utf-8")
    assert take(other, project / "checkpoints" / "best.pt") == (
        str(project / "data-bin"), str(project / "data-bin" / "prior")
    )  # fmt: skip


@pytest.mark.parametrize("words", [b"autre 1\nmot 1\n", b"\xff 1\n"])
def test_a_dictionary_of_other_words_is_not_taken(words: bytes, project: Path, take: Take, tmp_path: Path) -> None:
    (project / "data-bin" / "dict.txt").write_bytes(words)
    with pytest.raises(OptionError, match="there is no such folder, relative to the working directory or the c"):
        take(tmp_path, project / "checkpoints" / "best.pt")


@pytest.mark.parametrize("change", ["missing", "another", "damaged"])
def test_another_prior_is_not_taken(change: str, project: Path, take: Take, tmp_path: Path) -> None:
    path, prior = project / "checkpoints" / "best.pt", project / "data-bin" / "prior"
    if change == "damaged":
        (prior / "prior.json").write_text("{", encoding="utf-8")
    else:
        shutil.rmtree(prior)
    if change == "another":
        shutil.copytree(project / "data-bin" / "softmax", prior)
    with pytest.raises(OptionError) as error:
        take(tmp_path, path)
    assert str(error.value) == (
        f"{path}: expected the prior of its training, found none, or another one, in 'data-bin/prior', relative to the "
        "working directory or the checkpoint; name its folder with --prior DIR"
    )


def test_a_command_without_a_prior_says_where_it_looked_for_that_of_the_model(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, data = project / "checkpoints" / "best.pt", project / "data-bin"
    state = read_safely(str(path))
    assert Path(prior_of_state(str(path), state, str(data))).samefile(data / "prior")
    shutil.rmtree(data / "prior")
    with pytest.raises(OptionError) as error:
        prior_of_state(str(path), state, str(data))
    said = str(error.value)
    assert said.startswith(f"--prior: expected the prior that {path} was trained with, found none, or")
    assert said.endswith("; name its folder")


def test_commands_find_them(shell: Shell, project: Path, world: World, tmp_path: Path) -> None:
    """Those that load what the checkpoint recorded, and those whose task is on the command line."""
    path, text = project / "checkpoints" / "best.pt", world.text("test")[0] + "\n"
    here = shell.run("llrnn", "score", "--path", path, "--json", stdin=text)
    assert "data-bin/prior' is used" in here.err and "data-bin' is used" in here.err
