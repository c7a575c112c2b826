"""A kill or a full disk while a checkpoint is written costs nothing written before; training goes on from there."""

import errno
import os
import resource
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig
from killed_at_steps import killed_before
from omegaconf import OmegaConf
from shell import Shell
from tiny_world import World, read_checkpoint

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import temporary_name
from fairseq_llrnn.plugin.compat import task_checkpoints
from fairseq_llrnn.plugin.compat.checkpoint_sizes import check_file, damage
from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading
from fairseq_llrnn.plugin.compat.task_checkpoints import from_newest_whole, newest_whole, whole_saving


def write(path: Path, updates: int) -> Path:
    torch.save({"model": {"weight": torch.zeros(1000)}, "optimizer_history": [{"num_updates": updates}]}, path)
    return path


def cut(path: Path, share: float = 0.6) -> Path:
    os.truncate(path, int(path.stat().st_size * share))
    return path


# ---- writing --------------------------------------------------------------------------------------------------------


def test_a_kill_at_any_moment_of_a_copy_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    """fairseq's own copy writes over checkpoint_last.pt."""
    new, last = write(tmp_path / "checkpoint2.pt", 20), write(tmp_path / "checkpoint_last.pt", 10)

    def copy() -> None:
        with whole_saving():
            assert checkpoint_utils.PathManager.copy(str(new), str(last), overwrite=True)

    step = 1
    while killed_before(step, copy):
        assert damage(str(last)) is None
        step += 1
    assert last.read_bytes() == new.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["checkpoint2.pt", "checkpoint_last.pt"]


def test_outside_of_our_tasks_nothing_is_changed(tmp_path: Path) -> None:
    save, manager = checkpoint_utils.torch_persistent_save, checkpoint_utils.PathManager
    with pytest.raises(KeyboardInterrupt), whole_saving():
        assert checkpoint_utils.PathManager is not manager
        raise KeyboardInterrupt
    assert (checkpoint_utils.torch_persistent_save, checkpoint_utils.PathManager) == (save, manager)


def test_a_full_disk_is_one_message_and_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    """The kernel refuses the write, in the middle of it."""
    path = write(tmp_path / "checkpoint_last.pt", 10)
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with whole_saving():
            with pytest.raises(DataError, match="cannot be written.*File too large.*earlier checkpoints are whole"):
                checkpoint_utils.torch_persistent_save({"x": torch.zeros(100_000)}, str(path))
            big = tmp_path / "checkpoint1.pt"
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            torch.save({"x": torch.zeros(100_000)}, big)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
            with pytest.raises(DataError, match=r"checkpoint_last\.pt: the checkpoint cannot be written"):
                checkpoint_utils.PathManager.copy(str(big), str(path), overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["checkpoint1.pt", "checkpoint_last.pt"]


def test_a_disk_that_fails_for_a_moment_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_checkpoints, "PAUSE", 0.0)
    save, failures = torch.save, [OSError(errno.EIO, os.strerror(errno.EIO))] * 2

    def failing(state: object, file: object) -> None:
        if failures:
            raise failures.pop()
        save(state, file)

    monkeypatch.setattr(torch, "save", failing)
    with whole_saving():
        checkpoint_utils.torch_persistent_save({"x": 1}, str(tmp_path / "a.pt"))
        assert torch.load(tmp_path / "a.pt") == {"x": 1}
        failures[:] = [OSError(errno.EIO, os.strerror(errno.EIO))] * 3
        with pytest.raises(DataError, match="cannot be written.*Input/output error"):
            checkpoint_utils.torch_persistent_save({"x": 2}, str(tmp_path / "a.pt"))
    assert torch.load(tmp_path / "a.pt") == {"x": 1}


# ---- reading --------------------------------------------------------------------------------------------------------


