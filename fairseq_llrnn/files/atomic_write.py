"""Temporary files and folders that live as long as the process that made them, also where that is killed.

They lie beside what they are for, so that a rename can put them there, and are called `.NAME.xxxxxxxx.tmp`. Whoever
makes one holds a lock on it (flock), which ends with the process, however it ends, and is seen by every machine that
shares the disk. What is not locked is a leftover: the next one to write NAME removes it, and never that of a living
process. Where the file system has no locks, nothing is removed.

Writes files and folders that are whole or not there: under a temporary name beside their own, then renamed.

A folder that is already there is exchanged for the new one in one step, where the system can (renameat2 of Linux).
Where it cannot, there is a moment in which the name is free: a process that is killed then leaves the earlier folder
aside. The next writer puts it back (`recover`), and a reader can say where it is (`set_aside`).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from fairseq_llrnn.errors import DataError, LLRNNError

LOCK = "lock"  # the file in a temporary folder that is locked; it is made first, and removed last
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.tmp", re.DOTALL)


def temporary_name(name: str) -> str:
    """A new name for what is to be called `name`."""
    return f".{name}.{secrets.token_hex(4)}.tmp"


@contextmanager
def temporary_file(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A new file beside `path`, open to write, and its name; removed at the end, unless it was renamed.

    Raises OSError.
    """
    recover(path)
    temporary = path.with_name(temporary_name(path.name))
    try:  # from here on, it may be there, and a signal may come
        while (file := _new(temporary)) is None:
            temporary = path.with_name(temporary_name(path.name))
        with file:
            yield file, temporary
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """A new folder beside `path`, for the files that become `path`; removed at the end with all that it then holds.

    It holds a file LOCK. Raises OSError.
    """
    recover(path)
    held = None
    try:
        while held is None:
            folder = path.with_name(temporary_name(path.name))
            folder.mkdir()
            with suppress(FileNotFoundError):  # another process took the folder, still empty, for a leftover
                held = _new(folder / LOCK)
        with held:
            yield folder
    finally:
        with suppress(OSError):  # what cannot be removed now is a leftover later
            _remove(folder)


def _new(path: Path) -> BinaryIO | None:
    """A new file, locked; None if another process took it for a leftover before it was, and removes it."""
    file = open(path, "xb")  # noqa: SIM115
    if lock(file.fileno()) is not False and os.fstat(file.fileno()).st_nlink:
        return file
    file.close()
    return None


def lock(descriptor: int) -> bool | None:
    """Lock an open file for as long as it is open. False: another has locked it; None: there are no locks there."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def remove_leftovers(folder: Path, is_name: Callable[[str], bool]) -> None:
    """Remove the temporaries that processes left which live no more, but put back what they had set aside.

    What cannot be removed stays.

    Args:
        is_name: tells by the names that they were to take which ones are meant.
    """
    for leftover, name in leftovers(folder, is_name):
        with suppress(OSError):
            if not leftover.is_dir():
                with open(leftover, "r+b") as file:
                    if lock(file.fileno()):
                        leftover.unlink()
            elif not (leftover / LOCK).exists():
                leftover.rmdir()  # killed before it made the lock, or after it removed it; or about to make it
            else:
                with closing(open(leftover / LOCK, "r+b")) as file:
                    if lock(file.fileno()):
                        if (leftover / EARLIER).is_dir() and not os.path.lexists(folder / name):
                            os.replace(leftover / EARLIER, folder / name)
                        _remove(leftover)


def leftovers(folder: Path, is_name: Callable[[str], bool]) -> list[tuple[Path, str]]:
    """The temporaries in a folder, and such names as they were to take, whether or not their processes live."""
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
    """Raise OSError where no file or folder can be made beside `path`, whose folders may be not there yet."""
    folder = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


@contextmanager
def writing(place: Path | str, what: str, advice: str = "", refuse: type[LLRNNError] = DataError) -> Iterator[None]:
    """Around code that writes a file or folder. Raises `refuse` where that fails.

    Args:
        what: the place holds. advice: what else a user may do.
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
    """A UTF-8 file to write, which takes its name at the end; where something fails, what stood there stands.

    Raises OSError.
    """
    with whole_binary(path) as raw, open(raw.fileno(), "w", encoding="utf-8", newline="\n", closefd=False) as file:
        yield file


@contextmanager
def whole_binary(path: Path) -> Iterator[BinaryIO]:
    """The same for bytes."""
    with temporary_file(path) as (file, temporary):
        yield file
        file.flush()
        os.fsync(file.fileno())  # or the name may be on disk before what it names
        os.replace(temporary, path)


def may_replace(path: Path, belongs: Callable[[str], object]) -> bool:
    """Whether `whole_folder` loses nothing there: a free name, or a folder with files of these names and no others.

    Args:
        belongs: of the name of a file: true where whoever writes the folder has such.
    """
    return not os.path.lexists(path) or (os.path.isdir(path) and all(belongs(entry.name) for entry in path.iterdir()))


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill, which takes its name at the end; where something fails, what stood there stands.

    Args:
        path: a free name, or that of a folder, which is removed when the new one is in its place (`may_replace`).

    Raises OSError.
    """
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


def exchange(one: Path, other: Path) -> bool:
    """Let two files or folders change names, in one step; False, and nothing done, where the system cannot.

    Raises OSError.
    """
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # another libc, another system
        return False
    rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    if rename(_RELATIVE_TO_HERE, os.fsencode(one), _RELATIVE_TO_HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))


def _set_aside(path: Path, earlier: Path, new: Path) -> None:
    os.replace(path, earlier)
    try:
        os.replace(new, path)
    except BaseException:  # an interruption, too
        os.replace(earlier, path)
        raise


def set_aside(path: Path) -> Path | None:
    """Where the folder `path` is, if a process that was about to replace it was killed, and nothing has its name."""
    if os.path.lexists(path):
        return None
    earlier = (leftover / EARLIER for leftover, _ in leftovers(path.parent, path.name.__eq__))
    return next((folder for folder in earlier if folder.is_dir()), None)


def recover(path: Path) -> None:
    """`remove_leftovers` of the folder `path`."""
    remove_leftovers(path.parent, path.name.__eq__)
