"""What a checkpoint's file looks like from outside, before torch reads it: whole, and no larger inside than outside.

torch writes a zip archive of uncompressed records, one per tensor. A compressed record, or several in the same place,
could ask for memory that the file does not have.
"""

from __future__ import annotations

import codecs
import os
import zipfile
import zlib

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.special_files import kind_of

ZIP_MAGIC = b"PK"


def check_file(path: str) -> None:
    """Refuse what is no file, and an archive that torch has not written so.

    Raises:
        OSError: none there, or no right to read it.
        DataError: something else than a file; compressed records; records that are larger than the file.
        zipfile.BadZipFile: cut short or damaged.
    """
    kind = kind_of(os.stat(path))
    if kind is not None:
        raise DataError(f"{path}: expected a checkpoint, found {kind}; give the .pt file that training wrote")
    if not _is_zip(path):
        return
    with zipfile.ZipFile(path) as archive:
        records = archive.infolist()
    if any(record.flag_bits & 1 for record in records):
        raise DataError(
            f"{path}: refused: expected a checkpoint that fairseq saved, found encrypted records; use one that is not"
        )
    packed = [record.filename for record in records if record.compress_type != zipfile.ZIP_STORED]
    if any("/code/" in name for name in packed):
        raise DataError(f"{path}: refused: expected a checkpoint that fairseq saved, found a TorchScript archive")
    if packed or any(record.file_size != record.compress_size for record in records):
        raise DataError(
            f"{path}: refused: expected a checkpoint that fairseq saved, whose records are not compressed, found a "
            f"compressed one ({packed[0] if packed else 'of another size'}); use one that fairseq saved"
        )
    total, size = sum(record.file_size for record in records), os.path.getsize(path)
    if total > size:
        raise DataError(
            f"{path}: refused: expected a checkpoint that fairseq saved, found records of {total:,} bytes in a file of "
            f"{size:,}; use one that fairseq saved"
        )


def damage(path: str) -> str | None:
    """What is wrong with the file of a checkpoint, by its size and checksums; None where nothing is.

    Of a file that only `check_file` or torch refuses, nothing is said.
    """
    try:
        if not os.path.getsize(path):
            return "it is empty"
        if not _is_zip(path):
            with open(path, "rb") as file:  # torch's older formats are pickles or tar archives, without checksums
                return None if any(file.read(512)) else "it holds zeros"
        check_file(path)
        with zipfile.ZipFile(path) as archive:
            bad = archive.testzip()
        return None if bad is None else f"its record {bad} is damaged"
    except DataError:
        return None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:  # names that are no text
        return f"it is cut short or damaged: {error}"
    except OSError as error:
        return error.strerror or str(error)


def is_text(path: str) -> bool:
    """Whether a file begins as a text in UTF-8, which no checkpoint does, whole or damaged."""
    with open(path, "rb") as file:
        start = file.read(512)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # its last character may go on
    except UnicodeDecodeError:
        return False
    return bool(start) and not start.startswith(ZIP_MAGIC) and b"\0" not in start


def _is_zip(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == ZIP_MAGIC
