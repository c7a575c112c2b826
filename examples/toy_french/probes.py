"""Held-out questions to a trained model: is the right word more probable than the wrong one after this prefix?

* ``agreement``: two forms of one adjective or verb, both unseen in training, that differ in gender or in number, with
nouns of the wrong gender or number in between. ``distance`` counts the words between the noun and the form that agrees
with it. Every gender and number is right equally often.
* ``number`` and ``place`` (paper §3): a number and a place, neither ever seen in training as a price or as the goal of
a travel; about equally frequent in training elsewhere, or both unseen there. ``distance`` counts the words between the
word that needs the answer (the price, the verb) and the answer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from toy_french import clauses, ordinary
from toy_french.phrases import Speaker
from toy_french.stock import Stock
from toy_french.trees import Node, in_order, tokens
from toy_french.words import AGREEMENT_CELLS, Cell, Lexeme, Word

PER_CONTRAST_AND_DEPTH = 15  # agreement probes for each right cell, contrast and depth of modification
PER_PAIR = 2  # prefixes for each pair of a number and a place
_CUES = {*ordinary.PRICES_MASC, "coûter", "payer", *ordinary.TRAVELLING}


@dataclass(frozen=True)
class Probe:
    kind: str  # "agreement", "number" or "place"
    prefix: str
    right: str
    wrong: str
    distance: int


def make_probes(stock: Stock, rng: Random, counts: Mapping[str, int]) -> list[Probe]:
    """Generate probes. `counts`: number of occurrences of each form in the training text."""
    speaker = Speaker(stock, rng, unseen=0.0)
    return [*_agreement_probes(speaker), *_number_and_place_probes(speaker, counts)]


def _probe(kind: str, root: Node, target: Word, cue: Node, wrong: str) -> Probe:
    nodes = in_order(root)
    place = next(index for index, node in enumerate(nodes) if node.word is target)
    forms = [token.word.form for token in tokens(root)]
    return Probe(kind, " ".join(forms[:place]), target.form, wrong, place - nodes.index(cue) - 1)


def _agreement_probes(speaker: Speaker) -> Iterator[Probe]:
    seen: set[tuple[str, str]] = set()
    for right in AGREEMENT_CELLS:
        gender, number = right
        for wrong in (
            ("Masc" if gender == "Fem" else "Fem", number),
            (gender, "Plur" if number == "Sing" else "Sing"),
        ):
            for depth in range(4):
                made = 0
                while made < PER_CONTRAST_AND_DEPTH:
                    probe = _agreement_probe(speaker, right, wrong, depth)
                    if (probe.prefix, probe.right) not in seen:
                        seen.add((probe.prefix, probe.right))
                        made += 1
                        yield probe


def _agreement_probe(speaker: Speaker, right: Cell, wrong: Cell, depth: int) -> Probe:
    preceding_object = depth > 0 and speaker.chance(0.3)
    table = speaker.stock.unseen_participles
    if not preceding_object and speaker.chance(0.5):
        table = speaker.stock.unseen_adjectives
    lexeme: Lexeme = speaker.rng.choice([lexeme for lexeme in table[right] if lexeme in table[wrong]])
    target = lexeme.forms[right]
    noun = speaker.noun_phrase("nsubj", "things", right)
    if preceding_object:  # les lettres que le voisin a fermées
        other = speaker.noun_phrase("nsubj", "persons", wrong)
        speaker.modify(other, depth - 1, wrong)
        noun.right.append(speaker.preceded(other, target))
        root = noun
    else:
        speaker.modify(noun, depth, wrong)
        root = clauses.state(speaker, noun, target)
    return _probe("agreement", root, target, noun, lexeme.forms[wrong].form)


def _number_and_place_probes(speaker: Speaker, counts: Mapping[str, int]) -> Iterator[Probe]:
    def equally_rare(words: list[Word]) -> list[Word]:
        return sorted(words, key=lambda word: -counts.get(word.form, 0))

    numbers, places = speaker.stock.numbers, speaker.stock.places
    pairs = [
        *zip(equally_rare(numbers.elsewhere), equally_rare(places.elsewhere), strict=True),
        *zip(numbers.nowhere, places.nowhere, strict=True),
    ]
    for kind in ("number", "place"):
        for number, place in pairs:
            for _ in range(PER_PAIR):
                if kind == "number":
                    root, right, wrong = clauses.price(speaker, number), number, place
                else:
                    root, right, wrong = clauses.travel(speaker, place), place, number
                cue = next(node for node in in_order(root) if node.word.lemma in _CUES)
                yield _probe(kind, root, right, cue, wrong.form)
