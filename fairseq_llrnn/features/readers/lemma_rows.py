"""Forms and their lemmas, from the files that features are read from: treebanks, lexicons, UniMorph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fairseq_llrnn.features.casing import lower
from fairseq_llrnn.features.readers.conllu import in_one_word, iter_conllu_words
from fairseq_llrnn.features.readers.tsv import iter_tsv_rows
from fairseq_llrnn.features.readers.unimorph import iter_unimorph_rows

NONE = ("", "_")


def iter_lemmas(
    path: Path | str, kind: str, *, lowercase: bool, language: str | None = None
) -> Iterator[tuple[str, str]]:
    """Pairs of form and lemma, in order, as often as the file has them; rows without a lemma are left out.

    Args:
        kind: "conllu", "lexicon" (form, lemma, UPOS, FEATS) or "unimorph". lowercase: lower-case both, by the rules of
            `language` (casing.py).

    Raises:
        DataError: as the readers of features do.
    """
    for form, lemma in _rows(path, kind):
        if lemma in NONE or any(map(str.isspace, form)):
            continue
        yield (lower(form, language), lower(lemma, language)) if lowercase else (form, lemma)


def _rows(path: Path | str, kind: str) -> Iterator[tuple[str, str]]:
    if kind == "conllu":
        for words in iter_conllu_words(path, lowercase=False):
            yield from ((in_one_word(word.form), word.lemma) for word in words)
    elif kind == "lexicon":
        yield from ((row.form, row.lemma) for row in iter_tsv_rows(path, Counter()))
    else:
        yield from ((form, lemma) for lemma, form, _ in iter_unimorph_rows(path))
