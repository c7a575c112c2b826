"""The forms of lemmas with their analyses, of tables: what terms and phrases ask for.

Lemmas and forms may be phrases. A form may have several analyses under its lemma, each with features; its features are
their union.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.text_lines import form_of
from fairseq_llrnn.lexicon.casing import is_lower
from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.lexicon.gather import gather
from fairseq_llrnn.lexicon.language_check import words_in_both
from fairseq_llrnn.lexicon.languages.base import Spelling
from fairseq_llrnn.lexicon.languages.lemmas import GROUP
from fairseq_llrnn.lexicon.lemmas import BY_ENDING
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.table import GUESS

OLD_PLACES = {  # the options of `llrnn lexicon`
    "lexicon": "--lexicon", "unimorph": "--unimorph", "treebank": "--conllu", "hunspell": "--hunspell",
    "lemmas": "--language", "apertium": "--apertium",
}  # fmt: skip


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
        analyses = self._forms.get(lemma, {})
        return {form: {name: 1.0 for one in some for name in one} for form, some in analyses.items()}

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
        forms = cls()
        for word in words:
            features = features_of(word)
            for name in features:
                if feature_group(name) == GROUP:
                    forms.add(name.partition(":")[2], word, features)
        return forms


def read_word_forms(paths: Sequence[str], words: Collection[str], option: str = "--term-forms") -> WordForms:
    """All that some tables know.

    Args:
        words: of the text, as which forms and lemmas are spelled. option: which names the tables.

    Raises:
        OptionError: what named a source of forms in earlier versions. DataError: of a file, with line.
    """
    word_forms, spelling = WordForms(), Spelling(is_lower(words), form=form_of(words))
    for path in paths:
        check_table(path, option)
        form: Any = spelling.form
        options = LexiconOptions(lexicon=path, keep_case=not spelling.lowercase, normalize=form)
        forms = set()
        for row, spelled in ((row, spelling.of_text(row.form)) for row in gather(options).rows):
            forms.update(spelled.split())
            if row.lemma and row.source not in (GUESS, BY_ENDING):
                word_forms.add(spelling.of_text(row.lemma), spelled, (name for name, _ in row.features))
        word_forms.notes.update(words_in_both(path, forms, words))
    return word_forms


def check_table(path: str, option: str) -> None:
    """Raise OptionError for a place of words of earlier versions, with what makes a table of it."""
    kind, _, what = path.partition(":")
    if kind in OLD_PLACES and what:
        advice = f"say {option} {what}" if kind == "lexicon" else (
            f"llrnn lexicon {OLD_PLACES[kind]} {what} --out words.tsv makes one, then say {option} words.tsv"
        )  # fmt: skip
        raise OptionError(f"{option} {path}: expected a table of words, found a place as of earlier versions; {advice}")
