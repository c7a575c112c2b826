"""Lexicons as tab-separated rows: form, lemma, UPOS, FEATS; further ones (such as a count) are not read."""

from pathlib import Path

from fairseq_llrnn.core.lexicon import Lexicon
from fairseq_llrnn.core.readers.text_lines import iter_lines, place, shown
from fairseq_llrnn.core.readers.ud import feats_features, pos_feature
from fairseq_llrnn.errors import DataError

COLUMNS = ("form", "lemma", "UPOS", "FEATS")

REPEATED = "repeated rows (same form, lemma, UPOS and FEATS), merged"
CONTRADICTORY = "contradictory rows (same form, lemma and UPOS with other FEATS), united"
SURFACE_ROWS = "multi-word surface rows skipped"


def read_tsv_lexicon(path: Path | str, *, lowercase: bool) -> Lexicon:
    """Each form with the union of its rows. `lowercase` lower-cases forms.

    A first row whose first cell is `form` is a header. Rows `form _ _ _` (surface forms of several words) are
    skipped. Raises DataError, with file and line, for rows of another shape, and for a file without entries.
    """
    lexicon = Lexicon()
    # (form, lemma, UPOS) as written -> the FEATS met so far. Two entries that only lower-casing brings
    # together are neither a repetition nor a contradiction.
    entries: dict[tuple[str, str, str], set[tuple[str, ...]]] = {}
    columns = 0
    for number, line in iter_lines(path):
        if not line or line.isspace():
            continue
        cells = line.split("\t")
        if len(cells) < len(COLUMNS) or (columns and len(cells) != columns):
            named = f"at least {len(COLUMNS)} columns ({', '.join(COLUMNS)})"
            expected = f"{columns} columns, as in the rows before," if columns else named
            raise DataError(
                f"{place(path, number)}: expected {expected} separated by tabs, found {len(cells)}: "
                f"{shown(line)}"
            )
        is_first, columns = not columns, len(cells)
        form, lemma, upos, feats = (cell.strip(" ") for cell in cells[: len(COLUMNS)])
        if not form:
            raise DataError(f"{place(path, number)}: column 1 (form) is empty; expected a word")
        if lemma == upos == feats == "_":
            lexicon.notes[SURFACE_ROWS] += 1
            continue
        try:
            names = feats_features(feats or "_")
        except ValueError as error:
            if is_first and form.lower() == "form":
                continue  # a header; an entry for the word "form" would have FEATS
            raise DataError(f"{place(path, number)}: {error}") from error
        met = entries.setdefault((form, lemma, upos), set())
        if names in met:
            lexicon.notes[REPEATED] += 1
            continue
        if met:
            lexicon.notes[CONTRADICTORY] += 1
        met.add(names)
        pos = () if upos in ("_", "") else (pos_feature(upos),)
        lexicon.add(form.lower() if lowercase else form, (*pos, *names))
    if not len(lexicon):
        raise DataError(f"{path}: expected rows with {', '.join(COLUMNS)}, found none; is the file empty?")
    return lexicon
