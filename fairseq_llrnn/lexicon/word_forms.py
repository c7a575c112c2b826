"""The forms of lemmas, from files and packages that know lemmas: what `--term-forms` and `--source-forms` name.

    lexicon:FILE       TSV of form, lemma, UPOS, FEATS
    unimorph:FILE      UniMorph: lemma, form, tags
    treebank:FILE      CoNLL-U
    lemmas:CODE        a package's lemmas of the text's words (simplemma, of 54 languages)
    hunspell:FILE.dic  the lemmas that have a form in the text, with all forms that the rules of FILE.aff give
    apertium:MODE      Apertium's analyses of the text's words, by an installed mode or an *.automorf.bin

Lemmas and forms may be phrases. A form may have several analyses under its lemma, each with features; its features are
their union.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.files.read_count import ReadCount
from fairseq_llrnn.lexicon.features import Lexicon, feature_group
from fairseq_llrnn.lexicon.language_check import words_in_both
from fairseq_llrnn.lexicon.languages import language_code
from fairseq_llrnn.lexicon.languages.base import Spelling
from fairseq_llrnn.lexicon.languages.lemmas import GROUP, Simplemma
from fairseq_llrnn.lexicon.named_places import split_place
from fairseq_llrnn.lexicon.readers.apertium import read_apertium_lemmas
from fairseq_llrnn.lexicon.readers.conllu import iter_conllu_tokens
from fairseq_llrnn.lexicon.readers.hunspell import iter_hunspell
from fairseq_llrnn.lexicon.readers.lemma_rows import NONE, WITHOUT_LEMMA
from fairseq_llrnn.lexicon.readers.tsv import iter_tsv_rows
from fairseq_llrnn.lexicon.readers.unimorph import iter_unimorph_rows
from fairseq_llrnn.lexicon.readers.unimorph_tags import tags_features

Row = tuple[str, str, Iterable[str]]  # lemma, form, features


class WordForms:
    """lemma -> its forms with their analyses, in the order in which they came."""

    def __init__(self) -> None:
        self._forms: dict[str, dict[str, list[tuple[str, ...]]]] = {}
        self.notes: Counter[str] = Counter()  # remarks of how many words each is true
        self._shared: dict[tuple[str, ...], tuple[str, ...]] = {}  # equal analyses are one object

    def add(self, lemma: str, form: str, features: Iterable[str] = ()) -> None:
        """Take in a form, and an analysis of it, unless it has no feature."""
        analyses, names = self._forms.setdefault(lemma, {}).setdefault(form, []), tuple(dict.fromkeys(features))
        if names and names not in analyses:
            analyses.append(self._shared.setdefault(names, names))

    def of(self, lemma: str) -> Mapping[str, Mapping[str, float]]:
        """The forms of a lemma, each with the features of all its analyses; none for one that is not known."""
        known = self._forms.get(lemma, {})
        return {form: {name: 1.0 for one in some for name in one} for form, some in known.items()}

    def strings(self, lemma: str) -> Iterable[str]:
        """The forms of a lemma alone."""
        return self._forms.get(lemma, {}).keys()

    def analyses(self, lemma: str, form: str) -> Sequence[tuple[str, ...]]:
        """The features of each analysis of a form; none where nothing is known."""
        return self._forms.get(lemma, {}).get(form, ())

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
    found, asked = WordForms(), Asked(words, spelling, option)
    for named in places:
        kind, what = split_place(named, option, {name: kind.shown for name, kind in KINDS.items()})
        forms = set()
        for lemma, form, features in KINDS[kind].rows(what, asked):
            form = spelling.of_text(form)
            forms.update(form.split())
            found.add(spelling.of_text(lemma), form, features)
        found.notes.update(words_in_both(f"{option} {named}", forms, words, KINDS[kind].answers))
    return found


@dataclass(frozen=True)
class Asked:
    """What a place is asked for."""

    words: Sequence[str]  # of the text
    spelling: Spelling
    option: str  # which names the place


def _package_rows(code: str, asked: Asked) -> Iterator[Row]:
    named, package = f"{asked.option} lemmas:{code}", Simplemma()
    known = language_code(code, named)
    if known not in package.codes:
        raise OptionError(
            f"{named}: expected a language of simplemma, found {known}, which it lacks; it has "
            f"{', '.join(package.codes)}: give a file with lexicon:FILE or unimorph:FILE"
        )
    package.need(known, named)
    lexicon: Lexicon = package.lookup(asked.words, known, asked.spelling)
    for word in asked.words:
        for name in lexicon.features(word):
            yield name.partition(":")[2], word, ()


def _lexicon_rows(path: str, asked: Asked) -> Iterator[Row]:
    count = ReadCount(path, "rows", asked.spelling.form)
    return _with_lemma(count, ((row.lemma, row.form, row.features) for row in iter_tsv_rows(count)))


def _treebank_rows(path: str, asked: Asked) -> Iterator[Row]:
    count = ReadCount(path, "rows", asked.spelling.form)
    return _with_lemma(count, ((word.lemma, word.form, word.features) for word in iter_conllu_tokens(count, False)))


def _unimorph_rows(path: str, asked: Asked) -> Iterator[Row]:
    count = ReadCount(path, "rows", asked.spelling.form)
    rows = ((lemma, form, tags_features(tags)) for lemma, form, tags in iter_unimorph_rows(count))
    return _with_lemma(count, rows)


def _with_lemma(count: ReadCount, rows: Iterable[Row]) -> Iterator[Row]:
    for row in rows:
        if row[0] in NONE:
            count.left_out[WITHOUT_LEMMA] += 1
            continue
        count.read += 1
        yield row


def _hunspell_rows(path: str, asked: Asked) -> Iterator[Row]:
    spelling = asked.spelling
    for lemma, forms in iter_hunspell(path, set(asked.words), spelling.cased, spelling.form):
        for form in forms:
            yield lemma, form, ()


def _apertium_rows(analyser: str, asked: Asked) -> Iterator[Row]:
    words, spelling = (word for word in asked.words if word not in SPECIALS), asked.spelling
    return read_apertium_lemmas(words, analyser=analyser, lowercase=spelling.lowercase, language=spelling.rules)


@dataclass(frozen=True)
class Kind:
    """A kind of place."""

    shown: str  # as people write it
    rows: Callable[[str, Asked], Iterable[Row]]
    answers: bool = False  # whether it lists only words of the text, and forms of their lemmas


KINDS: Mapping[str, Kind] = {
    "lexicon": Kind("lexicon:FILE", _lexicon_rows),
    "unimorph": Kind("unimorph:FILE", _unimorph_rows),
    "treebank": Kind("treebank:FILE", _treebank_rows),
    "hunspell": Kind("hunspell:FILE.dic", _hunspell_rows, answers=True),
    "lemmas": Kind("lemmas:CODE (e.g. lemmas:cs)", _package_rows, answers=True),
    "apertium": Kind("apertium:MODE_OR_FILE", _apertium_rows, answers=True),
}
