"""Texts as fairseq-preprocess writes them, without fairseq."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairseq_llrnn.files.binary_text import HEADER, KINDS, MAGIC


def write_binary_text(prefix: Path, sentences: Sequence[Sequence[int]], kind: int = 4) -> Path:
    """Write PREFIX.idx and PREFIX.bin. kind: of KINDS."""
    lengths = np.array(list(map(len, sentences)), np.int32)
    tokens = np.array([token for sentence in sentences for token in sentence], KINDS[kind])
    begins = (np.cumsum(lengths) - lengths) * tokens.itemsize
    index = HEADER.pack(MAGIC, 1, kind, len(lengths)) + lengths.tobytes() + begins.astype(np.int64).tobytes()
    Path(f"{prefix}.idx").write_bytes(index)
    Path(f"{prefix}.bin").write_bytes(tokens.tobytes())
    return prefix
