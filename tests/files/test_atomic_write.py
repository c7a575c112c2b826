"""Files and folders are complete or absent, even if their writer is killed, and leftovers are removed."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from killed_at_steps import killed_before

from fairseq_llrnn.files import atomic_write
from fairseq_llrnn.files.atomic_write import (
    LOCK,
    exchange,
    lock,
    set_aside,
    temporary_folder,
    temporary_name,
    whole_binary,
    whole_file,
    whole_folder,
)


@pytest.fixture(params=["exchanged", "renamed twice"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Run with and without the kernel's exchange of names."""
    if request.param == "renamed twice":
        monkeypatch.setattr(atomic_write, "exchange", lambda one, other: False)
    else:
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
        if not exchange(tmp_path / "one", tmp_path / "other"):
            pytest.skip("this file system cannot exchange names")
        (tmp_path / "one").rmdir()
        (tmp_path / "other").rmdir()
    yield request.param


def write_text(path: Path, text: str) -> None:
    with whole_file(path) as file:
        file.write(text)


def write_folder(path: Path, text: str) -> None:
    with whole_folder(path) as folder:
        (folder / "part").mkdir()
        (folder / "a").write_text(text, encoding="utf-8")
        (folder / "part" / "b").write_text(text, encoding="utf-8")


def content(folder: Path) -> str:
    """Return the contents, which all come from one writer."""
    one, other = (folder / "a").read_text(encoding="utf-8"), (folder / "part" / "b").read_text(encoding="utf-8")
    assert one == other and sorted(found.name for found in folder.iterdir()) == ["a", "part"]
    return one


def test_a_file_is_there_whole_after_a_kill_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "old")
    step = 1
    while killed_before(step, lambda: write_text(path, "new")):
        assert path.read_text(encoding="utf-8") in ("old", "new")
        step += 1
    assert step > 3
    write_text(path, "newest")
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_is_there_whole_after_a_kill_at_any_moment(both_ways: str, tmp_path: Path) -> None:
    path = tmp_path / "folder"
    write_folder(path, "old")
    step = aside = 1
    while killed_before(step, lambda: write_folder(path, "new")):
        if both_ways == "exchanged":
            assert set_aside(path) is None
        elif (earlier := set_aside(path)) is not None:
            assert content(earlier) in ("old", "new")
            aside += 1
        assert content(set_aside(path) or path) in ("old", "new")
        step += 1
    assert step > 8 and (aside > 1) == (both_ways == "renamed twice")
    assert content(path) == "new"
    assert os.listdir(tmp_path) == ["folder"]


def test_what_was_set_aside_is_put_back_before_the_next_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic_write, "exchange", lambda one, other: False)
    path, step = tmp_path / "folder", 1
    while set_aside(path) is None:
        write_folder(path, "old")
        assert killed_before(step, lambda: write_folder(path, "new"))
        step += 1
    with pytest.raises(OSError, match="full"), whole_folder(path):
        raise OSError("full")
    assert content(path) == "old"
    assert os.listdir(tmp_path) == ["folder"]


def test_what_is_set_aside_at_the_last_moment_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer is killed during our search for leftovers. The next search rescues its contents."""
    path, search = tmp_path / "folder", atomic_write.remove_leftovers
    write_folder(path, "old")

    def search_later(*given: Any) -> None:
        if path.exists():
            leftover = tmp_path / temporary_name("folder")
            leftover.mkdir()
            (leftover / LOCK).touch()
            os.replace(path, leftover / atomic_write.EARLIER)
        search(*given)

    monkeypatch.setattr(atomic_write, "remove_leftovers", search_later)
    with pytest.raises(OSError, match="full"), whole_folder(path):
        raise OSError("full")
    assert content(path) == "old" and os.listdir(tmp_path) == ["folder"]


@pytest.mark.parametrize("make", [atomic_write.temporary_file, atomic_write.temporary_folder])
def test_a_new_temporary_that_another_process_takes_for_a_leftover(
    make: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process locks it first and is about to remove it: we choose another name."""
    taken: list[tuple[Path, BinaryIO]] = []

    def open_late(path: Path, mode: str) -> BinaryIO:
        file: BinaryIO = open(path, mode)  # noqa: SIM115
        if mode == "xb" and not taken:
            taken.append((path, open(path, "rb")))  # noqa: SIM115
            assert lock(taken[0][1].fileno())
        return file

    monkeypatch.setattr(atomic_write, "open", open_late, raising=False)
    with make(tmp_path / "name") as made:
        [(path, file)] = taken
        path.unlink()
        file.close()
        ours = made[1] if isinstance(made, tuple) else made / LOCK
        assert ours.exists()


