"""Lemmas of words, from treebanks, lexicons and packages, and guessed where none of these has a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.lexicon.language_check import words_in_both
from fairseq_llrnn.lexicon.languages.base import Spelling, sources_of
from fairseq_llrnn.lexicon.lemma_rules import LemmaRules
from fairseq_llrnn.lexicon.readers.lemma_rows import iter_lemmas

ADVICE = "give --conllu, --lexicon, --unimorph or --hunspell, or --language with a package that lists lemmas"


@dataclass(frozen=True)
class LemmaSources:
    """Where pairs of form and lemma come from."""

    files: Sequence[tuple[str, str]] = ()  # kind (of readers/lemma_rows.py) and path
    language: str | None = None  # a code of lexicon/languages/names.py, whose packages list words
    lowercase: bool = True
    rules: str | None = None  # the language by whose rules words are lower-cased (casing.py)
    form: str | None = None  # of text_lines.py
    words: Collection[str] | None = None  # of the text; dictionaries of hunspell are read for these
    option: str | None = None  # that names the files, where none is called like their kind

    def pairs(self) -> Iterator[tuple[str, str, Iterator[tuple[str, str]]]]:
        """All that are listed, some more than once, by their sources: kind, and name as a user knows it.

        Raises:
            DataError: as the readers do.
        """
        for kind, path in self.files:
            yield (
                kind,
                f"{self.option or f'--{kind}'} {path}",
                iter_lemmas(
                    path, kind, lowercase=self.lowercase, language=self.rules, words=self.words, form=self.form
                ),
            )
        spelling = Spelling(self.lowercase, self.rules, self.form)
        for source in sources_of(self.language) if self.language else ():
            if not source.missing(str(self.language)):
                listed = source.listed(str(self.language))
                spelt = ((spelling.of_text(form), spelling.of_text(lemma)) for form, lemma in listed)
                yield "package", f"{source.name} {self.language}", spelt


@dataclass(frozen=True)
class Lemmas:
    """The lemmas that words can be of."""

    listed: Mapping[str, tuple[str, ...]]  # by form, in alphabetical order
    rules: LemmaRules
    notes: Counter[str] = field(default_factory=Counter)  # remarks of how many words each is true
    _guesses: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def read(cls, sources: LemmaSources, option: str, advice: str = ADVICE) -> Lemmas:
        """All that the sources list.

        Raises:
            OptionError: they list nothing; `option` is what needs them, and `advice` says what else there is.
            DataError: as the readers do.
        """
        found: dict[str, set[str]] = {}
        notes: Counter[str] = Counter()
        for kind, name, pairs in sources.pairs():
            forms = set()
            for form, lemma in pairs:
                found.setdefault(form, set()).add(lemma)
                forms.add(form)
            if sources.words is not None:
                notes.update(words_in_both(name, forms, sources.words, answers=kind == "hunspell"))
        if not found:
            expected = "a source of lemmas, found none"
            if sources.files:
                given = ", ".join(path for _, path in sources.files)
                expected = f"lemmas of the text's words, found none: no form with a lemma in {given} is in the text"
            raise OptionError(f"{option}: expected {expected}; {advice}")
        listed = {form: tuple(sorted(lemmas)) for form, lemmas in found.items()}
        rules = LemmaRules.learn((form, lemma) for form, lemmas in listed.items() for lemma in lemmas)
        return cls(listed, rules, notes)

    def of(self, word: str) -> tuple[str, ...]:
        """Its lemmas, or the guessed one; none for what is no word of letters, or like no known one."""
        found = self.listed.get(word)
        if found is None:
            found = self._guesses.get(word)
        if found is None:
            guess = self.rules.guess(word)
            found = self._guesses[word] = () if guess is None else (guess,)
        return found