def repacked(path: Path, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """The same archive, its records compressed."""
    with zipfile.ZipFile(path) as archive:
        records = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in records:
            archive.writestr(name, data)
    return path


@pytest.fixture
def load() -> object:
    with safe_loading():
        yield checkpoint_utils.load_checkpoint_to_cpu


def test_compressed_records_are_refused_before_they_are_read(load: object, tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt"
    torch.save({"model": {"weight": torch.zeros(1_000_000)}}, path)
    assert repacked(path).stat().st_size < 20_000
    with pytest.raises(DataError, match=r"bomb\.pt: refused: expected .* not compressed, found a compressed one"):
        load(str(path))


def test_records_that_share_their_bytes_are_refused(load: object, tmp_path: Path) -> None:
    path = tmp_path / "overlap.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", b"x" * 5000)
        for number in range(50):
            copied = zipfile.ZipInfo(f"a/data/{number}")
            first = archive.filelist[0]
            copied.header_offset, copied.file_size, copied.compress_size = 0, first.file_size, first.compress_size
            copied.CRC = first.CRC
            archive.filelist.append(copied)
    with pytest.raises(DataError, match=r"overlap\.pt: refused: .* found records of 255,000 bytes in a file of"):
        load(str(path))


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a device"])
def test_what_is_no_file_is_not_read(kind: str, load: object, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(DataError, match=rf"checkpoint\.pt: expected a checkpoint, found {kind}"):
        load(str(path))


def test_what_is_damaged_is_known_by_size_and_checksums(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pt", 1)
    assert damage(str(path)) is None
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    check_file(str(path))
    assert "is damaged" in str(damage(str(path)))
    assert "cut short" in str(damage(str(cut(path))))
    path.write_bytes(b"")
    assert damage(str(path)) == "it is empty"
    path.write_bytes(bytes(5000))
    assert damage(str(path)) == "it holds zeros"
    torch.save({"x": 1}, path, _use_new_zipfile_serialization=False)
    assert damage(str(path)) is None


# ---- going on -------------------------------------------------------------------------------------------------------


def test_the_newest_whole_one_has_the_most_updates(tmp_path: Path) -> None:
    best, old, new = (write(tmp_path / name, n) for name, n in (("best.pt", 30), ("old.pt", 10), ("new.pt", 40)))
    os.utime(old)
    assert newest_whole([best, old, new]) == new
    cut(new)
    assert newest_whole([best, old, new]) == best
    assert newest_whole([cut(best), cut(old), new]) is None


def restored(folder: Path, rank: int = 0, **options: object) -> tuple[str, object]:
    """What training in a folder begins with: --restore-file, --finetune-from-model."""
    cfg = OmegaConf.structured(CheckpointConfig(save_dir=str(folder), **options))
    cfg = from_newest_whole(cfg, SimpleNamespace(data_parallel_rank=rank, checkpoint_suffix=""))
    return cfg.restore_file, cfg.finetune_from_model


def test_training_goes_on_from_the_newest_whole_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert restored(tmp_path / "new") == ("checkpoint_last.pt", None)
    last = write(tmp_path / "checkpoint_last.pt", 30)
    assert restored(tmp_path) == ("checkpoint_last.pt", None)
    cut(last)
    assert restored(tmp_path) == ("checkpoint_last.pt", None)  # nothing else: reading it refuses it
    write(tmp_path / "checkpoint_best.pt", 10)
    update = write(tmp_path / "checkpoint_3_20.pt", 20)
    write(tmp_path / "checkpoint_average.pt", 90)  # a user's own
    assert restored(tmp_path) == (str(update), None)
    said = capsys.readouterr().err
    assert f"{last}: expected a whole checkpoint, but it is cut short" in said
    assert "training resumes from checkpoint_3_20.pt, the newest whole one" in said
    last.unlink()
    assert restored(tmp_path, finetune_from_model="general.pt") == (str(update), None)
    assert "but there is none; training resumes from checkpoint_3_20.pt" in capsys.readouterr().err
    assert restored(tmp_path, rank=1) == (str(update), None)
    assert not capsys.readouterr().err
    assert restored(tmp_path, restore_file="general.pt") == ("general.pt", None)


def test_training_does_not_begin_anew_over_damaged_checkpoints(tmp_path: Path) -> None:
    cut(write(tmp_path / "checkpoint1.pt", 10))
    with pytest.raises(DataError, match=r"there is none, and none of the other checkpoints .* is whole \(checkpoint1"):
        restored(tmp_path)


def test_training_removes_what_killed_ones_left(tmp_path: Path) -> None:
    for name in ("checkpoint_3_20.pt", "mine"):
        (tmp_path / temporary_name(name)).touch()
    restored(tmp_path)
    assert [name[:6] for name in os.listdir(tmp_path)] == [".mine."]


def test_a_restart_with_a_damaged_last_checkpoint(shell: Shell, world: World, trained: Path, tmp_path: Path) -> None:
    for name in ("checkpoint_best.pt", "checkpoint_last.pt"):
        shutil.copy(trained / name, tmp_path)
    last = cut(tmp_path / "checkpoint_last.pt")
    done = shell.run("fairseq-train", *world.train_args(save_dir=tmp_path), "--max-epoch", 4)
    assert f"fairseq_llrnn: warning: {last}: expected a whole checkpoint" in done.err
    assert "resumes from checkpoint_best.pt" in done.err
    steps = [read_checkpoint(folder / "checkpoint_last.pt")["optimizer_history"][-1]["num_updates"]
             for folder in (trained, tmp_path)]  # fmt: skip
    assert steps[1] > steps[0]

