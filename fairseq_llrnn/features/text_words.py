"""Words of large texts, counted or as ids, block by block in several processes (files/text_blocks.py).

Workers know no dictionary, which would take as much memory in each of them as here: a block's words come back as its
different words, with their counts, or with the place of each word among them. Sizes: V symbols, T words, n lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from fairseq_llrnn.files.text_blocks import Block, map_blocks
from fairseq_llrnn.files.text_lines import warn_of_forms


def counts_of_block(block: Block) -> tuple[dict[str, int], int]:
    """How often each word occurs, and how many lines there are."""
    return dict(Counter(block.text().split())), block.num_lines


def ids_of_block(block: Block) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Its different words, for each word its place among them (T,) int32, and the words of each line (n,) int32."""
    places: dict[str, int] = {}
    lines = [line.split() for _, line in block.lines()]
    ids = [places.setdefault(word, len(places)) for line in lines for word in line]
    return list(places), np.array(ids, dtype=np.int32), np.array([len(line) for line in lines], dtype=np.int32)


def count_blocks(paths: Sequence[Path | str], workers: int | None) -> Iterator[tuple[dict[str, int], int]]:
    """What `counts_of_block` says of each block of some files. Raises DataError."""
    return map_blocks(counts_of_block, paths, "counting words", workers)


def count_words(paths: Sequence[Path | str], workers: int | None = None) -> tuple[Counter[str], int]:
    """How often each word of some texts occurs, and how many lines they have. Raises DataError."""
    counts: Counter[str] = Counter()
    lines = 0
    for of_block, many in count_blocks(paths, workers):
        counts.update(of_block)
        lines += many
    return counts, lines


def read_ids(
    paths: Sequence[Path | str], symbols: Sequence[str], unknown: int, workers: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Texts as ids of V symbols: (T,) int32, and how many words each line has, (n,) int64.

    Args:
        unknown: the id of words that are no symbols.

    Raises:
        DataError: a file that cannot be read or is not UTF-8.
    """
    index, lacking = {symbol: i for i, symbol in enumerate(symbols)}, set[str]()
    tokens, lengths = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
    for words, ids, per_line in map_blocks(ids_of_block, paths, "reading words", workers):
        word_ids = np.array([index.get(word, unknown) for word in words], dtype=np.int32)
        lacking.update(word for word in words if word not in index)
        tokens.append(word_ids[ids])
        lengths.append(per_line.astype(np.int64))
    warn_of_forms(paths, lacking, symbols)
    return np.concatenate(tokens), np.concatenate(lengths)
