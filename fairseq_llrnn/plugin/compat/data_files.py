"""Reject data sets without sentences before fairseq maps their files, which Python cannot map if they are empty, and
texts beside binary data of other texts.
"""

import itertools
import os

import numpy as np
from fairseq.data.indexed_dataset import MMapIndexedDataset, data_file_path, index_file_path

from fairseq_llrnn.errors import DataError


def check_sentences(path: str, combine: bool = False) -> None:
    """Raise DataError if a binary data set is empty, as from a wrong split of a text.

    Args:
        path: of the files without their endings. combine: as for fairseq's `load_indexed_dataset`.
    """
    for number in itertools.count() if combine else range(1):
        files = [name(path + (str(number) if number else "")) for name in (data_file_path, index_file_path)]
        if not all(map(os.path.isfile, files)):
            return
        if not all(map(os.path.getsize, files)):
            raise no_sentences(files[0])


def check_text_beside(path: str, sizes: np.ndarray) -> None:
    """Raise DataError if a text, which fairseq prefers to binary data of the same name, has other sentences.

    Args:
        path: of both. sizes: tokens of each loaded sentence.
    """
    if os.path.isfile(path) and MMapIndexedDataset.exists(path):
        binary = MMapIndexedDataset(path)
        expected = binary.sizes.copy()  # a file that closes takes its sizes with it
        if not np.array_equal(expected, sizes):
            facts = [f"{len(one):,} sentences of {one.sum():,} tokens" for one in (expected, sizes)]
            raise DataError(
                f"{path}: expected the text of {data_file_path(path)} ({facts[0]}), found another one ({facts[1]}); "
                "copy the right text, or remove it",
                path,
            )


def no_sentences(file: str) -> DataError:
    """Return the error for an empty file of a data set."""
    return DataError(
        f"{file}: expected sentences, found an empty file; write a text with one sentence per line, and run "
        "fairseq-preprocess again",
        file,
    )
