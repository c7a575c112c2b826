"""Lines of plain and packed files, and every error of reading a file."""

import bz2
import gzip
import io
import lzma
import os
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.reading import path_of_content
from fairseq_llrnn.files.text_blocks import iter_blocks
from fairseq_llrnn.files.text_lines import MAX_LINE_BYTES, iter_lines


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_lines_have_numbers_and_no_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "\ufeffété\r\n\nà\u2028b \t\nlast".encode())
    assert list(iter_lines(path)) == [(1, "été"), (2, ""), (3, "à\u2028b \t"), (4, "last")]
    assert list(iter_lines(str(path))) == list(iter_lines(path))


def test_packed_files_are_known_by_their_bytes_not_their_names(tmp_path: Path) -> None:
    pack, text = gzip.compress, b"some words in a row\n" * 20_000 + os.urandom(20_000).hex().encode()
    for place, content in (("a.txt", pack(text)), ("plain.gz", text), ("members", pack(text[:9]) + pack(text[9:]))):
        path = write(tmp_path / place, content)
        assert [line for _, line in iter_lines(path)] == text.decode().splitlines()
        assert b"".join(block.raw for block in iter_blocks(path)) == text
    assert list(iter_lines(write(tmp_path / "a", b""))) == []
    assert list(iter_lines(write(tmp_path / "b", pack(b"")))) == []


def test_words_that_begin_as_packed_files_do_are_text(tmp_path: Path) -> None:
    for text in ("BZh", "BZh9", "PK", "LZIP", "7z"):
        assert list(iter_lines(write(tmp_path / "a", text.encode()))) == [(1, text)]


@pytest.mark.parametrize("encoding", ["UTF-16LE", "UTF-16BE"])
@pytest.mark.parametrize("text", ["le chat\n", "առյուծ և կատու, շուն\n", "id\tform\tlemma\n"])
def test_utf16_without_a_mark_is_named(text: str, encoding: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a", text.encode(encoding))
    with pytest.raises(DataError, match=f"expected UTF-8, found bytes 0x00; give .* or convert one in {encoding} "):
        list(iter_lines(path))
    assert list(iter_lines(write(path, b"p\0es\n"))) == [(1, "p\0es")]


@pytest.mark.parametrize(
    ("content", "name", "program"),
    [
        (bz2.compress(b"a\n"), "bzip2", "bzcat"),
        (bz2.compress(b""), "bzip2", "bzcat"),
        (lzma.compress(b"a\n"), "xz", "xzcat"),
        (b"\x28\xb5\x2f\xfd\x04\x58", "zstd", "zstdcat"),
        (b"PK\x03\x04\x14", "zip, as spreadsheets are", "unzip -p"),
    ],
)
def test_other_packers_are_named(content: bytes, name: str, program: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a", content)
    with pytest.raises(DataError) as caught:
        list(iter_lines(path))
    assert str(caught.value) == (
        f"{path}: expected a text, plain or packed by gzip, found one packed by {name}; unpack it first (`{program}`)"
    )


def through_pipe(path: Path, content: bytes) -> Iterator[Path]:
    """Return a pipe, as made by `<(…)`: a second read finds nothing."""
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    writer.start()
    yield path
    writer.join()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pipe_can_be_read_several_times(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    content = pack(b"a\nb\n" * 50_000)
    for pipe in through_pipe(tmp_path / "pipe", content):
        first, second = iter_lines(pipe), iter_lines(pipe)
        assert next(first) == next(second) == (1, "a")
        rest = list(first)
        assert len(rest) == 99_999 and list(second) == rest and list(iter_lines(pipe))[1:] == rest
        assert path_of_content(pipe).read_bytes() == path_of_content(pipe).read_bytes() == content


def test_bad_utf8_names_line_and_byte(tmp_path: Path) -> None:
    path = write(tmp_path / "latin1.txt", "bon\nl'été\n".encode("latin-1"))
    message = r"latin1.txt, line 2, byte 3: expected UTF-8, found the byte 0xe9 .*; convert the text to UTF-8"
    with pytest.raises(DataError, match=message):
        list(iter_lines(path))


def test_a_line_at_the_limit_is_read_and_a_longer_one_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a", b"x" * (MAX_LINE_BYTES - 1) + b"\n")
    assert [len(line) for _, line in iter_lines(path)] == [MAX_LINE_BYTES - 1]
    path = write(tmp_path / "b", b"short\n" + b"x" * MAX_LINE_BYTES + b"\n")
    message = "b, line 2: the line has more than 1,048,576 bytes; expected one short row per line. Is this the right"
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


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    rows = "".join(f"{number}\n" for number in range(100_000)).encode()
    whole = gzip.compress(rows)
    message = "cut: expected a whole gzip file, found: .*; copy or compress it again"
    for end in (16, len(whole) // 2, len(whole) - 1):
        with pytest.raises(DataError, match=message):
            list(iter_lines(write(tmp_path / "cut", whole[:end])))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    damaged = bytearray(gzip.compress(os.urandom(2_000) + b"\n"))
    damaged[200:1200] = bytes(1000)
    with pytest.raises(DataError, match=r"damaged(: expected a whole gzip file|, line \d+, byte \d+: expected UTF-8)"):
        list(iter_lines(write(tmp_path / "damaged", bytes(damaged))))
    with pytest.raises(DataError, match="junk: expected a whole gzip file, found: "):
        list(iter_lines(write(tmp_path / "junk", gzip.compress(b"a\n") + b"junk, which is no member")))


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
