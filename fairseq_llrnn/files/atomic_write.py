"""Writes files and folders that are whole or not there: under a temporary name beside their own, then renamed.

A folder that is already there is exchanged for the new one in one step, where the system can (renameat2 of Linux).
Where it cannot, there is a moment in which the name is free: a process that is killed then leaves the earlier folder
aside. The next writer puts it back (`recover`), and a reader can say where it is (`set_aside`).
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, TextIO

from fairseq_llrnn.files.leftovers import leftovers, remove_leftovers, temporary_file, temporary_folder

NEW, EARLIER = "new", "earlier"  # in the temporary folder
_RELATIVE_TO_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EXDEV)


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


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill, which takes its name at the end; where something fails, what stood there stands.

    Args:
        path: a free name, or that of a folder, which is removed when the new one is in its place.

    Raises OSError.
    """
    with temporary_folder(path, partial(_put_back, path)) as temporary:
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
    found = [folder / EARLIER for folder in leftovers(path.parent, path.name.__eq__) if (folder / EARLIER).is_dir()]
    return found[0] if found else None


def recover(path: Path) -> None:
    """Remove what killed writers of the folder `path` left, but put back what they had set aside."""
    remove_leftovers(path.parent, path.name.__eq__, partial(_put_back, path))


def _put_back(path: Path, leftover: Path) -> None:
    if (leftover / EARLIER).is_dir() and not os.path.lexists(path):
        os.replace(leftover / EARLIER, path)
