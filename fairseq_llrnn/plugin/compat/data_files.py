"""Reject data sets without sentences before fairseq maps their files, which Python cannot map if they are empty."""

import itertools
import os

from fairseq.data.indexed_dataset import data_file_path, index_file_path

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


def no_sentences(file: str) -> DataError:
    """Return the error for an empty file of a data set."""
    return DataError(
        f"{file}: expected sentences, found an empty file; write a text with one sentence per line, and run "
        "fairseq-preprocess again",
        file,
    )
