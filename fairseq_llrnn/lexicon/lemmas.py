"""Lemmas of words: from a table, or guessed by endings for other words. Also forms that a text lacks.

A form becomes its lemma by a change of its ending (`kabinách` → `kabina`: −ách +a), and forms with the same ending
mostly change in the same way. Each pair counts its rule for every ending of the form, up to LONGEST letters. A new word
gets the lemma of the most frequent rule of its longest attested ending. A rule that leads to an attested lemma is
preferred, even for a shorter ending, down to SURE letters. Changes at the beginning of words (ge-, nej-) are ignored.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.text_lines import is_letter
from fairseq_llrnn.lexicon.lexicon_table import Row, Table

LONGEST = 6
SURE = 2  # least length of an ending whose rule leads to a known lemma
LEAST = 2  # least number of pairs with a rule
SHORTEST_STEM = 3  # least number of letters that form and lemma share
_SIGN = re.compile("-|(?<=.)['\u2019](?=.)")  # other characters that words of letters may contain
Rule = tuple[str, str]  # the removed ending and the added one


@dataclass(frozen=True)
class LemmaRules:
    """Rules from the endings of forms to those of lemmas."""

    rules: Mapping[str, tuple[Rule, ...]]  # by the form's ending, the most frequent one first
    lemmas: frozenset[str]  # the known lemmas

    @classmethod
    def learn(cls, pairs: Iterable[tuple[str, str]]) -> LemmaRules:
        """Count the rules of pairs of form and lemma, each pair once."""
        counts: defaultdict[str, Counter[Rule]] = defaultdict(Counter)
        lemmas = set()
        for form, lemma in dict.fromkeys(pairs):
            lemmas.add(lemma)
            stem = len(os.path.commonprefix((form, lemma)))
            if stem < SHORTEST_STEM:
                continue
            rule = form[stem:], lemma[stem:]
            for length in range(max(1, len(rule[0])), min(LONGEST, len(form)) + 1):
                counts[form[-length:]][rule] += 1
        ranked = {
            ending: tuple(sorted((rule for rule in rules if rules[rule] >= LEAST), key=lambda r: (-rules[r], r)))
            for ending, rules in counts.items()
        }
        return cls({ending: rules for ending, rules in ranked.items() if rules}, frozenset(lemmas))

    def _apply_rules(self, word: str, shortest: int) -> Iterator[str]:
        """Yield the results of the rules for a word, the longest ending first, down to `shortest` letters."""
        for length in range(min(LONGEST, len(word)), shortest - 1, -1):
            for removed, added in self.rules.get(word[-length:], ()):
                if len(word) - len(removed) >= SHORTEST_STEM:
                    yield word[: len(word) - len(removed)] + added

    def guess(self, word: str) -> str | None:
        """Return the lemma, attested or not, or None if no rule fits, or the word has other characters than letters."""
        if not _is_of_letters(word):
            return None
        attested = (lemma for lemma in self._apply_rules(word, SURE) if lemma in self.lemmas)
        return next(attested, None) or next(self._apply_rules(word, 1), None)


ADVICE = "give --conllu or --lexicon, or --language with a package that lists lemmas"
BY_ENDING = "endings"  # the source of guessed lemmas


@dataclass(frozen=True)
class Lemmas:
    """The possible lemmas of words."""

    listed: Mapping[str, tuple[str, ...]]  # by form, in alphabetical order
    rules: LemmaRules
    _guesses: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of_table(cls, table: Table) -> Lemmas:
        """Collect the lemmas of single words that are not guessed. Guesses are those of the table, or by rules."""
        lemmas_of: dict[str, set[str]] = {}
        guesses: dict[str, tuple[str, ...]] = {}
        for row in table.rows:
            if row.lemma and row.is_word and not row.guessed:
                lemmas_of.setdefault(row.form, set()).add(row.lemma)
            elif row.lemma and row.source == BY_ENDING:
                guesses[row.form] = (row.lemma,)
        listed = {form: tuple(sorted(lemmas)) for form, lemmas in lemmas_of.items()}
        rules = LemmaRules.learn((form, lemma) for form, lemmas in listed.items() for lemma in lemmas)
        return cls(listed, rules, guesses)

    def check(self, option: str, places: Collection[str], advice: str = ADVICE) -> Lemmas:
        """Raise OptionError if no lemmas are listed.

        Args:
            option: the option that needs lemmas.
            places: the sources that were read.
            advice: how to get lemmas.
        """
        if not self.listed:
            expected = "a source of lemmas, found none"
            if places:
                named = ", ".join(places)
                expected = f"lemmas of the text's words, found none: no form with a lemma in {named} is in the text"
            raise OptionError(f"{option}: expected {expected}; {advice}")
        return self

    def of(self, word: str) -> tuple[str, ...]:
        """Return a word's lemmas, or the guessed one, or none for other strings than words of letters, or if no rule
        fits.
        """
        lemmas = self.listed.get(word)
        if lemmas is None:
            lemmas = self._guesses.get(word)
        if lemmas is None:
            guess = self.rules.guess(word)
            lemmas = self._guesses[word] = () if guess is None else (guess,)
        return lemmas

    def guessed(self, words: Iterable[str]) -> Iterable[Row]:
        """Return rows with guessed lemmas for words without a listed one."""
        return [
            Row(word, lemma, source=BY_ENDING, guessed=True)
            for word in words
            if self.listed and word not in self.listed
            for lemma in self.of(word)
        ]


@dataclass(frozen=True)
class MoreForms:
    """Forms that a text lacks, the most frequent ones in other texts first, else in alphabetical order."""

    listed: tuple[str, ...]  # by a source of lemmas
    guessed: tuple[str, ...]  # words of a list of frequencies whose lemma is guessed
    unheard: int = 0  # number of forms that are left out because the list of frequencies lacks them
    signs: tuple[str, ...] = ()  # left out because they are no words of letters, in alphabetical order

    def all(self, most: int | None = None, frequencies: Mapping[str, float] | None = None) -> list[str]:
        """Return both kinds, or only the `most` frequent forms."""
        return _sort_by_frequency((*self.listed, *self.guessed), frequencies)[:most]


def more_forms(shown: Collection[str], lemmas: Lemmas, frequencies: Mapping[str, float] | None = None) -> MoreForms:
    """Find the forms of all possible lemmas of the words of a text.

    Args:
        shown: the words of the text.
        frequencies: of words in other texts. Forms outside of them are left out. Words that no source of lemmas has get
            the lemma of their ending.
    """
    in_text = frozenset(shown)
    text_lemmas = {lemma for word in in_text for lemma in lemmas.of(word)}
    entries = ((form, of_form) for form, of_form in lemmas.listed.items() if form not in in_text)
    forms = [form for form, of_form in entries if not text_lemmas.isdisjoint(of_form)]
    words = [form for form in forms if _is_of_letters(form)]
    signs = tuple(sorted(set(forms).difference(words)))
    if frequencies is None:
        return MoreForms(tuple(sorted(words)), (), signs=signs)
    frequent = [form for form in words if form in frequencies]
    unlisted = (w for w in frequencies if w not in in_text and w not in lemmas.listed and _is_of_letters(w))
    guessed = [word for word in unlisted if not text_lemmas.isdisjoint(lemmas.of(word))]
    listed, guesses = tuple(_sort_by_frequency(frequent, frequencies)), tuple(_sort_by_frequency(guessed, frequencies))
    return MoreForms(listed, guesses, len(words) - len(frequent), signs)


def _is_of_letters(form: str) -> bool:
    """Return whether a form is one word of letters and their marks, not several words, a number or a sign."""
    letters = _SIGN.sub("", form)
    return letters.isalpha() or (all(map(is_letter, letters)) and any(map(str.isalpha, letters)))


def _sort_by_frequency(forms: Collection[str], frequencies: Mapping[str, float] | None) -> list[str]:
    weights = frequencies or {}
    return sorted(forms, key=lambda form: (-weights.get(form, 0.0), form))
