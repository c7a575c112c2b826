"""Checkpoints are data: a hostile or damaged one is refused by every command, in one line that names it."""

import argparse
import io
import os
import pickle
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from shell import ROOT, TRUSTING, Result, Shell, run_script, script
from tiny_world import World

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.compat import user_errors


class Hostile:
    """Unpickled, it makes a file."""

    def __init__(self, touched: Path) -> None:
        self.touched = touched

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.touched),)


def contents(place: Path) -> dict:
    hostile = Hostile(place / "touched")
    return {"model": {"weight": torch.zeros(3)}, "args": argparse.Namespace(), "extra_state": hostile}


def write_zip(path: Path) -> None:
    torch.save(contents(path.parent), path)


def write_legacy(path: Path) -> None:
    torch.save(contents(path.parent), path, _use_new_zipfile_serialization=False)


def write_bare_pickle(path: Path, protocol: int | None = None) -> None:
    path.write_bytes(pickle.dumps(contents(path.parent), protocol=protocol))


def write_old_pickle(path: Path) -> None:
    write_bare_pickle(path, protocol=2)


def write_tar(path: Path) -> None:
    data = pickle.dumps(Hostile(path.parent / "touched"))
    with tarfile.open(path, "w") as archive:
        for name in ("sys_info", "pickle", "storages", "tensors"):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


WRITERS = [write_zip, write_legacy, write_bare_pickle, write_old_pickle, write_tar]


def assert_refused(result: Result, path: Path, *words: str) -> None:
    assert result.code != 0
    last = result.err.strip().splitlines()[-1]
    assert "error: " in last
    assert str(path) in last
    assert all(word in last for word in words), last
    assert "Traceback" not in result.err
    assert not (path.parent / "touched").exists()


def commands(world: World, path: Path) -> dict[str, list[object]]:
    """Every command that reads a checkpoint, with its arguments."""
    return {
        "fairseq-train": [*world.train_args(), "--restore-file", path, "--max-update", 1],
        "fairseq-validate": [*world.task_args(), "--path", path, "--max-tokens", 100],
        "fairseq-eval-lm": [*world.task_args(), "--path", path],
        "fairseq-generate": [*world.task_args(), "--path", path, "--prefix-size", 1],
        "fairseq-interactive": [*world.task_args(), "--path", path],
        "llrnn": ["explain", "--path", path, "--data", world.data, "le chat"],
    }


COMMANDS = ["fairseq-train", "fairseq-validate", "fairseq-eval-lm", "fairseq-generate", "fairseq-interactive", "llrnn"]


def compressed(path: Path) -> Path:
    """A checkpoint of a few kilobytes that would ask for a hundred megabytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("bomb/data/0", "w") as record:
        for _ in range(100):
            record.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 18
    return path


@pytest.mark.parametrize("kind", ["would run code", "compressed", "a device", "another kind of file"])
def test_our_own_commands_refuse_every_kind(kind: str, shell: Shell, world: World, tmp_path: Path) -> None:
    path = tmp_path / "hostile.pt"
    if kind == "compressed":
        compressed(path)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    elif kind == "another kind of file":
        path.write_text("no checkpoint\n" * 50, encoding="utf-8")
    else:
        write_zip(path)
    (tmp_path / "list").write_text("0 ||| le chat ||| LM= -1 ||| -1\n", encoding="utf-8")
    for arguments in (
        ["explain", "--path", path, "--data", world.data, "le chat"],
        ["score", "--path", path, "--data", world.data],
        ["rescore", "--path", path, "--data", world.data, "--nbest", tmp_path / "list", "--out", tmp_path / "best"],
        [
            "prior", "--dict", world.data / "dict.txt", "--top-words", 5, "--background", f"model:{path}", "--out",
            tmp_path / "p",
        ],
    ):
        result = shell.run("llrnn", *arguments, stdin="le chat\n", code=2)
        found = ["found a device"] if kind == "a device" and arguments[0] != "prior" else []
        assert_refused(result, path, "expected", *found)
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import average_checkpoints

        with pytest.raises(DataError, match=r"hostile\.pt: .*expected a .*checkpoint"):
            average_checkpoints.read(path)
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    assert sorted(set(os.listdir(tmp_path)) - {"hostile.pt", "list"}) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_the_environment_cannot_make_our_tasks_trust_a_file(
    command: str, shell: Shell, world: World, tmp_path: Path
) -> None:
    """TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD, by which torch trusts whatever fairseq's own tasks load."""
    path = tmp_path / "hostile.pt"
    write_zip(path)
    arguments = commands(world, path)[command]
    result = shell.run(command, *arguments, stdin="le chat\n", code=None, variables=TRUSTING)
    assert_refused(result, path, "nothing of it was executed", "mkdir")


