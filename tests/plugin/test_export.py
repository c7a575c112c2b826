"""`llrnn export`: one folder that every command accepts, also after a move."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from shell import Shell
from small_corpus import Llrnn
from tiny_world import World
from translation_world import TranslationWorld


@pytest.fixture(scope="module")
def exported(shell: Shell, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported language model that was moved."""
    folder = tmp_path_factory.mktemp("exported")
    done = shell.run("llrnn", "export", trained / "checkpoint_best.pt", folder / "first")
    assert "use it as --path of a command, or by fairseq_llrnn.load" in done.out
    return Path(shutil.move(folder / "first", folder / "moved"))


def test_the_folder_has_weights_prior_and_dictionary(exported: Path, trained: Path) -> None:
    assert sorted(file.name for file in exported.iterdir()) == ["dict.txt", "model.pt", "prior", "training-words.txt"]
    state = torch.load(exported / "model.pt", weights_only=True)
    assert "last_optimizer_state" not in state
    assert (exported / "model.pt").stat().st_size < (trained / "checkpoint_best.pt").stat().st_size


def test_every_command_accepts_the_folder(
    shell: Shell, as_typed: Llrnn, world: World, exported: Path, trained: Path
) -> None:
    text, checkpoint = "\n".join(world.text("valid")[:2]) + "\n", trained / "checkpoint_best.pt"
    for command in (("score", "--json"), ("score", "--per-word"), ("explain", "--json", "-")):
        first, second = (as_typed(*command, "--path", p, stdin=text) for p in (checkpoint, exported))
        assert first.out == second.out and "warning" not in second.err
    valid = (world.data, "--gen-subset", "valid", "--cpu")
    first, second = (shell.run("llrnn", "eval-lm", *valid, "--path", path) for path in (checkpoint, exported))
    assert first.out.splitlines()[-1] == second.out.splitlines()[-1]
    assert "is used instead" not in second.err  # its prior is equal to that of the data folder
    typed = shell.run("llrnn", "interactive", "--path", exported, "--beam", 2, "--max-len-b", 5, "--cpu", stdin="le\n")
    assert "H-0" in typed.out and "warning" not in typed.err


def test_a_translation_model(shell: Shell, as_typed: Llrnn, translation: TranslationWorld, tmp_path: Path) -> None:
    shell.run("fairseq-train", *translation.train_args("llrnn_lstm", save_dir=tmp_path / "m"), "--max-epoch", 1)
    as_typed("export", tmp_path / "m" / "checkpoint_last.pt", tmp_path / "model")
    arguments = ("--beam", 2, "--max-len-b", 5, "--cpu")
    source = translation.source("valid")[0]
    typed = shell.run("llrnn", "interactive", "--path", tmp_path / "model", *arguments, stdin=f"{source}\n")
    assert "H-0" in typed.out


def test_no_folder_with_files_is_replaced(as_typed: Llrnn, trained: Path, tmp_path: Path) -> None:
    checkpoint = trained / "checkpoint_best.pt"
    (tmp_path / "model").mkdir()
    as_typed("export", checkpoint, tmp_path / "model")
    as_typed("export", tmp_path / "model" / "model.pt", tmp_path / "again")
    (tmp_path / "file").write_text("mine")
    for name, found in (("model", "an exported model"), ("file", "something else"), (trained, "something else")):
        done = as_typed("export", checkpoint, tmp_path / name, code=2)
        message = f"expected a free name or an empty folder, found {found}; remove it, or use another"
        assert f"{tmp_path / name}: {message}" in done.err
    scores = [
        json.loads(as_typed("score", "--json", "--path", tmp_path / name, stdin="le\n").out)["bits"]
        for name in ("model", "again")
    ]
    assert scores[0] == scores[1]


def test_a_folder_of_another_kind(shell: Shell, as_typed: Llrnn, trained: Path, tmp_path: Path) -> None:
    done = as_typed("score", "--path", trained, stdin="le\n", code=2)
    assert f"did you mean {trained / 'checkpoint_best.pt'}?" in done.err
    done = shell.run("llrnn", "eval-lm", tmp_path, "--path", tmp_path, code=2)
    assert "expected a checkpoint, or a folder of `llrnn export`, found another folder; give the .pt" in done.err
    (tmp_path / "prior.json").touch()
    done = as_typed("score", "--path", tmp_path, stdin="le\n", code=2)
    assert f"found a prior; give the .pt file that training wrote, or score a prior alone: `llrnn score --prior " \
        f"{tmp_path}`, or load(prior=…)" in done.err
