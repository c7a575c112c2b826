"""Whole clauses and sentences. Each function is one construction and returns the clause's root."""

from collections.abc import Callable

from toy_french import ordinary
from toy_french.closed import (
    AND,
    AVOIR,
    BUT,
    COMMA,
    ETRE,
    FOR,
    HAVE,
    IN_YEAR,
    OF,
    OPENING,
    PLACED,
    STOP,
    THAT,
    TO,
)
from toy_french.phrases import Speaker, agreement
from toy_french.trees import Node
from toy_french.words import Word


def state(speaker: Speaker, subject: Node | None = None, predicate: Word | None = None) -> Node:
    """Les maisons que le voisin regarde sont très souvent fermées."""
    if subject is None:
        kind = speaker.rng.choice(("persons", "things", "things"))
        subject = speaker.subject("nsubj", kind, gendered=True)
    if predicate is None:
        cell = agreement(subject.word)
        predicate = speaker.adjective(cell) if speaker.chance(0.6) else speaker.participle(cell)
    passive = predicate.upos == "VERB"
    if passive:
        subject.deprel = "nsubj:pass"
    return speaker.compound(subject, predicate, ETRE, "aux:pass" if passive else "cop")


def action(speaker: Speaker) -> Node:
    """Elle ferme (a fermé, aime fermer) la porte; elle chante dans le jardin."""
    subject = speaker.subject("nsubj")
    draw = speaker.rng.random()
    if draw < 0.45:
        root = verb = speaker.simple(subject, speaker.verb("transitive"))
    elif draw < 0.65:
        participle = speaker.participle(("Masc", "Sing"))
        root = verb = speaker.compound(subject, participle, AVOIR, "aux:tense")
    elif draw < 0.75:
        root = speaker.simple(subject, speaker.verb("liking"))
        verb = Node(speaker.verb("transitive").forms["Inf",], "xcomp")
        root.right.append(verb)
    else:
        root = speaker.simple(subject, speaker.verb("intransitive"))
        root.right.append(speaker.noun_phrase("obl", "things", speaker.cell(), speaker.rng.choice(PLACED)))
        return root
    thing = speaker.noun_phrase("obj", "things", speaker.cell())
    if speaker.chance(0.25):
        speaker.modify(thing, speaker.rng.choice((1, 1, 2)), None)
    verb.right.append(thing)
    return root


def travel(speaker: Speaker, place: Word | None = None) -> Node:
    """Elle est arrivée à Grenoble; nous rentrerons à cette ville."""
    verb = speaker.verb("travelling")
    if speaker.chance(0.6):
        subject = speaker.subject("nsubj", gendered=True)
        gender, number = agreement(subject.word)
        root = speaker.compound(subject, verb.forms[gender, number], ETRE, "aux:tense")
    else:
        root = speaker.simple(speaker.subject("nsubj"), verb)
    if place is None and speaker.chance(0.2):
        root.right.append(speaker.noun_phrase("obl", "things", ("Fem", "Sing"), TO))
    else:
        root.right.append(Node(place or speaker.goal(), "obl", [Node(TO, "case")]))
    return root


def price(speaker: Speaker, number: Word | None = None) -> Node:
    """Le prix était de 37 euros; cette robe coûtera 37 euros; il a payé 37 euros pour la robe."""
    currency = speaker.stock.special[speaker.rng.choice(ordinary.CURRENCIES)].forms["Masc", "Plur"]
    amount = Node(currency, "obj", [Node(number or speaker.price_number(), "nummod")])
    draw = speaker.rng.random()
    if draw < 0.5:
        noun = speaker.stock.special[speaker.rng.choice(ordinary.PRICES_MASC)].forms["Masc", "Sing"]
        subject = speaker.phrase_of(noun, "nsubj")
        if speaker.chance(0.4):
            subject.right.append(speaker.noun_phrase("nmod", "things", speaker.cell(), OF))
        root = speaker.compound(subject, currency, ETRE, "cop")
        root.left += [Node(OF, "case"), *amount.left]
        return root
    if draw < 0.8:
        subject = speaker.noun_phrase("nsubj", "things", speaker.cell())
        root = speaker.simple(subject, speaker.stock.special["coûter"])
        root.right.append(amount)
        return root
    payer = speaker.stock.special["payer"].forms["Masc", "Sing"]
    root = speaker.compound(speaker.subject("nsubj"), payer, AVOIR, "aux:tense")
    root.right.append(amount)
    if speaker.chance(0.5):
        root.right.append(speaker.noun_phrase("obl", "things", speaker.cell(), FOR))
    return root


