"""Forms and their lemmas, from the files that features are read from, and from dictionaries of hunspell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from fairseq_llrnn.features.casing import lower
from fairseq_llrnn.files.read_count import ReadCount
from fairseq_llrnn.lexicon.readers.conllu import in_one_word, iter_conllu_tokens
from fairseq_llrnn.lexicon.readers.hunspell import iter_hunspell
from fairseq_llrnn.lexicon.readers.tsv import iter_tsv_rows
from fairseq_llrnn.lexicon.readers.unimorph import iter_unimorph_rows

NONE = ("", "_")
WITHOUT_LEMMA = "without a lemma"
PHRASES = "of several words"


def iter_lemmas(
    path: Path | str, kind: str, *, lowercase: bool, language: str | None = None, words: Collection[str] | None = None,
    form: str | None = None,
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """Pairs of form and lemma, in order, as often as the file has them; rows without a lemma are left out.

    Args:
        kind: "conllu", "lexicon" (form, lemma, UPOS, FEATS), "unimorph" or "hunspell". lowercase: lower-case both, by
            the rules of `language` (casing.py). words: of a text; a dictionary of hunspell gives no forms of a lemma
            of which none is among them. form: of text_lines.py.

    Raises:
        DataError: as the readers of features do.
    """
    count = ReadCount(path, "forms" if kind == "hunspell" else "rows", form)
    for word, lemma in _rows(count, kind, words, (lambda word: lower(word, language)) if lowercase else str):
        if lemma in NONE:
            count.left_out[WITHOUT_LEMMA] += 1
        elif any(map(str.isspace, word)):
            count.left_out[PHRASES] += 1
        else:
            count.read += 1
            yield (lower(word, language), lower(lemma, language)) if lowercase else (word, lemma)


def _rows(
    count: ReadCount, kind: str, words: Collection[str] | None, spelled: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    if kind == "conllu":
        yield from ((in_one_word(word.form), word.lemma) for word in iter_conllu_tokens(count, lowercase=False))
    elif kind == "lexicon":
        yield from ((row.form, row.lemma) for row in iter_tsv_rows(count))
    elif kind == "hunspell":  # whose own entries, words, are counted there
        for lemma, forms in iter_hunspell(count.file, words, spelled, count.form):
            count.found += len(forms)
            yield from ((form, lemma) for form in forms)
        count.done()
    else:
        yield from ((form, lemma) for lemma, form, _ in iter_unimorph_rows(count))
