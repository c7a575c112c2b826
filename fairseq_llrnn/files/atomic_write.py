"""Files and folders that are written completely or not at all, under a temporary name that is then renamed.

Temporaries are in the folder of their target, so that they can be renamed, with names `.NAME.xxxxxxxx.tmp`. Their
process holds a lock on them (flock). The lock ends with the process, even if it is killed, and is visible to every
machine that shares the disk. A temporary without a lock is a leftover: the next process that writes NAME removes it.
Temporaries of living processes are never removed, and nothing is removed on file systems without locks.

An existing folder is exchanged for the new one in one step, if the system supports it (renameat2 of Linux). Otherwise
the name is free for a moment. If the process is killed then, the earlier folder stays in the temporary one. The next
writer moves it back (`recover`), and a reader can find it (`set_aside`).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from gzip import GzipFile
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO

from fairseq_llrnn.errors import DataError, LLRNNError

LOCK = "lock"  # the locked file in a temporary folder; it is made first, and removed last
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.tmp", re.DOTALL)


def temporary_name(name: str) -> str:
    """Return a new temporary name for `name`."""
    return f".{name}.{secrets.token_hex(4)}.tmp"


@contextmanager
def temporary_file(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Yield a new file in the folder of `path`, open for writing, and its name. It is removed at the end unless
    renamed.

    Raises OSError.
    """
    recover(path)
    temporary = path.with_name(temporary_name(path.name))
    try:  # a signal may interrupt from here on
        while (file := _new(temporary)) is None:
            temporary = path.with_name(temporary_name(path.name))
        with file:
            yield file, temporary
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder in the folder of `path`, for files that become `path`. It is removed at the end with its
    contents.

    It contains a file LOCK. Raises OSError.
    """
    recover(path)
    lock_file = None
    try:
        while lock_file is None:
            folder = path.with_name(temporary_name(path.name))
            folder.mkdir()
            with suppress(FileNotFoundError):  # another process removed the empty folder as a leftover
                lock_file = _new(folder / LOCK)
        with lock_file:
            yield folder
    finally:
        with suppress(OSError):  # the rest becomes a leftover
            _remove(folder)


def _new(path: Path) -> BinaryIO | None:
    """Return a new, locked file, or None if another process has removed it as a leftover before it was locked."""
    file = open(path, "xb")  # noqa: SIM115
    if lock(file.fileno()) is not False and os.fstat(file.fileno()).st_nlink:
        return file
    file.close()
    return None


def lock(descriptor: int) -> bool | None:
    """Lock an open file for as long as it is open. Return False if another process holds the lock, None without
    locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def remove_leftovers(folder: Path, is_name: Callable[[str], bool]) -> None:
    """Remove the temporaries of dead processes, and move folders that they had set aside back. Files that resist stay.

    Args:
        is_name: whether temporaries for a target of this name are meant.
    """
    for leftover, name in leftovers(folder, is_name):
        with suppress(OSError):
            if not leftover.is_dir():
                with open(leftover, "r+b") as file:
                    if lock(file.fileno()):
                        leftover.unlink()
            elif not (leftover / LOCK).exists():
                leftover.rmdir()  # its process was killed before or after the lock, or is about to make it
            else:
                with open(leftover / LOCK, "r+b") as file:
                    if lock(file.fileno()):
                        if (leftover / EARLIER).is_dir() and not os.path.lexists(folder / name):
                            os.replace(leftover / EARLIER, folder / name)
                        _remove(leftover)


