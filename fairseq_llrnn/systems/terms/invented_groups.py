"""The groups of terms that training may ask for, made once of a run: lemmas, and phrases of the first training data.

All forms of a lemma, or of a phrase, are a group. Phrases are runs of nouns and adjectives in the targets. Two
neighbours need not belong together (*psa bílý* in *vidí psa bílý muž*). So where words inflect for case or gender, the
words of a phrase agree, and all of them change with its forms; elsewhere, its last word does.

Every group takes tokens that the session keeps; so data in several folders, of which an epoch reads one, has the
phrases of the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

import numpy as np

from fairseq_llrnn.evidence.table import Use
from fairseq_llrnn.lexicon.word_forms import WordForms
from fairseq_llrnn.prior.parts.evidence import evidence_table
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.terms.groups import FUNCTION_WORDS, LEAST_GUESS, MOST_FORMS, NOUNS, TermGroups
from fairseq_llrnn.systems.terms.phrases import PhraseForms, phrase_forms, target_shares

MOST_PHRASES = 2000  # each takes some milliseconds, and a token for each form
LONGEST = 3  # words
CONTENT = NOUNS | {"POS:ADJ"}

Forms = Mapping[str, Mapping[str, float]]  # string -> features


def invented_phrases(
    sentences: Iterable[Sequence[str]], phrases: PhraseForms, most: int = MOST_PHRASES
) -> dict[str, Forms]:
    """The first phrases that the sentences say, each with its forms; no one is a form of another."""
    names = _names(phrases)
    if NOUNS.isdisjoint(names):
        return {}
    agree = any(name.startswith(("Case:", "Gender:")) for name in names)

    @cache
    def kinds(word: str) -> frozenset[str]:
        of = (one for lemma in phrases.analyses.lemmas_of.get(word, ()) for one in phrases.forms.analyses(lemma, word))
        names = {name for one in of for name in one}
        if not any(name.startswith("POS:") for name in names):
            guessed = phrases.analyses.features.get(word, {})
            names = {name for name, value in guessed.items() if value >= LEAST_GUESS}
        return frozenset(name for name in names if name.startswith("POS:"))

    invented: dict[str, Forms] = {}
    met: set[str] = set()
    for words in sentences:
        content = [bool(kinds(word)) and kinds(word) <= CONTENT for word in words]
        for begin, end in runs(len(words)):
            run, string = words[begin:end], " ".join(words[begin:end])
            if string in met or not all(content[begin:end]) or not any(kinds(word) & NOUNS for word in run):
                continue
            met.add(string)
            if agree and not phrases.agree(run):
                continue
            forms = phrases.of(run)
            if _change([form.split() for form in forms], agree):
                met.update(forms)
                invented[string] = forms
                if len(invented) == most:
                    return invented
    return invented


def _names(phrases: PhraseForms) -> set[str]:
    """All that is known of any word."""
    forms = phrases.forms
    listed = (one for lemma in forms for form in forms.of(lemma) for one in forms.analyses(lemma, form))
    return set(chain.from_iterable(chain(phrases.analyses.features.values(), listed)))


def runs(many: int) -> list[tuple[int, int]]:
    """The beginnings and ends of all runs of two words and more in a sentence."""
    return [(begin, begin + size) for size in range(2, LONGEST + 1) for begin in range(many - size + 1)]


def _change(forms: Sequence[Sequence[str]], agree: bool) -> bool:
    if not forms:
        return False
    places = list(zip(*forms, strict=True))
    return all(len(set(place)) > 1 for place in (places if agree else places[-1:]))


STREAM = 3  # its random numbers are others than those of the evidence's data
MOST_SENTENCES = 20_000  # whose phrases are looked for
MOST_FREQUENT = 0.01  # of all forms together, as a share: more frequent lemmas are function words
CLOSED = FUNCTION_WORDS | {"POS:PUNCT", "POS:SYM"}


@dataclass(frozen=True)
class Marks:
    """Of a group: at the first token of its place and at the others, and at any token that is not its place."""

    first: int
    others: int
    anywhere: int


class InventedGroups:
    """Groups by the words and phrases of the target; all made at the beginning: processes that read have copies."""

    def __init__(
        self, prior: Prior, forms: WordForms, many: int, target: Callable[[int], np.ndarray], seed: int
    ) -> None:
        """many, target: how many sentences say phrases, and the tokens of one by its number."""
        self.table = evidence_table(prior)
        groups = TermGroups(self.table)
        self.group_of: dict[str, int] = {}  # of every word and phrase of the target
        self.words_of: dict[int, frozenset[str]] = {}  # all words, or phrases, of a group
        self.marks: dict[int, Marks] = {}
        shares = target_shares(prior)
        for lemma in forms:
            self._add(lemma, forms, shares, groups)
        drawn = np.random.default_rng((seed, STREAM)).permutation(many)[:MOST_SENTENCES]
        sentences = (self.words(target(int(number)))[0] for number in drawn)
        self._add_phrases(sentences, phrase_forms(prior, forms), groups)

    def words(self, target: np.ndarray) -> tuple[list[str], list[tuple[int, int]]]:
        """The words of a target, "" for none, and where each begins and ends."""
        spans = self.table.target_words.spans(target)
        return [self.table.target_words.word(target[begin:end]) or "" for begin, end in spans], spans

    def _add(self, lemma: str, forms: WordForms, shares: Mapping[str, float], groups: TermGroups) -> None:
        single = (one for one in forms.of(lemma).items() if len(one[0].split()) == 1)
        features_of = dict(sorted(single, key=lambda one: one[0] not in shares))  # a group has no room for all
        frequent_forms = [form for form in features_of if form in shares][:MOST_FORMS]
        frequent = math.fsum(shares[form] for form in frequent_forms) > MOST_FREQUENT
        if len(features_of) < 2 or not frequent_forms or not any(map(str.isalpha, lemma)) or frequent:
            return
        if any(CLOSED & set(features) for features in features_of.values()):
            return
        group = groups.number(lemma, features_of, True)
        self.group_of.update(dict.fromkeys(frequent_forms, group))
        self.words_of[group] = frozenset(list(features_of)[:MOST_FORMS])
        self._mark(group)

    def _add_phrases(self, sentences: Iterable[Sequence[str]], phrases: PhraseForms, groups: TermGroups) -> None:
        for lemma, forms in invented_phrases(sentences, phrases).items():
            group = groups.number(lemma, forms, True)
            self.words_of[group] = frozenset(list(forms)[:MOST_FORMS])
            self.group_of.update(dict.fromkeys(self.words_of[group], group))
            self._mark(group)

    def _mark(self, group: int) -> None:
        uses = Use(group, True, True), Use(group, False, True), Use(group, True, False)
        self.marks[group] = Marks(*(self.table.groups.mark([use]) for use in uses))