def test_an_error_leaves_what_was_there(both_ways: str, tmp_path: Path) -> None:
    write_text(tmp_path / "file", "old")
    write_folder(tmp_path / "folder", "old")
    with pytest.raises(KeyboardInterrupt), whole_file(tmp_path / "file") as file:
        file.write("ne")
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "folder") as folder:
        (folder / "a").write_text("new", encoding="utf-8")
        raise KeyboardInterrupt
    assert (tmp_path / "file").read_text(encoding="utf-8") == content(tmp_path / "folder") == "old"
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_the_temporaries_of_living_processes_stay(tmp_path: Path) -> None:
    """Of two concurrent writers, the last one wins, and each ignores the other's temporaries."""
    path = tmp_path / "file"
    with whole_binary(path) as slow:
        slow.write(b"sl")
        write_text(path, "quick")
        slow.write(b"ow")
    assert path.read_bytes() == b"slow"
    with whole_folder(tmp_path / "folder") as other:
        (other / "a").write_text("x", encoding="utf-8")
        write_folder(tmp_path / "folder", "quick")
        assert (other / "a").exists()
    assert [found.name for found in (tmp_path / "folder").iterdir()] == ["a"]
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_the_temporaries_of_other_processes_stay_while_they_live(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from fairseq_llrnn.files.atomic_write import whole_file\n"
        "with whole_file(Path(sys.argv[1])) as file: print('ready', flush=True); sys.stdin.read(); file.write('theirs')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "file")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        other.stdout.readline()
        write_text(tmp_path / "file", "ours")
        assert len(os.listdir(tmp_path)) == 2
        other.stdin.close()
    assert (tmp_path / "file").read_text(encoding="utf-8") == "theirs"
    assert os.listdir(tmp_path) == ["file"]


def test_leftovers_of_other_names_and_strange_files_stay(tmp_path: Path) -> None:
    for name in (".file.tmp", temporary_name("another"), ".file.0123.tmp", ".file.xxxxxxxx.tmp", "file.01234567.tmp"):
        (tmp_path / name).touch()
    before = sorted(os.listdir(tmp_path))
    write_text(tmp_path / "file", "text")
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "file"])


def test_what_cannot_be_locked_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without locks, the owner of a temporary is unknown."""
    leftover = tmp_path / temporary_name("file")
    leftover.touch()

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", refuse)
    write_text(tmp_path / "file", "text")
    assert leftover.exists()


def test_a_temporary_folder_is_locked_and_goes(tmp_path: Path) -> None:
    with temporary_folder(tmp_path / "scratch") as folder:
        (folder / "deep" / "er").mkdir(parents=True)
        with (folder / LOCK).open("rb") as file:
            assert not lock(file.fileno())
    assert not os.listdir(tmp_path)


def test_the_rights_are_those_of_ordinary_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "file", "text")
        write_folder(tmp_path / "folder", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o750


def test_the_present_folder_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "place").mkdir()
    monkeypatch.chdir(tmp_path / "place")
    with whole_folder(Path(".")) as folder:
        (folder / "new").touch()
    assert [path.name for path in (tmp_path / "place").iterdir()] == ["new"]
