"""The validation and test sentences in the data folder of a dictionary, to detect them in other inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import UNK, WordList
from fairseq_llrnn.files.binary_text import read_binary_text
from fairseq_llrnn.lexicon.held_out import HeldOut

SPLITS = ("valid", "test")
SHORT = 5  # words; sentences that are no longer occur in any text
MOST = 1000  # sentences of a text


def read_held_out(dictionary: Path, words: WordList) -> HeldOut:
    """Read the sentences of `valid.bin` and `test.bin`, or of the bitext's files. Without such files, return none.

    Args:
        dictionary: dict.txt or dict.LANGUAGE.txt of the folder.
    """
    texts, language = {}, dictionary.name.removeprefix("dict.").removesuffix("txt").removesuffix(".")
    for split in SPLITS:
        for index in sorted(dictionary.parent.glob(f"{split}.*-*.{language}.idx" if language else f"{split}.idx")):
            prefix = index.with_suffix("")
            try:
                texts[str(prefix)] = _sentences(*read_binary_text(prefix, len(words)), words)
            except DataError:  # another kind of data set
                continue
    return HeldOut(texts)


def _sentences(tokens: np.ndarray, lengths: np.ndarray, words: WordList) -> frozenset[str]:
    """Return sentences of several known words, without </s>: at most MOST, evenly spread over the text."""
    ends = np.cumsum(lengths)
    num_unknown = np.add.reduceat(tokens == words.symbols.index(UNK), ends - lengths, dtype=np.int64)
    usable = np.flatnonzero((lengths > SHORT) & (num_unknown == 0))
    chosen = usable[np.linspace(0, len(usable) - 1, min(MOST, len(usable))).astype(np.int64)]
    rows = [tokens[ends[i] - lengths[i] : ends[i] - 1].tolist() for i in chosen]
    return frozenset(" ".join(words.symbols[token] for token in row) for row in rows)
