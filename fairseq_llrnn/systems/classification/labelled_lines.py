"""Texts with labels in one file, a text a line: `__label__cooking how much salt ?`, or `how much salt ?<TAB>cooking`.

The first is what fastText reads; the second has a column for each label. fairseq-preprocess wants two files: the texts,
and their labels with blanks between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import iter_sentences, place, shown

PREFIX = "__label__"


class LabelledLine(NamedTuple):
    """A text and its labels."""

    text: str
    labels: tuple[str, ...]


def read_labelled(path: Path | str) -> Iterator[LabelledLine]:
    """The texts of a file with their labels; a line with a tab has columns, if it does not begin with a label.

    Raises:
        DataError: as `iter_sentences`; a line without labels, a label that is empty or has blanks in it.
    """
    for number, line in iter_sentences(path):
        text, *columns = line.split("\t")
        labels = [column for column in columns if column]
        if not columns or line.lstrip().startswith(PREFIX):  # fastText's words may be behind tabs as well
            words = line.split()
            labels = [word.removeprefix(PREFIX) for word in words if word.startswith(PREFIX)]
            text = " ".join(word for word in words if not word.startswith(PREFIX))
        if not labels:
            raise DataError(
                f"{place(path, number)}: expected `{PREFIX}LABEL` words, or labels behind tabs, found no label in "
                f"{shown(line)}; label the line, or leave it out"
            )
        for label in labels:
            if label.split() != [label]:
                raise DataError(
                    f"{place(path, number)}: expected a label without blanks, found {shown(label)}; write _ in their "
                    "place, or give several labels in columns of their own"
                )
        yield LabelledLine(" ".join(text.split()), tuple(labels))
