"""Packed files, recognised by their first bytes and not by their names, and read like plain ones.

gzip, bzip2 and xz are read with the standard library. For other formats, the error names the program that unpacks them.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.reading import open_file, reading

Unpacked = io.BufferedReader | gzip.GzipFile
Unpacker = Callable[[io.BufferedReader], Unpacked]
MOST_OF_A_DICTIONARY = 1 << 28  # bytes, of xz; `xz -9` needs a quarter of it


class _Streams(io.RawIOBase):
    """Streams of bzip2 or xz, one after the other. Unlike in `bz2.open`, other bytes after them are an error."""

    def __init__(self, file: io.BufferedReader, new: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]) -> None:
        self.file, self.new, self.stream = file, new, new()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data:
            packed = self.stream.unused_data if self.stream.eof else b""
            if self.stream.eof or self.stream.needs_input:
                packed = packed or self.file.read(io.DEFAULT_BUFFER_SIZE)
                if not packed and self.stream.eof:
                    return 0
                if not packed:
                    raise EOFError("it is truncated")
            if self.stream.eof:
                self.stream = self.new()
            data = self.stream.decompress(packed, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _ungzip(file: io.BufferedReader) -> Unpacked:
    return gzip.GzipFile(fileobj=file, mode="rb")


def _unbzip2(file: io.BufferedReader) -> Unpacked:
    return io.BufferedReader(_Streams(file, bz2.BZ2Decompressor))


def _unxz(file: io.BufferedReader) -> Unpacked:
    new = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, MOST_OF_A_DICTIONARY)
    return io.BufferedReader(_Streams(file, new), 1 << 16)


# first bytes of a packed file -> its format, the program that unpacks it, and the reader here
PACKED: dict[re.Pattern[bytes], tuple[str, str, Unpacker | None]] = {
    re.compile(rb"\x1f\x8b"): ("gzip", "zcat", _ungzip),
    re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"): ("bzip2", "bzcat", _unbzip2),
    re.compile(rb"\xfd7zXZ\0"): ("xz", "xzcat", _unxz),
    re.compile(rb"[\x22-\x28]\xb5\x2f\xfd"): ("zstd", "zstdcat", None),
    re.compile(rb"PK\x03\x04"): ("zip, as spreadsheets are", "unzip -p", None),
}
MAGIC_BYTES = 10  # enough to recognise the format


@contextmanager
def opened(path: Path | str) -> Iterator[tuple[Unpacked, io.BufferedReader]]:
    """Yield a file open for reading bytes, unpacked if its format is in PACKED, and the file itself, for its position.

    Raises:
        DataError: the file cannot be read or unpacked.
    """
    with ExitStack() as stack:
        stack.enter_context(reading(path))
        plain = stack.enter_context(open_file(path))
        name, program, unpacker = packing_of(plain.peek(MAGIC_BYTES)) or ("", "", None)
        if name and unpacker is None:
            raise DataError(
                f"{path}: expected a text, plain or packed by gzip, bzip2 or xz, found one packed by {name}; unpack it "
                f"first (`{program}`)"
            )
        try:
            source: Unpacked = plain
            if unpacker is not None:
                source = unpacker(plain)
                stack.enter_context(source)
            yield source, plain
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and (error.errno is not None or unpacker is None):  # that of the disk
                raise
            raise DataError(
                f"{path}: expected a whole {name} file, found: {error}; copy or compress it again"
            ) from error


def packing_of(first: bytes) -> tuple[str, str, Unpacker | None] | None:
    """Return the entry of PACKED for the first bytes of a file, or None if it is not packed."""
    return next((packing for magic, packing in PACKED.items() if magic.match(first)), None)
