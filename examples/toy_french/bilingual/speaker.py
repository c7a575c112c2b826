"""A Speaker of sentences for both languages.

It has unlimited numbers, capitalised names, and only pronouns whose translation follows from the text (not *tu*, which
is *you* like *vous*; not *elles*, which is *they* like *ils*).
"""

from collections.abc import Sequence
from random import Random

from toy_french.bilingual import evidence
from toy_french.bilingual.glossary import MONTHS, NUMBER_WORDS
from toy_french.bilingual.stock import BilingualStock, Names
from toy_french.phrases import Speaker
from toy_french.stock import number
from toy_french.trees import Node
from toy_french.words import Word, feats

AMBIGUOUS_PRONOUNS = ("tu", "elles")
NAMED = 0.15  # share of the persons that have a name, on top of those of the other corpus
MONTH_WORDS = tuple(Word(month, month, "NOUN", feats("Gender=Masc", "Number=Sing")) for month in MONTHS)
IN_WORDS = 0.15  # share of the small numbers that are written in letters


class BilingualSpeaker(Speaker):
    """`unseen` is the probability of a withheld form, `unseen_evidence` that of a withheld number, code or name."""

    def __init__(self, stock: BilingualStock, rng: Random, unseen: float, unseen_evidence: float) -> None:
        super().__init__(stock.french, rng, unseen)
        self.unseen_evidence = unseen_evidence
        self._persons = stock.persons
        self._places = stock.places

    def pronoun(self, candidates: Sequence[Word]) -> Word:
        return super().pronoun([word for word in candidates if word.form not in AMBIGUOUS_PRONOUNS])

    def subject(self, deprel: str, kind: str = "persons", gendered: bool = False) -> Node:
        if kind == "persons" and self.chance(NAMED):
            return Node(self.name(), deprel)
        return super().subject(deprel, kind, gendered)

    def name(self) -> Word:
        return self._drawn_name(self._persons)

    def goal(self) -> Word:
        return self._drawn_name(self._places)

    def other_place(self) -> Word:
        return self._drawn_name(self._places)

    def price_number(self) -> Word:
        return self.figure(evidence.price)

    def other_number(self) -> Word:
        if self.chance(IN_WORDS):
            return number(self.rng.choice(list(NUMBER_WORDS)))
        return self.figure(evidence.whole)

    def figure(self, make: evidence.Maker) -> Word:
        """Return a number or time of that kind."""
        form = evidence.drawn(self.rng, make, self.chance(self.unseen_evidence))
        return Word(form, form, "NUM", feats("NumForm=Digit", "NumType=Card"))

    def code(self) -> Word:
        form = evidence.drawn(self.rng, evidence.code, self.chance(self.unseen_evidence))
        return Word(form, form, "X")

    def month(self) -> Word:
        return self.rng.choice(MONTH_WORDS)

    def _drawn_name(self, names: Names) -> Word:
        if self.chance(self.unseen_evidence):
            return self.rng.choice(names.unseen)
        return names.open.draw(self.rng)
