"""Lexicons of UniMorph: rows of lemma, form and tags (`ház<TAB>házat<TAB>N;ACC;SG`), of any language.

A fourth column, which says how newer files cut the form, is not read. Blank lines part the paradigms of older ones.
"""

from collections.abc import Iterator
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.casing import lower
from fairseq_llrnn.files.read_count import ReadCount
from fairseq_llrnn.files.text_lines import place, refuse_blank, shown
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.readers.unimorph_tags import OWN_GROUP, tags_features

COLUMNS = ("lemma", "form", "features")
OF_LEXICONS = ("NOUN", "VERB", "PRON", "CCONJ", "SCONJ", "SYM")  # parts of speech that are no tags of UniMorph
MISSING = ("-", "–", "—")  # where a paradigm has no form

WITHOUT_FORM = "without a form"
PHRASES = "of several words"
OWN_SHOWN = 5


def read_unimorph(
    path: Path | str, *, lowercase: bool, language: str | None = None, form: str | None = None
) -> Lexicon:
    """Each form with the union of its analyses. `lowercase` lower-cases forms, by the rules of `language` (casing.py).

    `form`: of text_lines.py.

    Raises DataError, with file and line, for a row of another shape, and for a file without rows.
    """
    lexicon, own, count = Lexicon(), dict[str, None](), ReadCount(path, "rows", form)
    for _, word, tags in iter_unimorph_rows(count):
        if len(word.split()) > 1:
            count.left_out[PHRASES] += 1
            continue
        count.read += 1
        names = tags_features(tags)
        own.update(dict.fromkeys(name for name in names if name.startswith(f"{OWN_GROUP}:")))
        lexicon.add(lower(word, language) if lowercase else word, names)
    if own:
        kept = ", ".join(list(own)[:OWN_SHOWN]) + (", …" if len(own) > OWN_SHOWN else "")
        lexicon.notes[f"kinds of UniMorph tags that Universal Dependencies lacks, kept as they are ({kept})"] += len(
            own
        )
    return lexicon


def iter_unimorph_rows(count: ReadCount) -> Iterator[tuple[str, str, str]]:
    """Lemma, form and tags of each row, in order, as written; rows of a missing form are left out.

    Whoever uses the others counts them as read, or leaves them out.

    Raises DataError as `read_unimorph` does.
    """
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
                f"speech {tags}; a file of form, lemma, UPOS and FEATS is a lexicon: give it as one (--lexicon, "
                "lexicon:FILE)"
            )
        if form not in MISSING or tags.upper().startswith("PUNCT"):
            yield lemma, form, tags
        else:
            count.left_out[WITHOUT_FORM] += 1
    if not count.found:
        raise DataError(f"{path}: expected rows with {', '.join(COLUMNS)}, found none; is the file empty?")
