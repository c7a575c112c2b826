"""Lexicons as tab-separated rows: form, lemma, UPOS, FEATS; further ones (such as a count) are not read."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.casing import lower
from fairseq_llrnn.files.read_count import ReadCount
from fairseq_llrnn.files.text_lines import place, refuse_blank, shown
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.readers.ud import as_upos, feats_features, pos_feature

COLUMNS = ("form", "lemma", "UPOS", "FEATS")

REPEATED = "repeated (same form, lemma, UPOS and FEATS)"
FURTHER = "rows with a further analysis (same form, lemma and UPOS, other FEATS): the form has all features"
SURFACE_ROWS = "for words written together"
HEADER = "as header"
MANY_UPOS = "different parts of speech, more than a tag set has; are the columns form, lemma, UPOS, FEATS?"

LARGEST_TAG_SET = 100  # UD has 17; and fewer than a tenth of the rows


class TsvRow(NamedTuple):
    """One analysis of a form, as written; `others` are the cells after FEATS."""

    form: str
    lemma: str
    upos: str
    feats: tuple[str, ...]  # feature names, such as Gender:Fem
    others: list[str]

    @property
    def features(self) -> tuple[str, ...]:
        """Of the word class and of FEATS."""
        return (*(() if self.upos in ("_", "") else (pos_feature(self.upos),)), *self.feats)


def iter_tsv_rows(count: ReadCount) -> Iterator[TsvRow]:
    """The rows of a lexicon in order.

    A first row whose first cell is `form` is a header. Rows `form _ _ _` (surface forms of several words) are left out,
    too. Whoever uses the others counts them as read, or leaves them out.

    Raises DataError, with file and line, for rows of another shape, and for a file without rows.
    """
    path, columns, rows = count.file, 0, 0
    for number, line in count.lines():
        cells = line.split("\t")
        if len(cells) < len(COLUMNS) or (columns and len(cells) != columns):
            named = f"at least {len(COLUMNS)} columns ({', '.join(COLUMNS)})"
            expected = f"{columns} columns, as in the rows before," if columns else named
            raise DataError(
                f"{place(path, number)}: expected {expected} separated by tabs, found {len(cells)}: "
                f"{shown(line)}; give a lexicon in this form, and a treebank to --conllu"
            )
        is_first, columns = not columns, len(cells)
        form, lemma, upos, feats = (cell.strip(" ") for cell in cells[: len(COLUMNS)])
        refuse_blank(form, place(path, number), "column 1 (form)")
        if lemma == upos == feats == "_":
            count.left_out[SURFACE_ROWS] += 1
            continue
        try:
            names = feats_features(feats or "_")
        except ValueError as error:
            if is_first and form.lower() == "form":  # an entry for the word "form" would have FEATS
                count.left_out[HEADER] += 1
                continue
            raise DataError(f"{place(path, number)}: {error}") from error
        rows += 1
        yield TsvRow(form, lemma, as_upos(upos), names, cells[len(COLUMNS) :])
    if not rows:
        raise DataError(f"{path}: expected rows with {', '.join(COLUMNS)}, found none; is the file empty?")


def read_tsv_lexicon(
    path: Path | str, *, lowercase: bool, language: str | None = None, form: str | None = None
) -> Lexicon:
    """Each form with the union of its rows. `lowercase` lower-cases forms, by the rules of `language` (casing.py).

    `form`: of text_lines.py.

    Raises DataError as iter_tsv_rows does.
    """
    lexicon, count = Lexicon(), ReadCount(path, "rows", form)
    # (form, lemma, UPOS) as written -> the FEATS met so far. Two entries that only lower-casing brings
    # together are neither a repetition nor a contradiction.
    entries: dict[tuple[str, str, str], set[tuple[str, ...]]] = {}
    for row in iter_tsv_rows(count):
        met = entries.setdefault((row.form, row.lemma, row.upos), set())
        if row.feats in met:
            count.left_out[REPEATED] += 1
            continue
        count.read += 1
        if met:
            lexicon.notes[FURTHER] += 1
        met.add(row.feats)
        lexicon.add(lower(row.form, language) if lowercase else row.form, row.features)
    tags = {upos for _, _, upos in entries}
    if len(tags) > max(LARGEST_TAG_SET, len(entries) / 10):
        lexicon.notes[MANY_UPOS] += len(tags)
    return lexicon
