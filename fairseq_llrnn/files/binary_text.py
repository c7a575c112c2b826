"""Texts in the format of fairseq-preprocess (`train.bin` and `train.idx`), read and written without fairseq.

Sizes: T tokens, n sentences.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import DataError

MAGIC = b"MMIDIDX\x00\x00"
HEADER = struct.Struct("<9sQBQ")  # of an index: format, version, kind of numbers, number of sentences
BYTES_PER_SENTENCE = 4 + 8  # its length and its offset
KINDS = {
    1: np.uint8, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 8: np.uint16, 9: np.uint32, 10: np.uint64,
}  # fmt: skip


def read_binary_text(prefix: Path | str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Read `PREFIX.bin` and `PREFIX.idx`.

    Args:
        size: of the dictionary.

    Returns:
        The tokens (T,), mapped from the file, with ends of sentences, and the length of each sentence (n,).

    Raises:
        DataError: files of another kind, without sentences, truncated, or with numbers beyond the dictionary.
    """
    try:
        index_size, text_size = (os.path.getsize(f"{prefix}.{end}") for end in ("idx", "bin"))
        with open(f"{prefix}.idx", "rb") as stream:
            magic, version, kind, sentences = HEADER.unpack(stream.read(HEADER.size))
            is_whole = index_size == HEADER.size + sentences * BYTES_PER_SENTENCE
            lengths = np.frombuffer(stream.read(4 * sentences) if is_whole else b"", np.int32)
    except (OSError, struct.error):
        is_whole = False
    if not is_whole or sentences == 0 or (magic, version) != (MAGIC, 1) or kind not in KINDS or lengths.min() <= 0:
        raise DataError(
            f"{prefix}.idx: expected the index of a memory-mapped dataset, found something else, or no sentences; run "
            "fairseq-preprocess again, with --dataset-impl mmap (its default)"
        )
    length = int(lengths.sum(dtype=np.int64))
    if text_size < length * np.dtype(KINDS[kind]).itemsize:
        raise DataError(
            f"{prefix}.bin: expected {length:,} tokens, as in its index, found a shorter file; run fairseq-preprocess "
            "again"
        )
    tokens = np.memmap(f"{prefix}.bin", KINDS[kind], "r", shape=(length,))
    least, most = int(tokens.min()), int(tokens.max())
    if least < 0 or most >= size:
        raise DataError(
            f"{prefix}.bin: expected numbers of the {size:,} words of its dictionary, found "
            f"{least if least < 0 else most:,}; run fairseq-preprocess again"
        )
    return tokens, lengths


def write_binary_text(prefix: Path | str, sentences: Sequence[Sequence[int]]) -> None:
    """Write `PREFIX.bin` and `PREFIX.idx` from the tokens of each sentence, with its end."""
    lengths = np.array([len(sentence) for sentence in sentences], np.int32)
    offsets = 4 * (np.cumsum(lengths, dtype=np.int64) - lengths)
    with open(f"{prefix}.bin", "wb") as stream:
        stream.write(np.array([token for sentence in sentences for token in sentence], np.int32).tobytes())
    with open(f"{prefix}.idx", "wb") as stream:
        stream.write(HEADER.pack(MAGIC, 1, 4, len(sentences)) + lengths.tobytes() + offsets.tobytes())


def missing_split(split: str, folder: str) -> str:
    """Return the message for a data set that a folder lacks."""
    found = ", ".join(splits_in(folder)) or "none"
    return (
        f"{folder}: expected the data set {split!r}, found {found}; choose one of them (--gen-subset, in validate "
        "--valid-subset), or preprocess it"
    )


def splits_in(folder: str) -> list[str]:
    """Return the names of the data sets in a folder."""
    return sorted({name.split(".")[0] for name in os.listdir(folder) if name.endswith(".idx")})
