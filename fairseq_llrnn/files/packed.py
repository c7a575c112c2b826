"""Packed files, recognised by their first bytes and not by their names. Those of gzip are read like plain ones.

For other formats, the error names the program that unpacks them.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.reading import open_file, reading

Unpacked = io.BufferedReader | gzip.GzipFile
GZIP = "gzip"
# first bytes of a packed file -> its format, and the program that unpacks it
PACKED: dict[re.Pattern[bytes], tuple[str, str]] = {
    re.compile(rb"\x1f\x8b"): (GZIP, "zcat"),
    re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"): ("bzip2", "bzcat"),
    re.compile(rb"\xfd7zXZ\0"): ("xz", "xzcat"),
    re.compile(rb"[\x22-\x28]\xb5\x2f\xfd"): ("zstd", "zstdcat"),
    re.compile(rb"PK\x03\x04"): ("zip, as spreadsheets are", "unzip -p"),
}
MAGIC_BYTES = 10  # enough to recognise the format


@contextmanager
def opened(path: Path | str) -> Iterator[tuple[Unpacked, io.BufferedReader]]:
    """Yield a file open for reading bytes, unpacked if gzip packed it, and the file itself, for its position.

    Raises:
        DataError: the file cannot be read or unpacked.
    """
    with ExitStack() as stack:
        stack.enter_context(reading(path))
        plain = stack.enter_context(open_file(path))
        name, program = packing_of(plain.peek(MAGIC_BYTES)) or ("", "")
        if name not in ("", GZIP):
            raise DataError(
                f"{path}: expected a text, plain or packed by gzip, found one packed by {name}; unpack it first "
                f"(`{program}`)"
            )
        if not name:
            yield plain, plain
            return
        try:
            yield stack.enter_context(gzip.GzipFile(fileobj=plain, mode="rb")), plain
        except (EOFError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # that of the disk
                raise
            raise DataError(f"{path}: expected a whole gzip file, found: {error}; copy or compress it again") from error


def packing_of(first: bytes) -> tuple[str, str] | None:
    """Return the entry of PACKED for the first bytes of a file, or None if it is not packed."""
    return next((packing for magic, packing in PACKED.items() if magic.match(first)), None)