@pytest.mark.slow
def test_a_console_script_from_nothing_refuses_it_too(world: World, tmp_path: Path) -> None:
    """A process of its own, in a checkout, with --user-dir as the README has it."""
    path = tmp_path / "hostile.pt"
    write_zip(path)
    arguments = commands(world, path)["fairseq-train"]
    arguments[arguments.index("--user-dir") + 1] = "fairseq_llrnn"
    result = run_script(script("fairseq-train"), *arguments, cwd=ROOT, code=1)
    assert "criterion: LogLinearCriterion" in result.out
    assert "already been imported" not in result.out
    assert_refused(result, path, "refused", "nothing of it was executed", "mkdir")


def test_the_default_restore_file_is_read_no_less_carefully(shell: Shell, world: World, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_last.pt"
    write_zip(path)
    assert_refused(shell.run("fairseq-train", *world.train_args(save_dir=tmp_path), code=1), path, "refused")


@pytest.fixture
def load() -> Iterator[Callable[[str], object]]:
    """fairseq's function, as our tasks use it."""
    from fairseq import checkpoint_utils

    from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading

    with safe_loading():
        yield checkpoint_utils.load_checkpoint_to_cpu


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("write", WRITERS)
def test_every_format_of_a_hostile_checkpoint_is_refused(write: Callable, load: Callable, tmp_path: Path) -> None:
    path = tmp_path / "hostile.pt"
    write(path)
    with pytest.raises(DataError, match="refused.*nothing of it was executed") as caught:
        load(str(path))
    assert str(path) in str(caught.value)
    assert not (tmp_path / "touched").exists()
    # the fixture is a danger in earnest
    if write is not write_tar:
        with pytest.raises(Exception):  # noqa: B017 - whatever the rest of the file leads to
            torch.load(path, weights_only=False)["no such key"]
        assert (tmp_path / "touched").exists()


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_a_script_archive_is_refused(load: Callable, tmp_path: Path) -> None:
    path = tmp_path / "script.pt"
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), path)
    with pytest.raises(DataError, match="refused.*TorchScript"):
        load(str(path))


