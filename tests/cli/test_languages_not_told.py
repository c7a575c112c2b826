"""Models whose training was not told its languages: fairseq read them off the file names, and so does `llrnn`."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from shell import Shell
from small_corpus import Llrnn
from tiny_world import read_checkpoint
from translation_world import TranslationWorld

SOURCE, TARGET = "el tahc tiov", "le chat voit"
NBEST = f"0 ||| {TARGET} ||| ||| -1\n0 ||| le chat ||| ||| -2\n"
LANGUAGES = "file with the languages in its name, such as train.de-en.de.idx, in it"

Commands = Callable[..., list[tuple[object, ...]]]


@pytest.fixture(scope="module")
def untold(shell: Shell, translation: TranslationWorld) -> Path:
    """Our translation model, trained without --source-lang and --target-lang."""
    place = translation.place / "untold"
    arguments = translation.train_args(save_dir=place)
    at = arguments.index("--source-lang")
    del arguments[at : at + 4]
    shell.run("fairseq-train", *arguments, "--max-update", 3, "--disable-validation")
    task = read_checkpoint(place / "checkpoint_last.pt")["cfg"]["task"]
    assert (task["source_lang"], task["target_lang"]) == (None, None)
    return place / "checkpoint_last.pt"


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    """`llrnn explain` and `llrnn rescore` of a model, whose best hypotheses go to `best`."""
    (tmp_path / "nbest").write_text(NBEST, encoding="utf-8")
    (tmp_path / "source").write_text(SOURCE + "\n", encoding="utf-8")

    def of(path: Path, *places: object) -> list[tuple[object, ...]]:
        lists = ("--nbest", tmp_path / "nbest", "--source", tmp_path / "source", "--out", tmp_path / "best")
        return [
            ("explain", "--path", path, *places, "--source", SOURCE, TARGET),
            ("rescore", "--path", path, *places, *lists),
        ]

    return of


def test_the_data_folder_says_them(llrnn: Llrnn, untold: Path, commands: Commands) -> None:
    explained, rescored = (llrnn(*command) for command in commands(untold))
    assert (explained.code, rescored.code) == (0, 0), explained.err + rescored.err
    assert "chat" in explained.out and "of 1 sentence " in rescored.out


def test_data_that_went_elsewhere(
    llrnn: Llrnn, untold: Path, commands: Commands, translation: TranslationWorld, tmp_path: Path
) -> None:
    state = read_checkpoint(untold)
    state["cfg"]["task"].update(data="gone/data-bin", prior="gone/data-bin/prior")
    path = tmp_path / "moved.pt"
    torch.save(state, path)
    moved, bare = tmp_path / "far" / "moved", tmp_path / "far" / "bare"  # where nothing is looked for
    moved.parent.mkdir()
    shutil.copytree(translation.data, moved)
    bare.mkdir()
    for name in ("dict.src.txt", "dict.tgt.txt"):
        shutil.copy(translation.data / name, bare)
    for here, there in zip(commands(untold), commands(path, "--data", moved), strict=True):
        found = llrnn(*there)
        assert (found.code, found.out) == (0, llrnn(*here).out), found.err
    for command in commands(path):
        said = llrnn(*command).error
        missing = "but there is no such folder, relative to the working directory or the checkpoint"
        assert said.startswith(f"{path} was trained with the data folder 'gone/data-bin', {missing}")
        assert said.endswith("; name the folder with --data DATA-BIN")
    for command in commands(path, "--data", bare):
        assert llrnn(*command).error == (
            f"--data {bare}: expected the folder of fairseq-preprocess, found no {LANGUAGES}; give another one"
        )
