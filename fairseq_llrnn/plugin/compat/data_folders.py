"""Data in several folders, `data-bin1:data-bin2`: training reads one of them in each epoch, in turn.

fairseq takes the words from the first folder and finds the others when their epoch begins. One with other words would
be read as if it had these, and one that is not there would end a training of days.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.tasks.translation import TranslationTask

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import load_dictionary


class TwoDictionaries:
    """A task of ours with a source and a target, each with its words in a file dict.LANGUAGE.txt of the data folder."""

    source_dictionary: Dictionary
    target_dictionary: Dictionary


TWO_DICTIONARIES = (TranslationTask, TwoDictionaries)


def data_folder(data: str) -> str:
    """The first of the data folders, which holds the dictionaries."""
    return utils.split_paths(data)[0]


def check_first_folder(data: str, dictionaries: Sequence[str]) -> None:
    """Raise DataError unless the first data folder has these files, and they are sound, before fairseq reads them.

    Args:
        data: the folders, with colons between them. dictionaries: the names of their files, as far as they are known.
    """
    folder = data_folder(data)
    missing = [name for name in dictionaries if not os.path.isfile(os.path.join(folder, name))]
    if missing or not os.path.isdir(folder):
        problem = f"no {missing[0]} in it" if os.path.isdir(folder) else "no such folder"
        raise DataError(
            f"{folder}: expected the data folder that fairseq-preprocess made, found {problem}; check its name, or "
            "preprocess the text first",
            folder,
        )
    for name in dictionaries:
        load_dictionary(os.path.join(folder, name))


def check_folders(data: str, dictionaries: Sequence[str]) -> None:
    """Raise DataError unless all data folders are there and those with dictionaries have the words of the first.

    Args:
        data: the folders, with colons between them. dictionaries: the names of their files.
    """
    first, *others = utils.split_paths(data)
    for folder in others:
        if not os.path.isdir(folder):
            raise DataError(f"{folder}: expected one of the data folders {data}, found none there; check its name")
        for name in dictionaries:
            words, expected = (_words(os.path.join(place, name)) for place in (folder, first))
            if words is not None and words != expected:
                raise DataError(
                    f"{os.path.join(folder, name)}: expected the words of {os.path.join(first, name)}, in the same "
                    "order, found others; make all data folders with the dictionaries of the first (fairseq-preprocess "
                    "--srcdict, --tgtdict)"
                )


def _words(path: str) -> list[bytes] | None:
    """The words of a fairseq dictionary, without their counts; None where there is no such file."""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return [line.rsplit(b" ", 1)[0] for line in file]
