"""Check, read and write the files of a command.

Text from stdin and from files is read as UTF-8, in any locale. Output places are checked before anything is computed.
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
from fairseq_llrnn.files.text_lines import iter_lines, numbered, opened, text_only

STDIN = "-"


def text_lines(path: str) -> Iterator[str]:
    """Yield the lines of a text, or of stdin if it is `-`, each with a newline. Raises DataError, as `text_only`."""
    lines = text_only(_of_stdin(), "stdin") if path == STDIN else text_only(iter_lines(path), path)
    return (f"{line}\n" for _, line in lines)


def _of_stdin() -> Iterator[tuple[int, str]]:
    _check_stdin()
    with reading("stdin"):
        yield from numbered(sys.stdin.buffer, "stdin")


def _check_stdin() -> None:
    if sys.stdin is None:  # closed by `<&-`
        raise DataError("stdin is closed: pass a file, or a text by `|` or `<`")


def check_text(path: str) -> None:
    """Raise DataError if a text cannot be read, before a model is loaded. A pipe is not opened: it can be read only
    once.
    """
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
    """Expand `~` at the beginning of an option's value. Shells do so in `--out ~/x`, but not in `--out=~/x`."""
    arguments: list[str] = []
    for word in words:
        option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        is_value = equals or (arguments and arguments[-1].startswith("--") and "=" not in arguments[-1])
        if is_value and value.startswith("~") and ("/" in value or value == "~"):
            word = f"{option}{equals}{os.path.expanduser(value)}"
        arguments.append(word)
    return arguments


def check_place(path: str, name: str, read: Iterable[str | None] = ()) -> None:
    """Raise OptionError, or DataError for an invalid name, unless `path` can be written or replaced.

    Args:
        name: the path in the message, with its option.
        read: the input files, which must not be replaced. `-` is stdin, which may be a file.
    """
    if path == STDOUT:
        raise OptionError(
            f"{name}: expected a file to write or replace, found stdout, which cannot take it; name a file"
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
        raise OptionError(f"{name}: cannot be written: {error.strerror}; name another place") from None
    for other in read:
        try:
            is_same = other is not None and os.path.samestat(os.stat(0 if other == STDIN else other), os.stat(path))
        except (OSError, ValueError):  # missing, closed or no valid name: the reader raises its own error
            continue
        if is_same:
            file = "the one on stdin" if other == STDIN else "one that is read"
            raise OptionError(f"{name}: expected another file, found {file}, which would be lost")


def check_text_place(path: str | None, read: Iterable[str | None], option: str = "--out") -> None:
    """Run `check_place` for a text output. None and `-` are stdout."""
    if path is not None and path != STDOUT:
        check_place(path, f"{option} {path}", read)


def report_stream(path: str | None) -> TextIO:
    """Return the stream for messages about a text output: stderr if the text is printed to stdout."""
    return sys.stderr if path in (None, STDOUT) else sys.stdout


@contextmanager
def text_output(path: str | None) -> Iterator[TextIO]:
    """Open a text file that gets its name when it is complete. None and `-` are stdout."""
    if path is None or path == STDOUT:
        yield sys.stdout
        return
    with writing(path, "result"), whole_file(Path(path)) as file:
        yield file
