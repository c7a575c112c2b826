"""Lemmas of words that no lexicon has, by the endings of those that one has.

A form becomes its lemma by another ending (`kabinách` → `kabina`: −ách +a), and forms with the same ending mostly by
the same one. Of all known pairs, every ending of the form, up to LONGEST letters, counts such a rule. A new word is
given the lemma of the rule that its longest known ending shows most often; a rule whose lemma is already known, of
other words, goes before all others, however short the ending, down to SURE letters. What a language changes at the
beginning of words (ge-, nej-) is left alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LONGEST = 6
SURE = 2  # letters of an ending that is believed where the lemma is known
LEAST = 2  # pairs that have to show a rule
SHORTEST_STEM = 3  # letters that form and lemma share
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
            stem = 0
            while stem < min(len(form), len(lemma)) and form[stem] == lemma[stem]:
                stem += 1
            if stem < SHORTEST_STEM:
                continue
            rule = form[stem:], lemma[stem:]
            for length in range(max(1, len(rule[0])), min(LONGEST, len(form)) + 1):
                counts[form[-length:]][rule] += 1
        ranked = {
            ending: tuple(sorted((rule for rule in found if found[rule] >= LEAST), key=lambda r: (-found[r], r)))
            for ending, found in counts.items()
        }
        return cls({ending: found for ending, found in ranked.items() if found}, frozenset(lemmas))

    def known_lemma(self, word: str) -> str | None:
        """The lemma, if it is known of other words."""
        for length in range(min(LONGEST, len(word)), SURE - 1, -1):
            for rule in self.rules.get(word[-length:], ()):
                lemma = _applied(rule, word)
                if lemma in self.lemmas and len(word) - len(rule[0]) >= SHORTEST_STEM:
                    return lemma
        return None

    def guess(self, word: str) -> str | None:
        """The lemma, known or not; None where no rule fits, or the word is no word of letters."""
        if not word.replace("-", "").isalpha():
            return None
        known = self.known_lemma(word)
        if known is not None:
            return known
        for length in range(min(LONGEST, len(word)), 0, -1):
            for rule in self.rules.get(word[-length:], ()):
                if len(word) - len(rule[0]) >= SHORTEST_STEM:
                    return _applied(rule, word)
        return None


def _applied(rule: Rule, word: str) -> str:
    return word[: len(word) - len(rule[0])] + rule[1]
