"""Questions and their forms, in the format of GeoQuery's and ATIS' files: `question<TAB>form`, one pair per line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from funql import Form, parse

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import iter_lines, place


@dataclass(frozen=True)
class Pair:
    """A question and its meaning."""

    question: str
    form: Form


def read_pairs(path: Path, parse: Callable[[str], Form] = parse) -> list[Pair]:
    """Read pairs. Raises DataError: a line without exactly one tab, or with an invalid form."""
    pairs = []
    for number, line in iter_lines(path):
        question, *form = line.split("\t")
        if len(form) != 1 or not question.strip():
            raise DataError(
                f"{place(path, number)}: expected a question, a tab and its form, found {line[:60]!r}; fix the line"
            )
        try:
            pairs.append(Pair(question, parse(form[0])))
        except DataError as error:
            raise DataError(f"{place(path, number)}: {error}") from None
    if not pairs:
        raise DataError(f"{path}: expected questions and their forms, found none; give another file")
    return pairs
