"""Lines of plain and gzip files; every way in which a file cannot be read."""

import gzip
import io
import os
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import MAX_LINE_BYTES, iter_lines


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_lines_have_numbers_and_no_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "\ufeffété\r\n\nà\u2028b \t\nlast".encode())
    assert list(iter_lines(path)) == [(1, "été"), (2, ""), (3, "à\u2028b \t"), (4, "last")]
    assert list(iter_lines(str(path))) == list(iter_lines(path))


def test_gzip_is_known_by_its_bytes_not_its_name(tmp_path: Path) -> None:
    zipped = write(tmp_path / "zipped.txt", gzip.compress(b"a\nb\n"))
    plain = write(tmp_path / "plain.txt.gz", b"a\nb\n")
    assert list(iter_lines(zipped)) == list(iter_lines(plain)) == [(1, "a"), (2, "b")]


def test_several_gzip_members_are_one_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gz", gzip.compress(b"a\nb") + gzip.compress(b"c\n"))
    assert list(iter_lines(path)) == [(1, "a"), (2, "bc")]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    assert list(iter_lines(write(tmp_path / "a", b""))) == []
    assert list(iter_lines(write(tmp_path / "a.gz", gzip.compress(b"")))) == []


@pytest.mark.parametrize("content", [b"a\nb\n", gzip.compress(b"a\nb\n", mtime=0)], ids=["plain", "gzip"])
def test_a_pipe_can_be_read(tmp_path: Path, content: bytes) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert list(iter_lines(pipe)) == [(1, "a"), (2, "b")]
    writer.join()


def test_bad_utf8_names_line_and_byte(tmp_path: Path) -> None:
    path = write(tmp_path / "latin1.txt", "bon\nl'été\n".encode("latin-1"))
    message = r"latin1.txt, line 2, byte 3: expected UTF-8, found the byte 0xe9 .*; convert the text to UTF-8"
    with pytest.raises(DataError, match=message):
        list(iter_lines(path))


def test_a_line_at_the_limit_is_read_and_a_longer_one_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a", b"x" * (MAX_LINE_BYTES - 1) + b"\n")
    assert [len(line) for _, line in iter_lines(path)] == [MAX_LINE_BYTES - 1]
    path = write(tmp_path / "b", b"short\n" + b"x" * MAX_LINE_BYTES + b"\n")
    message = "b, line 2: the line has more than 1,048,576 bytes; expected one short row a line. Is this the right"
    with pytest.raises(DataError, match=message):
        list(iter_lines(path))


@pytest.mark.parametrize("pack", [lambda content: content, gzip.compress], ids=["plain", "gzip"])
def test_a_huge_line_is_refused_without_filling_the_memory(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = write(tmp_path / "a", pack(b"x" * 10_000_000))
    tracemalloc.start()
    with pytest.raises(DataError, match="line 1: the line has more than"):
        list(iter_lines(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * MAX_LINE_BYTES


def test_the_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a", gzip.compress(b"some words in a row\n" * 200_000))
    tracemalloc.start()
    assert sum(1 for _ in iter_lines(path)) == 200_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_cut_gzip_file_is_refused(tmp_path: Path) -> None:
    rows = "".join(f"{number}\n" for number in range(100_000)).encode()
    whole = gzip.compress(rows)
    path = write(tmp_path / "cut.gz", whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cut.gz: expected a whole gzip file, found: .*; copy or compress it again"):
        list(iter_lines(path))


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    damaged = bytearray(gzip.compress(os.urandom(2_000) + b"\n"))
    damaged[200:1200] = bytes(1000)
    with pytest.raises(
        DataError, match=r"damaged.gz(: expected a whole gzip file|, line \d+, byte \d+: expected UTF-8)"
    ):
        list(iter_lines(write(tmp_path / "damaged.gz", bytes(damaged))))
    with pytest.raises(DataError, match="junk.gz: expected a whole gzip file, found: Not a gzipped file"):
        list(iter_lines(write(tmp_path / "junk.gz", gzip.compress(b"a\n") + b"junk")))


def test_a_path_that_cannot_be_opened(tmp_path: Path) -> None:
    message = r"absent.txt: cannot be read: No such file or directory; check the path and its rights"
    with pytest.raises(DataError, match=message):
        list(iter_lines(tmp_path / "absent.txt"))
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        list(iter_lines(tmp_path))


def test_an_error_of_the_caller_is_not_renamed(tmp_path: Path) -> None:
    with pytest.raises(io.UnsupportedOperation):
        for _ in iter_lines(write(tmp_path / "a", b"a\n")):
            raise io.UnsupportedOperation
