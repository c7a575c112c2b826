"""Lexicons of UniMorph: rows of lemma, form and tags (`ház<TAB>házat<TAB>N;ACC;SG`), of any language.

A fourth column, which says how newer files cut the form, is not read. Blank lines part the paradigms of older ones.
"""

from collections.abc import Iterator

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.read_count import ReadCount
from fairseq_llrnn.files.text_lines import place, refuse_blank, shown
from fairseq_llrnn.lexicon.readers.unimorph_tags import GROUP, tags_features
from fairseq_llrnn.lexicon.table import Asked, Row, as_features

COLUMNS = ("lemma", "form", "features")
OF_LEXICONS = ("NOUN", "VERB", "PRON", "CCONJ", "SCONJ", "SYM")  # parts of speech that are no tags of UniMorph
MISSING = ("-", "–", "—")  # where a paradigm has no form

WITHOUT_FORM = "without a form"
MOST_SHOWN = 5


def unimorph_rows(path: str, asked: Asked) -> Iterator[tuple[Row, int]]:
    """Each row, phrases as well. Raises DataError, with file and line, for one of another shape; a file without any."""
    count, rest = ReadCount(path, "rows", asked.spelling.form), dict[str, None]()
    for lemma, form, tags in _cells(count):
        count.read += 1
        names = tags_features(tags)
        rest.update(dict.fromkeys(name for name in names if name.startswith(f"{GROUP}:")))
        lemma = "" if lemma in ("", "_") else asked.spelling.cased(lemma)
        yield Row(asked.spelling.cased(form), lemma, as_features(names), "unimorph"), 0
    if rest:
        kept = ", ".join(list(rest)[:MOST_SHOWN]) + (", …" if len(rest) > MOST_SHOWN else "")
        asked.notes[f"kinds of UniMorph tags that Universal Dependencies lacks, kept as they are ({kept})"] += len(rest)


def _cells(count: ReadCount) -> Iterator[tuple[str, str, str]]:
    """Lemma, form and tags of each row, in order, as written; rows of a missing form are left out."""
    path = count.file
    for number, line in count.lines():
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < len(COLUMNS):
            raise DataError(
                f"{place(path, number)}: expected at least {len(COLUMNS)} columns ({', '.join(COLUMNS)}) separated by "
                f"tabs, found {len(cells)}: {shown(line)}; fix the row"
            )
        lemma, form, tags = cells[: len(COLUMNS)]
        for column, cell in ((2, form), (3, tags)):
            refuse_blank(cell, place(path, number), f"column {column} ({COLUMNS[column - 1]})")
        if tags in OF_LEXICONS:
            raise DataError(
                f"{place(path, number)}: expected UniMorph features such as N;NOM;SG in column 3, found the part of "
                f"speech {tags}; a file of form, lemma, UPOS and FEATS is a lexicon: give it as one "
                "(--lexicon)"
            )
        if form not in MISSING or tags.upper().startswith("PUNCT"):
            yield lemma, form, tags
        else:
            count.left_out[WITHOUT_FORM] += 1
    if not count.entries:
        raise DataError(f"{path}: expected rows with {', '.join(COLUMNS)}, found none; is the file empty?")