@pytest.mark.parametrize("share", [0.0, 0.00005, 0.0002, 0.001, 0.02, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_cut_short_is_refused(
    zipped: bool, share: float, load: Callable, trained: Path, tmp_path: Path
) -> None:
    path = tmp_path / "cut.pt"
    whole = torch.load(trained / "checkpoint_last.pt", weights_only=False)
    torch.save(whole, path, _use_new_zipfile_serialization=zipped)
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(DataError, match="cut short or damaged|damaged one or another kind of file") as caught:
        load(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_text_is_said_to_be_one(load: Callable, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("çok güzel bir gün .\n" * 99, encoding="utf-8")
    with pytest.raises(DataError, match="train.txt: expected a checkpoint, found a text; give the .pt file that train"):
        load(str(path))


def test_blocks_of_safe_loading_may_be_nested(tmp_path: Path) -> None:
    """Each leaves behind what it found, also what the user allows."""
    from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading

    path = tmp_path / "options.pt"
    torch.save({"args": argparse.Namespace(task="translation")}, path)
    for allowed in ([], [argparse.Namespace]):
        with torch.serialization.safe_globals(allowed):
            before = (torch.load, set(torch.serialization.get_safe_globals()))
            with safe_loading():
                with safe_loading():
                    torch.load(path)
                assert torch.load(path)["args"].task == "translation"
            assert (torch.load, set(torch.serialization.get_safe_globals())) == before


def test_a_missing_checkpoint_stays_what_it_is(load: Callable, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(str(tmp_path / "none.pt"))


def test_other_errors_keep_their_trace(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Only errors that a user can fix lose their stack trace: those of ours, wrapped by fairseq or not."""
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    # a progress bar of another test has a thread
    monkeypatch.setattr(user_errors, "leave_if_others_run", lambda status: None)
    monkeypatch.delenv(user_errors.COMMAND, raising=False)
    assert not user_errors.in_command()
    user_errors.enter_command()
    user_errors.enter_command()
    assert user_errors.in_command()

    def said(error: BaseException) -> str:
        try:
            raise error
        except type(error):
            sys.excepthook(*sys.exc_info())
        return capsys.readouterr().err

    assert "Traceback" in said(ValueError("a bug"))
    assert said(DataError("fix it")) == "fairseq_llrnn: error: fix it\n"
    wrapped = Exception("Cannot load model parameters")
    wrapped.__context__ = DataError("fix it")
    assert said(wrapped) == "fairseq_llrnn: error: fix it (Cannot load model parameters)\n"
    wrapped.__context__ = DataError("m.pt: fix it", "m.pt")
    for words, option in (
        (["--path", "m.pt"], "--path "),
        (["--path=a.pt:m.pt"], "--path "),
        (["--source-prior", "m.pt"], "--source-prior "),
        (["--path", "m"], "--path "),
        (["--cpu", "m.pt"], ""),
        (["m.pt", "--path"], ""),
    ):
        monkeypatch.setattr(sys, "argv", ["fairseq-generate", *words])
        assert said(wrapped) == f"fairseq_llrnn: error: {option}m.pt: fix it (Cannot load model parameters)\n"
    apart = ValueError("a bug")
    apart.__context__, apart.__suppress_context__ = DataError("fixed"), True
    assert "Traceback" in said(apart)


@pytest.mark.parametrize(
    ("found", "fix"),
    [
        ("Cannot load model parameters from checkpoint a.pt; please ensure that the architectures match.",
         "Use --arch and the sizes with which the checkpoint was trained, or another --save-dir"),
        ("Optimizer does not match; please reset the optimizer (--reset-optimizer). A vs B",
         "Or use the optimizer of the checkpoint"),
        ("Criterion does not match; please reset the optimizer (--reset-optimizer). A vs B",
         "Or use the criterion of the checkpoint"),
    ],
)  # fmt: skip
def test_messages_of_fairseq_about_a_resumed_training_are_one_line(found: str, fix: str) -> None:
    assert user_errors.what_users_did(AssertionError(found)) == f"{found} {fix}"
    assert user_errors.what_users_did(AssertionError(f"A bug: {found}")) is None


def test_a_training_does_not_go_on_with_another_optimizer(world: World, shell: Shell, tmp_path: Path) -> None:
    begin = ["llrnn", "train", world.data, "--decoder-embed-dim", 8, "--decoder-hidden-size", 8, "--cpu"]
    begin += ["--num-workers", 0, "--save-dir", tmp_path]
    shell.run(*begin, "--max-update", 1)
    for words, said in (
        (["--optimizer", "sgd", "--lr", "0.1"], "Optimizer does not match; please reset the optimizer"),
        (["--criterion", "cross_entropy"], "Criterion does not match; please reset the optimizer"),
    ):
        refused = shell.run(*begin, "--max-update", 2, *words, code=2)
        assert said in refused.err and "Traceback" not in refused.err


def test_a_resumed_training_with_another_schedule(world: World, shell: Shell, tmp_path: Path) -> None:
    begin = ["llrnn", "train", world.data, "--cpu", "--num-workers", 0, "--save-dir", tmp_path]
    begin += ["--decoder-embed-dim", 8, "--decoder-hidden-size", 8]
    shell.run(*begin, "--lr-scheduler", "fixed", "--max-update", 1)
    last = tmp_path / "checkpoint_last.pt"
    before = last.read_bytes()
    schedules = {
        "reduce_lr_on_plateau": [], "inverse_sqrt": ["--warmup-updates", 10], "cosine": [],
        "polynomial_decay": ["--total-num-update", 9],
    }  # fmt: skip
    for name, options in schedules.items():
        words = ["--lr-scheduler", name, *options, "--max-update", 2]
        refused = shell.run(*begin, *words, code=2)
        assert refused.err.splitlines()[-1].endswith(
            f"error: --lr-scheduler {name}: {last} was trained with --lr-scheduler fixed, whose state does not fit; "
            "add --reset-lr-scheduler, or use --lr-scheduler fixed"
        )
        assert "Traceback" not in refused.err and last.read_bytes() == before
    shell.run(*begin, *words, "--reset-lr-scheduler")
    shell.run(*begin, "--lr-scheduler", "fixed", "--max-update", 3)  # a state of this kind fits
    assert last.read_bytes() != before


def test_fine_tuning(world: World, trained: Path, shell: Shell, tmp_path: Path) -> None:
    """fairseq-train --finetune-from-model with the prior of the checkpoint's training, and with other sizes."""
    begun = ("--finetune-from-model", trained / "checkpoint_best.pt", "--max-update", 1)
    done = shell.run("fairseq-train", *world.train_args(save_dir=tmp_path / "tuned"), *begun)
    assert "loading pretrained model" in done.err + done.out and (tmp_path / "tuned" / "checkpoint_last.pt").exists()
    sizes = ("--decoder-hidden-size", 7)
    refused = shell.run("fairseq-train", *world.train_args(save_dir=tmp_path / "other"), *begun, *sizes, code=1)
    assert "ensure that the architectures match" in refused.err
