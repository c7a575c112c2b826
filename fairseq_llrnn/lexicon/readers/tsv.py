"""Lexicons in tab-separated rows: tables, and rows of form, lemma, UPOS, FEATS and optionally a count."""

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_COUNT, read_count
from fairseq_llrnn.files.text_lines import AS_HEADER, ReadCount, check_not_blank, clean_cells, place, shown
from fairseq_llrnn.lexicon.features import as_upos, feats_features, pos_feature
from fairseq_llrnn.lexicon.lexicon_table import COLUMNS as TABLE
from fairseq_llrnn.lexicon.lexicon_table import ReadRequest, Row, as_features, iter_rows

COLUMNS = ("form", "lemma", "UPOS", "FEATS")
FOUR_OR_MORE = range(len(COLUMNS), sys.maxsize)
EXPECTED = f"at least {len(COLUMNS)} columns ({', '.join(COLUMNS)}) separated by tabs"
ADVICE = "give a lexicon in this form (`llrnn lexicon --conllu` makes one of a treebank)"

REPEATED = "repeated (same form, lemma, UPOS and FEATS)"
FURTHER = "rows with a further analysis (same form, lemma and UPOS, other FEATS): the form has all features"
SURFACE_ROWS = "for words written together"
# names of the first columns in a header
FORM, LEMMA = ("form", "word", "token", "wordform"), ("lemma",)
MANY_UPOS = "different parts of speech, more than a tag set has; are the columns form, lemma, UPOS, FEATS?"

LARGEST_TAG_SET = 100  # UD has 17; larger sets are allowed up to a tenth of the rows


class TsvRow(NamedTuple):
    """One analysis of a form, as written."""

    form: str
    lemma: str
    upos: str
    feats: tuple[str, ...]  # feature names, such as Gender:Fem
    often: int  # the number after FEATS, or 0

    @property
    def features(self) -> tuple[str, ...]:
        """The feature names of UPOS and FEATS."""
        return (*(() if self.upos in ("_", "") else (pos_feature(self.upos),)), *self.feats)


def iter_tsv_rows(count: ReadCount, lines: Iterable[tuple[int, str]] | None = None) -> Iterator[TsvRow]:
    """Yield the rows of a lexicon in order.

    A first row that begins with `form` and `lemma` is a header. Rows `form _ _ _` (surface forms of several words) are
    left out, too. The caller counts the others as read, or as left out.

    Raises:
        DataError: with file and line, malformed rows, or a file without rows.
    """
    path, rows = count.file, 0
    for number, cells in count.rows(FOUR_OR_MORE, EXPECTED, ADVICE, header=(FORM, LEMMA), alike=True, lines=lines):
        location = place(path, number)
        form, lemma, upos, feats = cells[: len(COLUMNS)]
        check_not_blank(form, location, "column 1 (form)")
        if lemma == upos == feats == "_":
            count.left_out[SURFACE_ROWS] += 1
            continue
        try:
            names = feats_features(feats or "_")
        except ValueError as error:
            raise DataError(f"{location}: {error}") from error
        rows += 1
        text = cells[len(COLUMNS)] if len(cells) > len(COLUMNS) and cells[len(COLUMNS)].isascii() else ""
        counted = read_count(text)
        if counted is None and text.isdecimal():
            raise DataError(f"{location}: expected a count up to {LARGEST_COUNT:,}, found {shown(text)}; correct it")
        yield TsvRow(form, lemma, as_upos(upos), names, counted or 0)
    if not rows:
        raise DataError(f"{path}: expected rows with {', '.join(COLUMNS)}, found none; is the file empty?")


def lexicon_rows(path: str, request: ReadRequest) -> Iterator[tuple[Row, int]]:
    """Yield each analysis of a lexicon, or each row of a table (table.py) in its own spelling.

    Raises DataError as `iter_tsv_rows` and `table.iter_rows` do.
    """
    count, spelling = ReadCount(path, "rows", request.spelling.form), request.spelling
    lines = count.lines()
    first = next(lines, None)
    cells = [] if first is None else clean_cells(first[1])
    if first is not None and cells[0] == COLUMNS[0] and not {"source", "guessed", "values"}.isdisjoint(cells):
        if cells[: len(TABLE)] != list(TABLE) or any(cells[len(TABLE) :]):
            raise DataError(
                f"{place(path, first[0])}: expected the header {', '.join(TABLE)} with tabs between, found "
                f"{shown(first[1])}; correct it"
            )
        count.left_out[AS_HEADER] += 1
        yield from iter_rows(count, lines)
        return
    # (form, lemma, UPOS) as written -> the FEATS so far; entries that differ only in case are no repetition
    entries: dict[tuple[str, str, str], set[tuple[str, ...]]] = {}
    for row in iter_tsv_rows(count, chain([] if first is None else [first], lines)):
        seen_feats = entries.setdefault((row.form, row.lemma, row.upos), set())
        if row.feats in seen_feats:
            count.left_out[REPEATED] += 1
            continue
        count.read += 1
        if seen_feats:
            request.notes[FURTHER] += 1
        seen_feats.add(row.feats)
        lemma = "" if row.lemma in ("", "_") else spelling.cased(row.lemma)
        yield Row(spelling.cased(row.form), lemma, as_features(row.features), "lexicon"), row.often
    tags = {upos for _, _, upos in entries}
    if len(tags) > max(LARGEST_TAG_SET, len(entries) / 10):
        request.notes[MANY_UPOS] += len(tags)