def town(speaker: Speaker) -> Node:
    """Grenoble est une ville tranquille; la gare de Grenoble est très belle."""
    place = speaker.other_place()
    if speaker.chance(0.4):
        root = speaker.phrase_of(speaker.stock.special[ordinary.TOWN].forms["Fem", "Sing"], "root")
        cop = speaker.finite(ETRE, place)
        root.left = [Node(place, "nsubj"), Node(cop, "cop"), *root.left]
        return root
    road = speaker.stock.special[speaker.rng.choice(ordinary.ROADS_FEM)].forms["Fem", "Sing"]
    subject = speaker.phrase_of(road, "nsubj")
    subject.right.append(Node(place, "nmod", [Node(OF, "case")]))
    return state(speaker, subject)


def numbered(speaker: Speaker) -> Node:
    """Elle habite la chambre 37; la page 37 est très courte; Paul a 37 ans."""
    number = Node(speaker.other_number(), "nummod")
    draw = speaker.rng.random()
    if draw < 0.4:
        years = Node(speaker.stock.special[ordinary.YEARS_OF_AGE].forms["Masc", "Plur"], "obj", [number])
        root = speaker.simple(speaker.subject("nsubj"), HAVE)
        root.right.append(years)
        return root
    lemma = speaker.rng.choice((*ordinary.NUMBERED_FEM, *ordinary.NUMBERED_MASC))
    (noun, *_) = (word for cell, word in speaker.stock.special[lemma].forms.items() if cell[1] == "Sing")
    phrase = speaker.phrase_of(noun, "obj")
    phrase.right = [number]
    if draw < 0.7:
        root = speaker.simple(speaker.subject("nsubj"), speaker.verb("living"))
        root.right.append(phrase)
        return root
    phrase.deprel = "nsubj"
    return state(speaker, phrase)


def saying(speaker: Speaker) -> Node:
    """La voisine pense que les portes sont fermées."""
    root = speaker.simple(speaker.subject("nsubj"), speaker.verb("saying"))
    said = clause(speaker, (state, action, travel))
    said.deprel = "ccomp"
    said.left.insert(0, Node(THAT, "mark"))
    root.right.append(said)
    return root


CLAUSES: dict[Callable[[Speaker], Node], float] = {
    state: 32,
    action: 26,
    travel: 11,
    price: 12,
    town: 6,
    numbered: 8,
    saying: 5,
}


def clause(speaker: Speaker, kinds: tuple[Callable[[Speaker], Node], ...] = tuple(CLAUSES)) -> Node:
    return speaker.rng.choices(kinds, [CLAUSES[kind] for kind in kinds])[0](speaker)


def sentence(speaker: Speaker) -> Node:
    """Return a clause, perhaps with a time before it, perhaps joined to a second clause, and its full stop."""
    root = clause(speaker)
    draw = speaker.rng.random()
    if draw < 0.1:
        root.left[:0] = [Node(speaker.rng.choice(OPENING), "advmod"), Node(COMMA, "punct")]
    elif draw < 0.16:
        year = Node(speaker.rng.choice(speaker.stock.years), "obl", [Node(IN_YEAR, "case")])
        root.left[:0] = [year, Node(COMMA, "punct")]
    return finished(speaker, root)


def finished(speaker: Speaker, root: Node) -> Node:
    """Return the clause, perhaps joined to a second one, and the full stop."""
    if speaker.chance(0.1):
        second = clause(speaker, (state, action, travel))
        second.deprel = "conj"
        second.left.insert(0, Node(speaker.rng.choice((AND, BUT)), "cc"))
        root.right.append(second)
    root.right.append(Node(STOP, "punct"))
    return root
