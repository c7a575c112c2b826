"""Constructions of the bilingual corpus only, with numbers and codes, and its mixture of all constructions."""

from collections.abc import Callable

from toy_french.bilingual import evidence
from toy_french.bilingual.speaker import BilingualSpeaker
from toy_french.bilingual.stock import CODE, CODED_MASC, INHABITANT, KILO
from toy_french.clauses import (
    action,
    finished,
    numbered,
    price,
    saying,
    state,
    town,
    travel,
)
from toy_french.closed import COMMA, DETERMINERS, ETRE, HAVE, IN_YEAR, OF, OPENING, TO
from toy_french.trees import Node
from toy_french.words import GENDERS, Cell, verb

WEIGH = verb("peser")


def counted(speaker: BilingualSpeaker) -> Node:
    """Ces 37 portes étroites sont fermées; elle ferme 37 portes."""
    kind = speaker.rng.choice(("persons", "things"))
    phrase = speaker.noun_phrase("nsubj", kind, (speaker.rng.choice(GENDERS), "Plur"))
    count = Node(speaker.other_number(), "nummod")
    replaced = phrase.left[0].word.lemma == "un"  # 37 portes, not: des 37 portes
    phrase.left[0 if replaced else 1 : 1] = [count]
    if speaker.chance(0.5):
        return state(speaker, phrase)
    phrase.deprel = "obj"
    root = speaker.simple(speaker.subject("nsubj"), speaker.verb("transitive"))
    root.right.append(phrase)
    return root


def coded(speaker: BilingualSpeaker) -> Node:
    """Le train QX-417 est vide; elle cherche le dossier QX-417; le code de la porte est QX-417."""
    code = Node(speaker.code(), "flat")
    draw = speaker.rng.random()
    if draw < 0.4:
        subject = speaker.phrase_of(speaker.stock.special[CODE].forms["Masc", "Sing"], "nsubj")
        subject.right.append(speaker.noun_phrase("nmod", "things", speaker.cell(), OF))
        return speaker.compound(subject, code.word, ETRE, "cop")
    noun = speaker.stock.special[speaker.rng.choice(CODED_MASC)].forms["Masc", "Sing"]
    phrase = speaker.phrase_of(noun, "nsubj")
    phrase.right = [code]
    if draw < 0.7:
        return state(speaker, phrase)
    phrase.deprel = "obj"
    root = speaker.simple(speaker.subject("nsubj"), speaker.verb("transitive"))
    root.right.append(phrase)
    return root


def measured(speaker: BilingualSpeaker) -> Node:
    """Ce panier pèse 2,5 kilos; Grenoble a 158.454 habitants. (The accent of pèse is one rule too many here.)"""
    if speaker.chance(0.5):
        subject, lexeme = speaker.noun_phrase("nsubj", "things", speaker.cell()), WEIGH
        unit, number = KILO, speaker.figure(evidence.weight)
    else:
        subject, lexeme = Node(speaker.other_place(), "nsubj"), HAVE
        unit, number = INHABITANT, speaker.figure(evidence.thousands)
    root = speaker.simple(subject, lexeme)
    plural: Cell = ("Masc", "Plur")
    root.right.append(Node(speaker.stock.special[unit].forms[plural], "obj", [Node(number, "nummod")]))
    return root


CLAUSES: dict[Callable[[BilingualSpeaker], Node], float] = {
    state: 22,
    action: 18,
    travel: 14,
    price: 12,
    town: 8,
    numbered: 8,
    counted: 8,
    coded: 8,
    measured: 8,
    saying: 4,
}


def _opening(speaker: BilingualSpeaker) -> list[Node]:
    """Mostly nothing; else: ensuite; en 1987; le 14 juillet 1987; à 8h30."""
    draw = speaker.rng.random()
    if draw < 0.08:
        first = Node(speaker.rng.choice(OPENING), "advmod")
    elif draw < 0.15:
        first = Node(speaker.figure(evidence.year), "obl", [Node(IN_YEAR, "case")])
    elif draw < 0.21:
        first = Node(speaker.month(), "obl")
        first.left = [Node(DETERMINERS["le"]["Masc", "Sing"], "det"), Node(speaker.figure(evidence.day), "nummod")]
        first.right = [Node(speaker.figure(evidence.year), "nummod")]
    elif draw < 0.27:
        first = Node(speaker.figure(evidence.time), "obl", [Node(TO, "case")])
    else:
        return []
    return [first, Node(COMMA, "punct")]


def sentence(speaker: BilingualSpeaker) -> Node:
    root = speaker.rng.choices(list(CLAUSES), list(CLAUSES.values()))[0](speaker)
    root.left[:0] = _opening(speaker)
    return finished(speaker, root)
