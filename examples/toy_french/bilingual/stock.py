"""The words of both languages: the French stock with English meanings, and names divided into known and unseen ones.

The stock is smaller than that of the monolingual corpus, so that 6,000 pairs teach the meaning of nearly every word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random

from toy_french import stock as french
from toy_french.bilingual import english
from toy_french.bilingual.glossary import CLOSED, EXONYMS, Key, ordinary_glosses
from toy_french.formation import Former
from toy_french.words import AGREEMENT_CELLS, Cell, Lexeme, Word, listed

INVENTED = {"persons": 15, "things": 50, "adjectives": 90, "verbs": 30, "places": 180, "names": 85}
CODED_MASC = listed("train vol dossier")
CODE, KILO, INHABITANT = "code", "kilo", "habitant"

ENGLISH_NOUN_ENDINGS = listed("er ness let ship dom ock ard or")
ENGLISH_ADJECTIVE_ENDINGS = listed("y ish ous ful some ive ant")
ENGLISH_VERB_ENDINGS = listed("ate en ify le ish")


@dataclass(frozen=True)
class Names:
    open: french.Zipf[Word]
    unseen: list[Word]  # never in training

    @classmethod
    def divided(cls, words: Iterable[Word]) -> "Names":
        """Withhold every other name from training."""
        words = list(words)
        return cls(french.Zipf(words[::2]), words[1::2])


@dataclass(frozen=True)
class BilingualStock:
    french: french.Stock
    persons: Names
    places: Names
    glosses: Mapping[Key, Lexeme]  # UPOS and French lemma -> English lexeme


def make_bilingual_stock(rng: Random) -> BilingualStock:
    stock = french.make_stock(rng, INVENTED, (*CODED_MASC, CODE, KILO, INHABITANT))
    stock = replace(
        stock,
        unseen_adjectives=_known_otherwise(stock.unseen_adjectives),
        unseen_participles=_known_otherwise(stock.unseen_participles),
    )
    places = [*stock.places.open.items, *stock.places.withheld]
    exonyms = [replace(places[0], form=name, lemma=name) for name in EXONYMS]
    rng.shuffle(places)
    return BilingualStock(
        french=stock,
        persons=Names.divided(_capitalised(stock.names.items)),
        places=Names.divided([*exonyms, *_capitalised(places)]),
        glosses=_glosses(stock, rng),
    )


def _known_otherwise(unseen: Mapping[Cell, list[Lexeme]]) -> dict[Cell, list[Lexeme]]:
    """Return the lexemes without those that withhold all forms, whose English words training could not explain."""
    return {
        cell: [lexeme for lexeme in lexemes if any(lexeme not in unseen[other] for other in AGREEMENT_CELLS)]
        for cell, lexemes in unseen.items()
    }


def _capitalised(words: Iterable[Word]) -> list[Word]:
    return [replace(word, form=word.form.capitalize(), lemma=word.lemma.capitalize()) for word in words]


def _glosses(stock: french.Stock, rng: Random) -> Mapping[Key, Lexeme]:
    """Return the ordinary meanings, and an invented English word for each invented French one."""
    glosses = dict(ordinary_glosses())
    used = {*CLOSED.values(), *(word.form for entry in glosses.values() for word in entry.forms.values())}
    former = Former(rng, used)
    nouns = [lexeme for zipf in stock.nouns.values() for lexeme in zipf.items]
    for upos, lexemes, endings, inflect in (
        ("NOUN", nouns, ENGLISH_NOUN_ENDINGS, english.noun),
        ("ADJ", stock.adjectives.items, ENGLISH_ADJECTIVE_ENDINGS, english.adjective),
        ("VERB", stock.verbs["transitive"].items, ENGLISH_VERB_ENDINGS, english.verb),
    ):
        invented = [lexeme.lemma for lexeme in lexemes if (upos, lexeme.lemma) not in glosses]
        meanings = former.lexemes(len(invented), endings, inflect)
        glosses |= {(upos, lemma): meaning for lemma, meaning in zip(invented, meanings, strict=True)}
    return glosses
