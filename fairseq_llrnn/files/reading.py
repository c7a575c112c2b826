"""Errors of files that cannot be read: missing files, missing rights, failing disks. Hashes of files.

Special files are detected before they are opened: a device may never end, a pipe without a writer never begins.

Text may come through a pipe, such as a shell's `<(zcat FILE)`. The files of a prior, and models, may not. A pipe has
its content only once, and some readers open their file twice. So `path_of_content` copies the content of a pipe to a
temporary file without a name, for the lifetime of the process.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fairseq_llrnn.errors import DataError


def check_name(path: Path | str) -> None:
    """Raise DataError for characters that no file name can have."""
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:  # a lone surrogate, from JSON or a checkpoint
        encoded = b"\0"
    if b"\0" in encoded:
        raise DataError(f"{path}: expected the name of a file, found invalid characters; check the path")


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Wrap code that opens and reads a file, and raise its failure as DataError."""
    check_name(path)
    try:
        yield
    except OSError as error:
        is_dash = str(path).rpartition(" ")[2] == "-"
        fix = "for stdin write /dev/stdin" if is_dash else "check the path and its rights"
        reason = f"cannot be read: {error.strerror or error}; {fix}"
        raise DataError(f"{path}: {reason}", path) from error


def name_of(path: Path | str) -> str:
    """Return the name of a file as text. Bytes that are not UTF-8 become escapes such as `\\xff`."""
    return os.fsencode(os.path.basename(path)).decode("utf-8", "backslashreplace")


def check_there(option_name: str, path: Path | str, is_folder: bool = False) -> None:
    """Raise DataError unless the file, or folder, exists and is readable. `option_name`: the option that names it."""
    if "dict" in option_name:
        check_dictionary_file(Path(path), f"{option_name} {path}")
    with reading(f"{option_name} {path}"):
        wrong_kind = stat.S_ISDIR(os.stat(path).st_mode) != is_folder
        number = errno.EACCES if not os.access(path, os.R_OK) else errno.ENOTDIR if is_folder else errno.EISDIR
        if number == errno.EACCES or wrong_kind:
            raise OSError(number, os.strerror(number))


def check_dictionary_file(path: Path, name: str) -> None:
    """Raise DataError if a dictionary is a folder, and name the dictionaries in it. `name`: for the message."""
    if path.is_dir():
        files = " or ".join(map(str, sorted(path.glob("dict*.txt"))))
        raise DataError(
            f"{name}: expected a dictionary, found a folder; "
            + (f"did you mean {files}?" if files else "give the dict.txt of fairseq-preprocess")
        )


def is_of_transformers(path: str) -> bool:
    """Return whether a model is a folder of transformers' save_pretrained.

    Raises:
        DataError: the path does not exist.
    """
    if not os.path.lexists(path):
        raise DataError(f"{path}: expected a checkpoint, found no such file or folder; check the path", path)
    return os.path.isfile(os.path.join(path, "config.json"))


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file. Raises as `open_file`."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


Paths = str | Path | Sequence[str | Path]


def as_paths(paths: Paths) -> list[str]:
    """Return one path or several as a list of strings."""
    return [str(paths)] if isinstance(paths, (str, Path)) else [str(path) for path in paths]


MOST_OF_A_PIPE = 1 << 26  # bytes, if the content is read at once
FOLDER, PIPE = "a folder", "a pipe"


def kind_of(status: os.stat_result) -> str | None:
    """Return the kind of a special file in words, or None for an ordinary file."""
    if stat.S_ISREG(status.st_mode):
        return None
    kinds = ((stat.S_ISDIR, FOLDER), (stat.S_ISFIFO, PIPE), (stat.S_ISSOCK, "a socket"))
    return next((name for is_kind, name in kinds if is_kind(status.st_mode)), "a device")


def check_regular_file(path: Path | str, may_be_pipe: bool = True) -> None:
    """Raise DataError for special files: only files, and pipes if `may_be_pipe`, are allowed. Missing files are
    ignored.

    Raises:
        DataError: a device other than /dev/null, or a socket.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return
    kind = kind_of(status)
    is_welcome = kind in (None, FOLDER) or kind == PIPE and may_be_pipe  # a folder cannot be opened
    if not is_welcome and os.path.realpath(path) != os.devnull:
        expected = "a file or a pipe" if may_be_pipe else "a file"
        raise DataError(f"{path}: expected {expected}, found {kind}; copy its content to a file", path)


_PIPES: dict[tuple[int, int], tuple[IO[bytes], int]] = {}  # by device and inode: the content, and its end time


def open_file(path: Path | str) -> io.BufferedReader:
    """Open a file for reading bytes. A pipe starts from its beginning, even if it was read before.

    Raises:
        OSError: the file cannot be opened.
        DataError: as `check_regular_file`.
    """
    check_regular_file(path)
    return open(path_of_content(path), "rb")


def path_of_content(path: Path | str) -> Path:
    """Return a path that can be opened several times: for a pipe, the path of a copy of its content."""
    if not is_pipe(path):
        return Path(path)
    status = os.stat(path)
    key = status.st_dev, status.st_ino
    copy, end_time = _PIPES.get(key, (None, 0))
    if copy is None or end_time != status.st_ctime_ns:  # a later time means new content
        copy = tempfile.TemporaryFile()  # noqa: SIM115  it ends with the process
        with open(path, "rb") as pipe:
            shutil.copyfileobj(pipe, copy)
            copy.flush()
            _PIPES[key] = copy, os.fstat(pipe.fileno()).st_ctime_ns
    return Path(f"/dev/fd/{copy.fileno()}")


def is_pipe(path: Path | str) -> bool:
    """Return whether a path is a pipe, such as a shell's `<(…)`."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_file_or_pipe(path: Path | str) -> bool:
    """Return whether a path is a file or a pipe."""
    return os.path.isfile(path) or is_pipe(path)


def read_whole(path: Path | str, most: int | None = None) -> bytes:
    """Return all bytes of a small file, or of a pipe.

    Args:
        most: bytes that a file may have.

    Raises:
        OSError: the file cannot be read.
        DataError: as `check_regular_file`; more bytes than `most`, or a pipe with more than MOST_OF_A_PIPE.
    """
    with open_file(path) as file:
        most = MOST_OF_A_PIPE if most is None and not os.path.isfile(path) else most
        content = file.read(-1 if most is None else most + 1)
    if most is not None and len(content) > most:
        route, fix = (" through a pipe", "give a file") if is_pipe(path) else ("", "is it the right file?")
        raise DataError(f"{path}: expected at most {most:,} bytes{route}, found more; {fix}", path)
    return content
