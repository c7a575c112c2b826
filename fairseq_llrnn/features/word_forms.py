"""The forms of lemmas, from files and packages that know lemmas: what `--term-forms` and `--source-forms` name.

    lexicon:FILE       TSV of form, lemma, UPOS, FEATS
    unimorph:FILE      UniMorph: lemma, form, tags
    treebank:FILE      CoNLL-U
    lemmas:CODE        a package's lemmas of the text's words (simplemma, of 54 languages)
    hunspell:FILE.dic  the lemmas that have a form in the text, with all forms that the rules of FILE.aff give
    apertium:MODE      Apertium's analyses of the text's words, by an installed mode or an *.automorf.bin

Lemmas and forms may be phrases. A form has the union of the features of its analyses under the lemma.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.languages import language_code
from fairseq_llrnn.features.languages.base import Spelling
from fairseq_llrnn.features.languages.lemmas import GROUP, Simplemma
from fairseq_llrnn.features.lexicon import Lexicon, feature_group
from fairseq_llrnn.features.readers.apertium import read_apertium_lemmas
from fairseq_llrnn.features.readers.conllu import iter_conllu_words
from fairseq_llrnn.features.readers.hunspell import iter_hunspell
from fairseq_llrnn.features.readers.lemma_rows import NONE
from fairseq_llrnn.features.readers.tsv import iter_tsv_rows
from fairseq_llrnn.features.readers.unimorph import MISSING, iter_unimorph_rows
from fairseq_llrnn.features.readers.unimorph_tags import tags_features

Row = tuple[str, str, Iterable[str]]  # lemma, form, features


class WordForms:
    """lemma -> its forms with their features, in the order in which they came."""

    def __init__(self) -> None:
        self._forms: dict[str, dict[str, dict[str, float]]] = {}

    def add(self, lemma: str, form: str, features: Iterable[str] = ()) -> None:
        """Unite the features with those that the form has under this lemma."""
        self._forms.setdefault(lemma, {}).setdefault(form, {}).update(dict.fromkeys(features, 1.0))

    def of(self, lemma: str) -> Mapping[str, Mapping[str, float]]:
        """The forms of a lemma; none for one that is not known."""
        return self._forms.get(lemma, {})

    def __iter__(self) -> Iterator[str]:
        return iter(self._forms)

    def __len__(self) -> int:
        return len(self._forms)

    @classmethod
    def of_lexicon(cls, words: Iterable[str], features_of: Callable[[str], Mapping[str, float]]) -> WordForms:
        """From words that have features `Lemma:…`."""
        found = cls()
        for word in words:
            features = features_of(word)
            for name in features:
                if feature_group(name) == GROUP:
                    found.add(name.partition(":")[2], word, features)
        return found


def read_word_forms(
    places: Sequence[str], words: Sequence[str], spelling: Spelling, option: str = "--term-forms"
) -> WordForms:
    """All that some places, named as above, know.

    Args:
        words: of the text. spelling: of lemmas and forms in it. option: which names the places.

    Raises:
        OptionError: another kind of place, a language that no package knows, a package that is not installed.
        DataError: of a file, with line.
    """
    found = WordForms()
    for named in places:
        kind, colon, what = named.partition(":")
        if not colon or kind not in (*FILES, "lemmas", "hunspell", "apertium") or not what:
            raise OptionError(
                f"{option} {named}: expected lexicon:FILE, unimorph:FILE, treebank:FILE, hunspell:FILE.dic, "
                "lemmas:CODE (e.g. lemmas:cs) or apertium:MODE_OR_FILE, found something else; say what the file is"
            )
        rows: Iterable[Row]
        if kind == "lemmas":
            rows = _package_rows(what, words, spelling, option)
        elif kind == "hunspell":
            found_forms = iter_hunspell(what, set(words), spelling.of_text)
            rows = ((lemma, form, ()) for lemma, forms in found_forms for form in forms)
        elif kind == "apertium":
            asked = (word for word in words if word not in SPECIALS)
            rows = read_apertium_lemmas(asked, analyser=what, lowercase=spelling.lowercase, language=spelling.rules)
        else:
            rows = FILES[kind](Path(what))
        for lemma, form, features in rows:
            found.add(spelling.of_text(lemma), spelling.of_text(form), features)
    return found


def _package_rows(code: str, words: Sequence[str], spelling: Spelling, option: str) -> Iterator[Row]:
    named, package = f"{option} lemmas:{code}", Simplemma()
    known = language_code(code, named)
    if known not in package.codes:
        raise OptionError(
            f"{named}: expected a language of simplemma, found {known}, which it lacks; it has "
            f"{', '.join(package.codes)}: give a file with lexicon:FILE or unimorph:FILE"
        )
    package.need(known, named)
    lexicon: Lexicon = package.read(words, known, spelling)
    for word in words:
        for name in lexicon.features(word):
            yield name.partition(":")[2], word, ()


def _lexicon_rows(path: Path) -> Iterator[Row]:
    for row in iter_tsv_rows(path, Counter()):
        if row.lemma not in NONE:
            yield row.lemma, row.form, row.features


def _treebank_rows(path: Path) -> Iterator[Row]:
    for sentence in iter_conllu_words(path, False):
        for token in sentence:
            if token.lemma not in NONE:
                yield token.lemma, token.form, token.features


def _unimorph_rows(path: Path) -> Iterator[Row]:
    for lemma, form, tags in iter_unimorph_rows(path):
        if lemma not in NONE and form not in MISSING:
            yield lemma, form, tags_features(tags)


FILES: Mapping[str, Callable[[Path], Iterator[Row]]] = {
    "lexicon": _lexicon_rows,
    "unimorph": _unimorph_rows,
    "treebank": _treebank_rows,
}
