"""Forms and their lemmas, from the files that features are read from, and from dictionaries of hunspell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from fairseq_llrnn.features.casing import lower
from fairseq_llrnn.features.readers.conllu import in_one_word, iter_conllu_words
from fairseq_llrnn.features.readers.hunspell import iter_hunspell
from fairseq_llrnn.features.readers.tsv import iter_tsv_rows
from fairseq_llrnn.features.readers.unimorph import iter_unimorph_rows

NONE = ("", "_")


def iter_lemmas(
    path: Path | str, kind: str, *, lowercase: bool, language: str | None = None, words: Collection[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Pairs of form and lemma, in order, as often as the file has them; rows without a lemma are left out.

    Args:
        kind: "conllu", "lexicon" (form, lemma, UPOS, FEATS), "unimorph" or "hunspell". lowercase: lower-case both, by
            the rules of `language` (casing.py). words: of a text; a dictionary of hunspell gives no forms of a lemma
            of which none is among them.

    Raises:
        DataError: as the readers of features do.
    """
    for form, lemma in _rows(path, kind, words, (lambda word: lower(word, language)) if lowercase else str):
        if lemma in NONE or any(map(str.isspace, form)):
            continue
        yield (lower(form, language), lower(lemma, language)) if lowercase else (form, lemma)


def _rows(
    path: Path | str, kind: str, words: Collection[str] | None, spelled: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    if kind == "conllu":
        for sentence in iter_conllu_words(path, lowercase=False):
            yield from ((in_one_word(word.form), word.lemma) for word in sentence)
    elif kind == "lexicon":
        yield from ((row.form, row.lemma) for row in iter_tsv_rows(path, Counter()))
    elif kind == "hunspell":
        yield from ((form, lemma) for lemma, forms in iter_hunspell(path, words, spelled) for form in forms)
    else:
        yield from ((form, lemma) for lemma, form, _ in iter_unimorph_rows(path))
