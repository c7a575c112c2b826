"""Lemmas of words: of a table, and guessed by their endings where no table has a word; and forms that a text lacks.

A form becomes its lemma by another ending (`kabinách` → `kabina`: −ách +a), and forms with the same ending mostly by
the same one. Of all known pairs, every ending of the form, up to LONGEST letters, counts such a rule. A new word is
given the lemma of the rule that its longest known ending shows most often; a rule whose lemma is already known, of
other words, goes before all others, however short the ending, down to SURE letters. What a language changes at the
beginning of words (ge-, nej-) is left alone.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.text_lines import is_letter
from fairseq_llrnn.lexicon.table import Row, Table

LONGEST = 6
SURE = 2  # letters of an ending that is believed where the lemma is known
LEAST = 2  # pairs that have to show a rule
SHORTEST_STEM = 3  # letters that form and lemma share
_SIGN = re.compile("-|(?<=.)['\u2019](?=.)")  # what words of letters may hold beside them
Rule = tuple[str, str]  # the ending that goes, and the one that comes


@dataclass(frozen=True)
class LemmaRules:
    """Which endings become which."""

    rules: Mapping[str, tuple[Rule, ...]]  # by the form's ending, the most frequent one first
    lemmas: frozenset[str]  # those that are known

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

    def _by_rules(self, word: str, shortest: int) -> Iterator[str]:
        """What rules make of a word, the longest ending first, down to `shortest` letters."""
        for length in range(min(LONGEST, len(word)), shortest - 1, -1):
            for goes, comes in self.rules.get(word[-length:], ()):
                if len(word) - len(goes) >= SHORTEST_STEM:
                    yield word[: len(word) - len(goes)] + comes

    def attested_lemma(self, word: str) -> str | None:
        """The lemma, if it is known of other words."""
        return next((lemma for lemma in self._by_rules(word, SURE) if lemma in self.lemmas), None)

    def guess(self, word: str) -> str | None:
        """The lemma, known or not; None where no rule fits, or the word is no word of letters."""
        if not _is_of_letters(word):
            return None
        return self.attested_lemma(word) or next(self._by_rules(word, 1), None)


ADVICE = "give --conllu or --lexicon, or --language with a package that lists lemmas"
BY_ENDING = "endings"  # the source of guessed lemmas


@dataclass(frozen=True)
class Lemmas:
    """The lemmas that words can be of."""

    listed: Mapping[str, tuple[str, ...]]  # by form, in alphabetical order
    rules: LemmaRules
    _guesses: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of_table(cls, table: Table) -> Lemmas:
        """Those of single words that are not guessed; guessed ones are those of the table, or by rules."""
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
        """Raise OptionError where nothing is listed.

        Args:
            option: what needs lemmas. places: that were asked. advice: what else there is.
        """
        if not self.listed:
            expected = "a source of lemmas, found none"
            if places:
                where = ", ".join(places)
                expected = f"lemmas of the text's words, found none: no form with a lemma in {where} is in the text"
            raise OptionError(f"{option}: expected {expected}; {advice}")
        return self

    def of(self, word: str) -> tuple[str, ...]:
        """Its lemmas, or the guessed one; none for what is no word of letters, or like no known one."""
        lemmas = self.listed.get(word)
        if lemmas is None:
            lemmas = self._guesses.get(word)
        if lemmas is None:
            guess = self.rules.guess(word)
            lemmas = self._guesses[word] = () if guess is None else (guess,)
        return lemmas

    def guessed(self, words: Iterable[str]) -> Iterable[Row]:
        """Rows of the lemmas of words that none is listed of."""
        return [
            Row(word, lemma, source=BY_ENDING, guessed=True)
            for word in words
            if self.listed and word not in self.listed
            for lemma in self.of(word)
        ]


@dataclass(frozen=True)
class MoreForms:
    """Forms that a text lacks, the most frequent ones elsewhere first, else in alphabetical order."""

    listed: tuple[str, ...]  # by a source of lemmas
    guessed: tuple[str, ...]  # words of a list of frequencies whose lemma is guessed
    unheard: int = 0  # forms that were left out because the list of frequencies lacks them
    signs: tuple[str, ...] = ()  # forms that were left out because they are no words of letters, in alphabetical order

    def all(self, most: int | None = None, frequencies: Mapping[str, float] | None = None) -> list[str]:
        """Both, or the `most` frequent ones."""
        return _ranked((*self.listed, *self.guessed), frequencies)[:most]


def more_forms(shown: Collection[str], lemmas: Lemmas, frequencies: Mapping[str, float] | None = None) -> MoreForms:
    """Find the forms of all lemmas that the words of a text can be of.

    Args:
        shown: the words of the text. frequencies: of words in other texts, which no source of lemmas need have; a form
            that they lack is left out, and one that they have is of the lemma that its ending says.
    """
    seen = frozenset(shown)
    wanted = {lemma for word in seen for lemma in lemmas.of(word)}
    every = [form for form, its in lemmas.listed.items() if form not in seen and not wanted.isdisjoint(its)]
    missing = [form for form in every if _is_of_letters(form)]
    signs = tuple(sorted(set(every).difference(missing)))
    if frequencies is None:
        return MoreForms(tuple(sorted(missing)), (), signs=signs)
    heard = [form for form in missing if form in frequencies]
    others = (word for word in frequencies if word not in seen and word not in lemmas.listed and _is_of_letters(word))
    guessed = [word for word in others if not wanted.isdisjoint(lemmas.of(word))]
    listed, by_ending = (tuple(_ranked(forms, frequencies)) for forms in (heard, guessed))
    return MoreForms(listed, by_ending, len(missing) - len(heard), signs)


def _is_of_letters(form: str) -> bool:
    """Whether it is one word of letters, with their marks: forms of several words, numbers and signs are none."""
    letters = _SIGN.sub("", form)
    return letters.isalpha() or (all(map(is_letter, letters)) and any(map(str.isalpha, letters)))


def _ranked(forms: Collection[str], frequencies: Mapping[str, float] | None) -> list[str]:
    weights = frequencies or {}
    return sorted(forms, key=lambda form: (-weights.get(form, 0.0), form))