def leftovers(folder: Path, is_name: Callable[[str], bool]) -> list[tuple[Path, str]]:
    """Return the temporaries in a folder with the names of their targets, whether or not their processes live."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    matches = [match for name in names if (match := _TEMPORARY.fullmatch(name)) and is_name(match["name"])]
    return [(folder / match[0], match["name"]) for match in matches]


def _remove(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.name == LOCK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    (folder / LOCK).unlink(missing_ok=True)
    folder.rmdir()


NEW, EARLIER = "new", "earlier"  # in the temporary folder
_RELATIVE_TO_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EXDEV)


def check_room(path: Path) -> None:
    """Raise OSError if no file or folder can be made at `path`, whose parent folders may not exist yet."""
    folder = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


@contextmanager
def writing(place: Path | str, what: str, advice: str = "", refuse: type[LLRNNError] = DataError) -> Iterator[None]:
    """Wrap code that writes a file or folder, and raise its failure as an error of type `refuse`.

    Args:
        what: the contents of the place.
        advice: another way out for the user.
    """
    try:
        yield
    except OSError as error:
        raise refuse(
            f"{place}: the {what} cannot be written ({error.strerror or error}); check the rights and the free space "
            f"there{advice}"
        ) from None


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Yield a UTF-8 file for writing, which replaces `path` at the end. If an error occurs, `path` is unchanged.

    A file whose name ends in .gz is packed by gzip. Raises OSError.
    """
    with whole_binary(path) as raw:
        gzip = path.suffix == ".gz"
        binary = GzipFile("", "wb", 6, raw, mtime=0) if gzip else os.fdopen(raw.fileno(), "wb", closefd=False)
        with TextIOWrapper(binary, encoding="utf-8", newline="\n") as file:  # closing it leaves `raw` open
            yield file


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a file and its folder, as `whole_file`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.writelines(f"{line}\n" for line in lines)


@contextmanager
def whole_binary(path: Path) -> Iterator[BinaryIO]:
    """Yield a binary file, as `whole_file`."""
    with temporary_file(path) as (file, temporary):
        yield file
        file.flush()
        os.fsync(file.fileno())  # otherwise the name may be on disk before the contents
        os.replace(temporary, path)


def may_replace(path: Path, belongs: Callable[[str], object]) -> bool:
    """Return whether `whole_folder` would lose nothing: the name is free, or a folder has only files of the writer.

    Args:
        belongs: returns true for the names of the writer's files.
    """
    return not os.path.lexists(path) or (os.path.isdir(path) and all(belongs(entry.name) for entry in path.iterdir()))


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder to fill, which replaces `path` at the end. If an error occurs, `path` is unchanged.

    Args:
        path: a free name, or that of a folder, which is then removed (`may_replace`).

    Raises OSError.
    """
    path = path.absolute()  # `.` has no name that a rename could take; `..` stays: a link may lead elsewhere
    with temporary_folder(path) as temporary:
        new = temporary / NEW
        new.mkdir()
        yield new
        for file in new.rglob("*"):
            if file.is_file():
                with file.open("rb") as stream:
                    os.fsync(stream.fileno())
        if not os.path.lexists(path):
            os.replace(new, path)
        elif not exchange(new, path):
            _set_aside(path, temporary / EARLIER, new)


def exchange(first: Path, second: Path) -> bool:
    """Exchange the names of two files or folders in one step. If the system cannot, do nothing and return False.

    Raises OSError.
    """
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # another libc, another system
        return False
    rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    if rename(_RELATIVE_TO_HERE, os.fsencode(first), _RELATIVE_TO_HERE, os.fsencode(second), _EXCHANGE) == 0:
        return True
    error_number = ctypes.get_errno()
    if error_number in _CANNOT:
        return False
    raise OSError(error_number, os.strerror(error_number), str(second))


def _set_aside(path: Path, earlier: Path, new: Path) -> None:
    os.replace(path, earlier)
    try:
        os.replace(new, path)
    except BaseException:  # an interruption, too
        os.replace(earlier, path)
        raise


def set_aside(path: Path) -> Path | None:
    """Return the folder to which a killed process moved `path`, if nothing has its name now."""
    if os.path.lexists(path):
        return None
    earlier = (leftover / EARLIER for leftover, _ in leftovers(path.parent, path.name.__eq__))
    return next((folder for folder in earlier if folder.is_dir()), None)


def recover(path: Path) -> None:
    """Remove the leftovers of `path` (`remove_leftovers`)."""
    remove_leftovers(path.parent, path.name.__eq__)
