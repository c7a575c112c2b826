"""Choose words, and build phrases that agree: noun phrases, their modifiers, verbs with their subjects."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from toy_french.closed import (
    AVOIR,
    DEGREE,
    DETERMINERS,
    FREQUENCY,
    NOT_FIRST,
    NOT_SECOND,
    OF,
    PLACED,
    SPEAKER_PRONOUNS,
    THIRD_PRONOUNS,
    WHO,
    WHOM,
)
from toy_french.stock import Split, Stock
from toy_french.trees import Node
from toy_french.words import AGREEMENT_CELLS, Cell, Lexeme, Word

T = TypeVar("T")

THIRD_ONLY = tuple(THIRD_PRONOUNS[cell] for cell in AGREEMENT_CELLS)
ELSEWHERE = 0.2  # share of withheld numbers and places where training may show them


def agreement(word: Word) -> Cell:
    return word.feature("Gender"), word.feature("Number") or "Sing"


class Speaker:
    """Generates words and phrases. `unseen` is the probability of a withheld form (0 for the training text)."""

    def __init__(self, stock: Stock, rng: Random, unseen: float) -> None:
        self.stock = stock
        self.rng = rng
        self.unseen = unseen

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # -- words --------------------------------------------------------------------------------------

    def adjective(self, cell: Cell) -> Word:
        if self.chance(self.unseen):
            return self.rng.choice(self.stock.unseen_adjectives[cell]).forms[cell]
        while (word := self.stock.adjectives.draw(self.rng).forms[cell]).form in self.stock.unseen_forms:
            pass
        return word

    def participle(self, cell: Cell) -> Word:
        if self.chance(self.unseen):
            return self.rng.choice(self.stock.unseen_participles[cell]).forms[cell]
        while (word := self.verb("transitive").forms[cell]).form in self.stock.unseen_forms:
            pass
        return word

    def verb(self, kind: str) -> Lexeme:
        return self.stock.verbs[kind].draw(self.rng)

    def name(self) -> Word:
        return self.stock.names.draw(self.rng)

    def pronoun(self, candidates: Sequence[Word]) -> Word:
        return self.rng.choice(candidates)

    def price_number(self) -> Word:
        return self._withheld_or_open(self.stock.numbers)

    def other_number(self) -> Word:
        return self._elsewhere_or_open(self.stock.numbers)

    def goal(self) -> Word:
        return self._withheld_or_open(self.stock.places)

    def other_place(self) -> Word:
        return self._elsewhere_or_open(self.stock.places)

    def _withheld_or_open(self, split: Split[Word]) -> Word:
        return self.rng.choice(split.withheld) if self.chance(self.unseen) else split.open.draw(self.rng)

    def _elsewhere_or_open(self, split: Split[Word]) -> Word:
        return self.rng.choice(split.elsewhere) if self.chance(ELSEWHERE) else split.open.draw(self.rng)

    # -- noun phrases -------------------------------------------------------------------------------

    def noun(self, kind: str, cell: Cell) -> Word:
        return self.stock.nouns[kind, cell[0]].draw(self.rng).forms[cell]

    def cell(self) -> Cell:
        return self.rng.choice(AGREEMENT_CELLS)

    def noun_phrase(self, deprel: str, kind: str, cell: Cell, *cases: Word) -> Node:
        """Return determiner, noun, perhaps adjectives. `cases` are the prepositions before it."""
        return self.phrase_of(self.noun(kind, cell), deprel, *cases)

    def phrase_of(self, noun: Word, deprel: str, *cases: Word) -> Node:
        cell = agreement(noun)
        kinds = ["le", "le", "le", "un", "ce", "notre", "leur"]
        if cases and cases[-1].form in ("de", "à"):  # no "de les", no "de des"
            kinds = ["ce", "notre", "leur"]
            kinds += ["un"] * (cell[1] == "Sing") + ["le"] * 3 * (cell == ("Fem", "Sing"))
        kind = self.rng.choice(kinds)
        node = Node(noun, deprel, [Node(case, "case") for case in cases])
        node.left.append(Node(DETERMINERS[kind][cell], "det"))
        if self.chance(0.1) and (kind, cell[1]) != ("un", "Plur"):
            node.left.append(Node(self.stock.early_adjectives.draw(self.rng).forms[cell], "amod"))
        if self.chance(0.2):
            node.right.append(Node(self.adjective(cell), "amod"))
        return node

    def modify(self, noun: Node, depth: int, attractor: Cell | None) -> None:
        """Put words between a noun and the word that agrees with it: 1 a preposition, 2 a relative, 3 both, nested.

        The nouns among them agree in `attractor` (any cell if None).
        """
        if depth == 1:
            preposition = OF if self.chance(0.5) else self.rng.choice(PLACED)
            cell = attractor or self.cell()
            noun.right.append(
                self.noun_phrase("nmod", self.rng.choice(("persons", "things")), cell, preposition)
            )
        elif depth > 1:
            noun.right.append(self._relative(agreement(noun.word), attractor, nested=depth == 3))

    def _relative(self, cell: Cell, attractor: Cell | None, nested: bool) -> Node:
        inner = attractor or self.cell()
        if self.chance(0.35):  # qui regardent le voisin
            _, number = cell
            verb = Node(
                self.verb("transitive").forms[self.tense(), "3", number], "acl:relcl", [Node(WHO, "nsubj")]
            )
            other = self.noun_phrase("obj", "things", inner)
            verb.right.append(other)
        else:  # que le voisin regarde; que le voisin a fermées
            if attractor is None and self.chance(0.3):
                other = Node(self.pronoun((*SPEAKER_PRONOUNS, *THIRD_PRONOUNS.values())), "nsubj")
            else:
                other = self.noun_phrase("nsubj", "persons", inner)
            if self.chance(0.4):
                verb = self.preceded(other, self.participle(cell))
            else:
                verb = Node(
                    self.finite(self.verb("transitive"), other.word), "acl:relcl", [Node(WHOM, "obj"), other]
                )
        if nested and other.word.upos == "NOUN":
            self.modify(other, 1, attractor)
        return verb

    def preceded(self, subject: Node, participle: Word) -> Node:
        """Return a relative whose participle agrees with the noun before *que*: les lettres que le roi a fermées."""
        node = self.compound(subject, participle, AVOIR, "aux:tense", "acl:relcl")
        node.left.insert(0, Node(WHOM, "obj"))
        return node

    # -- verbs and their subjects -------------------------------------------------------------------

    def subject(self, deprel: str, kind: str = "persons", gendered: bool = False) -> Node:
        """Return a noun phrase, a name or a pronoun; with `gendered`, one that shows its gender."""
        draw = self.rng.random()
        if draw < 0.12 and kind == "persons":
            return Node(self.name(), deprel)
        if draw < 0.28:
            return Node(self.pronoun(THIRD_ONLY), deprel)
        if draw < 0.36 and not gendered:
            return Node(self.pronoun(SPEAKER_PRONOUNS), deprel)
        node = self.noun_phrase(deprel, kind, self.cell())
        self.modify(node, self.rng.choices((0, 1, 2, 3), (50, 25, 18, 7))[0], None)
        return node

    def tense(self) -> str:
        return self.rng.choices(("Pres", "Imp", "Fut"), (5, 3, 2))[0]

    def finite(self, verb: Lexeme, subject: Word, tense: str | None = None) -> Word:
        person = subject.feature("Person") or "3"
        return verb.forms[tense or self.tense(), person, agreement(subject)[1]]

    def simple(self, subject: Node, verb: Lexeme, deprel: str = "root") -> Node:
        """Return a subject and one finite verb: la voisine ne chante pas souvent."""
        node = Node(self.finite(verb, subject.word), deprel, [subject])
        if self.chance(0.06):
            node.left.append(Node(NOT_FIRST, "advmod"))
            node.right.append(Node(NOT_SECOND, "advmod"))
        if self.chance(0.2):
            node.right.append(self.frequency())
        return node

    def compound(self, subject: Node, word: Word, verb: Lexeme, relation: str, deprel: str = "root") -> Node:
        """Return a subject, an auxiliary or copula, and its complement: les maisons sont très souvent fermées."""
        tense = self.rng.choice(("Pres", "Imp")) if relation == "aux:tense" else None
        node = Node(word, deprel, [subject])
        negated = self.chance(0.06)
        if negated:
            node.left.append(Node(NOT_FIRST, "advmod"))
        node.left.append(Node(self.finite(verb, subject.word, tense), relation))
        if negated:
            node.left.append(Node(NOT_SECOND, "advmod"))
        if self.chance(0.3):
            node.left.append(self.frequency())
        elif word.upos == "ADJ" and self.chance(0.3):
            node.left.append(Node(self.rng.choice(DEGREE), "advmod"))
        return node

    def frequency(self) -> Node:
        degree = [Node(self.rng.choice(DEGREE[:3]), "advmod")] if self.chance(0.3) else []
        return Node(self.rng.choice(FREQUENCY[:2] if degree else FREQUENCY), "advmod", degree)
