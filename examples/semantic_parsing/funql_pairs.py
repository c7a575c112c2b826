"""Questions and their forms, as GeoQuery's and ATIS' files have them: `question<TAB>form`, a pair a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from funql import Form, parse

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import iter_lines, place


@dataclass(frozen=True)
class Pair:
    """A question and what it means."""

    question: str
    form: Form


def read_pairs(path: Path, parse: Callable[[str], Form] = parse) -> list[Pair]:
    """Raises DataError: a line without exactly one tab, or with a form that is none."""
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
