"""The places that a command reads from and writes to.

Text from stdin or from a file is read alike: as UTF-8, whatever the terminal's own encoding is.

Places that results cannot be written to are refused before anything is computed.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.files.atomic_write import check_room, whole_file, writing
from fairseq_llrnn.files.reading import check_name, reading
from fairseq_llrnn.files.text_lines import iter_lines, numbered, opened

STDIN = "-"


def text_lines(path: str) -> Iterator[str]:
    """The lines of a file, or of stdin where it is called `-`, each with a newline. Raises DataError."""
    lines = _of_stdin() if path == STDIN else iter_lines(path)
    return (f"{line}\n" for _, line in lines)


def _of_stdin() -> Iterator[tuple[int, str]]:
    _check_stdin()
    with reading("stdin"):
        yield from numbered(sys.stdin.buffer, "stdin")


def _check_stdin() -> None:
    if sys.stdin is None:  # closed, as by `<&-`
        raise DataError("stdin: expected a text, found it closed; give a file, or a text by `|` or `<`")


def stdin_lines() -> Iterator[str]:
    """The lines of stdin."""
    return text_lines(STDIN)


def check_text(path: str) -> None:
    """Raise DataError where a text cannot be read: now, and not when a model was loaded. A pipe begins but once."""
    if path == STDIN:
        _check_stdin()
        return
    with reading(path):
        is_pipe = Path(path).is_fifo()
    if not is_pipe:
        with opened(path):
            pass


STDOUT = "-"


def expanded(words: Sequence[str]) -> list[str]:
    """Expand `~` where the value of an option begins with it: shells do so in `--out ~/x`, but not in `--out=~/x`."""
    arguments: list[str] = []
    for word in words:
        option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        is_value = equals or (arguments and arguments[-1].startswith("--") and "=" not in arguments[-1])
        if is_value and value.startswith("~") and ("/" in value or value == "~"):
            word = f"{option}{equals}{os.path.expanduser(value)}"
        arguments.append(word)
    return arguments


def check_folder(option: str, value: object) -> None:
    """Raise OptionError where an option that names a folder is `-`, which would make one of this name."""
    if value == STDOUT:
        name = f"{option} -".lstrip()  # an argument has no option
        raise OptionError(f"{name}: expected a folder, found the sign for stdout; give the name of a folder")


def check_place(path: str, name: str, read: Iterable[str | None] = ()) -> None:
    """Raise OptionError, or DataError for a name, unless `path` can be a new file, or one to replace.

    Args:
        name: of the path in the message, as the user gave it.
        read: the files that are read, which it would replace; `-` among these is stdin, perhaps a file.
    """
    if path == STDOUT:
        raise OptionError(
            f"{name}: expected a file to write or replace, found stdout, which cannot take it; give a file"
        )
    check_name(name)
    if not path:
        raise OptionError(f"{name}: expected a file to write or replace, found an empty name; give a file")
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise OptionError(f"{name}: expected a place in a folder, but there is no such folder; make it first")
    if os.path.exists(path) and not os.path.isfile(path):
        raise OptionError(f"{name}: expected a file to write or replace, found a folder or device; give another")
    try:
        check_room(Path(path))
    except OSError as error:
        raise OptionError(f"{name}: cannot be written: {error.strerror}; give another place") from None
    for other in read:
        try:
            is_same = other is not None and os.path.samestat(os.stat(0 if other == STDIN else other), os.stat(path))
        except (OSError, ValueError):  # what is missing or closed, or no name, is the reader's to refuse
            continue
        if is_same:
            what = "the one on stdin" if other == STDIN else "one that is read"
            raise OptionError(f"{name}: expected another file, found {what}, which would be lost")


def check_text_place(path: str | None, read: Iterable[str | None], option: str = "--out") -> None:
    """`check_place` of what text goes to: None and `-` are stdout."""
    if path is not None and path != STDOUT:
        check_place(path, f"{option} {path}", read)


def beside(path: str | None) -> TextIO:
    """Where lines beside a text are printed: on stderr where the text goes to stdout."""
    return sys.stderr if path in (None, STDOUT) else sys.stdout


@contextmanager
def text_output(path: str | None) -> Iterator[TextIO]:
    """A text file that takes its name when it is whole, with errors as above; None and `-`: stdout."""
    if path is None or path == STDOUT:
        yield sys.stdout
        return
    with writing(path, "result"), whole_file(Path(path)) as file:
        yield file
