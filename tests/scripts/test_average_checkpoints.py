"""scripts/average_checkpoints.py: the mean of weights, all else of the last one, and nothing run or half-written."""

import math
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from example_modules import SCRIPTS, load
from shell import Shell
from translation_world import TranslationWorld


@pytest.fixture
def script() -> ModuleType:
    (module,) = load(SCRIPTS, "average_checkpoints")
    return module


def save(path: Path, value: float, **others: object) -> Path:
    """A checkpoint of a few tensors."""
    model = {
        "weight": torch.full((2, 3), value), "half": torch.tensor([value], dtype=torch.float16),
        "steps": torch.tensor([int(value)]), "decoder.head.prior_fingerprint": torch.tensor([7.0, 255.0]),
    }  # fmt: skip
    torch.save({"model": model | others, "cfg": {"value": value}, "extra_state": {"epoch": int(value)}}, path)
    return path


def run(script: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["average_checkpoints.py", *map(str, arguments)])
    return script.main()


def test_the_last_epochs_by_number(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for epoch in (2, 9, 10, 11):
        save(tmp_path / f"checkpoint{epoch}.pt", float(epoch))
    save(tmp_path / "checkpoint_best.pt", 1000.0)
    out = tmp_path / "average.pt"
    assert run(script, monkeypatch, tmp_path, "--last", 3, "--out", out) == 0
    said = capsys.readouterr().out
    assert said == f"{out}: the mean of checkpoint9.pt, checkpoint10.pt, checkpoint11.pt\n"
    found = torch.load(out, weights_only=True)
    assert torch.equal(found["model"]["weight"], torch.full((2, 3), 10.0))
    assert found["model"]["half"].dtype == torch.float16 and found["model"]["half"].item() == 10
    assert found["model"]["steps"].item() == 11
    assert found["model"]["decoder.head.prior_fingerprint"].tolist() == [7, 255]
    assert (found["cfg"], found["extra_state"]) == ({"value": 11.0}, {"epoch": 11})


@pytest.mark.slow
def test_real_checkpoints_average_into_one_that_translates(
    script: ModuleType, shell: Shell, translation: TranslationWorld, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    place = tmp_path / "trained"
    arguments = [a for a in translation.train_args(save_dir=place) if a != "--no-epoch-checkpoints"]
    shell.run("fairseq-train", *arguments, "--max-epoch", 2)
    out = tmp_path / "average.pt"
    assert run(script, monkeypatch, place, "--last", 2, "--out", out) == 0
    first, second, mean = (
        torch.load(path, weights_only=True)["model"]
        for path in (place / "checkpoint1.pt", place / "checkpoint2.pt", out)
    )
    assert mean.keys() == second.keys()
    changed = 0
    for name, value in mean.items():
        torch.testing.assert_close(value, (first[name] + second[name]) / 2)
        changed += not torch.equal(first[name], second[name])
    assert changed > 5
    done = shell.run("fairseq-generate", *translation.task_args(), "--path", out, "--gen-subset", "test", "--beam", 2)
    assert "H-0\t" in done.out


def test_what_does_not_belong_together(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, good = tmp_path / "average.pt", save(tmp_path / "good.pt", 1.0)

    def said(*inputs: object) -> str:
        assert run(script, monkeypatch, *inputs, "--out", out) == 2
        assert not out.exists()
        return capsys.readouterr().err.removeprefix("average_checkpoints: error: ").rstrip("\n")

    assert said(tmp_path) == (
        f"{tmp_path}: expected the checkpoints of 5 epochs (checkpoint1.pt, …), found none; train with "
        "--keep-last-epochs 5 and without --no-epoch-checkpoints, or use a smaller --last"
    )
    save(tmp_path / "checkpoint3.pt", 1.0)
    assert "found checkpoint3.pt; train with" in said(tmp_path)
    assert said(tmp_path, "--last", 0) == "--last 0: expected a number of at least 1"
    assert said(tmp_path, good) == f"expected one folder, or files, found {tmp_path} and others"
    assert said(tmp_path / "absent.pt") == f"{tmp_path}/absent.pt: expected a checkpoint, found no such file"
    odd = save(tmp_path / "odd.pt", 1.0, more=torch.zeros(1))
    assert said(odd, good) == f"{odd}: expected the weights that {good} has, found more in only one of the two"
    odd = save(tmp_path / "odd.pt", 1.0, weight=torch.zeros(3, 3))
    assert said(odd, good) == (
        f"{odd}: expected weights of the shapes in {good}, found weight of (3, 3), not (2, 3); average checkpoints of "
        "one model"
    )
    odd = save(tmp_path / "odd.pt", 1.0, **{"decoder.head.prior_fingerprint": torch.tensor([7.0, 254.0])})
    assert said(odd, good) == f"{odd}: expected a model over the prior of {good}, found one over another prior"
    trees = [save(tmp_path / f"{n}.pt", 1.0, **{"decoder.head.tree.parent": torch.tensor([n, 7])}) for n in (4, 6)]
    assert said(*trees) == (
        f"{trees[0]}: expected the output tree of {trees[1]}, found another one, whose rows of weights are for other "
        "words; average epochs in which a learned tree stayed as it was"
    )
    odd = save(tmp_path / "odd.pt", 1.0, weight=torch.full((2, 3), math.nan))
    assert said(odd, good).startswith(f"{odd}: expected finite weights, found NaN or infinity in weight: ")
    torch.save({"weights": 1}, odd)
    assert said(odd, good) == f"{odd}: expected a checkpoint of fairseq, found one without weights under `model`"
    odd.write_bytes(good.read_bytes()[:200])
    assert said(odd, good).startswith(f"{odd}: ")


def test_a_checkpoint_with_code_is_refused(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Hostile:
        def __reduce__(self) -> tuple:
            return os.mkdir, (str(tmp_path / "touched"),)

    torch.save({"model": {}, "cfg": Hostile()}, tmp_path / "hostile.pt")
    assert run(script, monkeypatch, tmp_path / "hostile.pt", "--out", tmp_path / "average.pt") == 2
    assert "found a pickle that would run other code" in capsys.readouterr().err
    assert not (tmp_path / "touched").exists()


def test_a_full_disk_leaves_what_was_there(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, out = save(tmp_path / "good.pt", 1.0), tmp_path / "average.pt"
    out.write_text("before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert run(script, monkeypatch, good, "--out", out) == 2
    message = f"{out}: the checkpoint cannot be written (No space left on device); free some space"
    assert message in capsys.readouterr().err
    assert out.read_text() == "before" and sorted(p.name for p in tmp_path.iterdir()) == ["average.pt", "good.pt"]
