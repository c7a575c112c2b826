"""arrays.npz: plain numeric arrays in one file, mapped from disk, so that processes of one machine share the memory.

The file has the format of numpy.savez, a zip archive of uncompressed .npy members (PKWARE's APPNOTE; numpy's NEP 1),
with a field of zeros before each member, so that its numbers begin at a multiple of 64 bytes. Such arrays are views of
a private mapping: all processes that read them share the pages, and a process that writes gets its own copy. Other
arrays (of numpy.savez) are copied.

The file is untrusted input: nothing in it is executed, memory is limited by the file's size, and members in another
format than that of `write_arrays` or numpy.savez are errors.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np

ALIGNMENT = 64
MEMBER = ".npy"
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, length of the name, length of the extra field
_FOR_SIZES = 20  # bytes of zipfile's own extra field
_PADDING = struct.Struct("<HH")  # identifier and length of our extra field
_PADDING_ID = 0xD935  # the identifier of Android's zipalign
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '([<|][biufc]\d{1,2})', 'fortran_order': (True|False), "
    rb"'shape': \((|\d{1,18},|\d{1,18}(?:, \d{1,18})+)\), \} *\n",
    re.DOTALL,
)


def write_arrays(file: IO[bytes], arrays: Mapping[str, np.ndarray]) -> None:
    """Write the archive. The same arrays give the same bytes.

    Args:
        file: open for writing, at its beginning.
        arrays: of numbers, by name.

    Raises:
        OSError: the file cannot be written.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(name + MEMBER)  # its date is 1980
            begin = file.tell() + _LOCAL_HEADER.size + len(member.filename.encode()) + _FOR_SIZES + _PADDING.size
            member.extra = _PADDING.pack(_PADDING_ID, -begin % ALIGNMENT) + bytes(-begin % ALIGNMENT)
            with archive.open(member, "w", force_zip64=True) as opened:  # its header has a multiple of 64 bytes
                np.lib.format.write_array(opened, np.asanyarray(array), version=(1, 0), allow_pickle=False)


def map_file(path: Path) -> mmap.mmap | bytearray:
    """Return the bytes of a file: mapped, or read if the file system cannot map. Raises OSError."""
    with path.open("rb") as file:
        with suppress(OSError, ValueError):  # ValueError: an empty file
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return bytearray(file.read())


def read_arrays(path: Path, raw: mmap.mmap | bytearray) -> dict[str, np.ndarray]:
    """Return the arrays of the archive, most of them views of `raw`.

    Args:
        path: the file of `raw`.

    Raises:
        ValueError, zipfile.BadZipFile, OSError: the file is no such archive, or has a compressed or damaged member or
            one that is no array of numbers.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except NotImplementedError as error:  # zip of a later version
        raise ValueError(f"{path.name}: {error}") from None
    arrays = {member.filename.removesuffix(MEMBER): member for member in members}
    total = sum(member.file_size for member in members if member.compress_type == zipfile.ZIP_STORED)
    if total > len(raw):  # overlapping members, each of which could be copied
        raise ValueError(f"{path.name}: expected members of {len(raw):,} bytes at most, found {total:,}; they overlap")
    return {name: _read(member, raw) for name, member in arrays.items()}


def _read(member: zipfile.ZipInfo, raw: mmap.mmap | bytearray) -> np.ndarray:
    name, place = member.filename, member.header_offset
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
        raise ValueError(f"{name}: expected plain bytes, found compressed or encrypted ones")
    if not 0 <= place <= len(raw) - _LOCAL_HEADER.size:
        raise ValueError(f"{name}: expected it inside of the file, found it at byte {place}")
    signature, name_length, extra_length = _LOCAL_HEADER.unpack_from(raw, place)
    begin = place + _LOCAL_HEADER.size + name_length + extra_length
    end = begin + member.file_size
    if signature != b"PK\3\4" or end > len(raw):
        raise ValueError(f"{name}: expected {member.file_size:,} bytes at byte {begin:,}, found less or something else")
    header = _NPY.match(raw, begin, end)
    if header is None or 10 + int.from_bytes(header[1], "little") != header.end() - begin:
        raise ValueError(f"{name}: expected the header of an array of numbers, found something else")
    dtype = np.dtype(header[2].decode())  # TypeError: no such kind of number
    shape = tuple(int(size) for size in header[4].replace(b",", b" ").split())
    if math.prod(shape) * dtype.itemsize != end - header.end():
        raise ValueError(f"{name}: expected {end - header.end():,} bytes of numbers, found those of the shape {shape}")
    if end == header.end():
        return np.empty(shape, dtype)
    array = np.frombuffer(raw, dtype, math.prod(shape), header.end())
    array = array if array.ctypes.data % ALIGNMENT == 0 else array.copy()
    return array.reshape(shape, order="F" if header[3] == b"True" else "C")
