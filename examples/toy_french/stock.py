"""All words of the language, their frequencies, and the forms that are withheld from the training text.

Withheld from training (the purpose of the whole corpus):

- agreement forms: for some adjectives and verbs all four adjective or participle forms, for others the feminine, the
  masculine, the singular or the plural pair. Forms are withheld in pairs, so that a right form and its wrong neighbour
  are equally unseen;
- numbers as a price, and places as the goal of a travel: half of them occur in training elsewhere ("la page 37", "la
  gare de grenoble"), the other half nowhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

from toy_french import formation, ordinary
from toy_french.closed import ALLER, closed_words
from toy_french.words import (
    AGREEMENT_CELLS,
    Cell,
    Lexeme,
    Word,
    adjective,
    feats,
    noun,
    verb,
)

T = TypeVar("T")

INVENTED = {"persons": 60, "things": 170, "adjectives": 260, "verbs": 90, "places": 110, "names": 20}
DIGIT_NUMBERS = 220
YEARS = range(1850, 2021)
WITHHELD_PLACES = WITHHELD_NUMBERS = 60  # half of them occur in training, in other contexts
FIRST_WITHHELD_RANK = 12  # the most frequent lexemes keep all their forms
# what is withheld from one lexeme, in turn down the ranks; None leaves a lexeme alone
WITHHELD_PATTERNS: tuple[tuple[Cell, ...] | None, ...] = (
    AGREEMENT_CELLS,
    None,
    tuple(cell for cell in AGREEMENT_CELLS if cell[0] == "Fem"),
    None,
    tuple(cell for cell in AGREEMENT_CELLS if cell[1] == "Plur"),
    None,
    tuple(cell for cell in AGREEMENT_CELLS if cell[0] == "Masc"),
    None,
    tuple(cell for cell in AGREEMENT_CELLS if cell[1] == "Sing"),
    None,
)


class Zipf(Generic[T]):
    """Samples item r (from 0) with a weight of 1 / (r + 3)."""

    def __init__(self, items: Sequence[T]) -> None:
        self.items = items
        self._cumulated = list(accumulate(1 / (rank + 3) for rank in range(len(items))))

    def draw(self, rng: Random) -> T:
        return rng.choices(self.items, cum_weights=self._cumulated)[0]


@dataclass(frozen=True)
class Split(Generic[T]):
    """A kind of word of which some are withheld from one context."""

    open: Zipf[T]  # may stand everywhere
    elsewhere: list[T]  # in training only outside that context
    nowhere: list[T]  # never in training

    @property
    def withheld(self) -> list[T]:
        return self.elsewhere + self.nowhere


@dataclass(frozen=True)
class Stock:
    nouns: dict[tuple[str, str], Zipf[Lexeme]]  # ("persons" | "things", Gender)
    early_adjectives: Zipf[Lexeme]
    adjectives: Zipf[Lexeme]
    verbs: dict[str, Zipf[Lexeme]]  # transitive, intransitive, liking, saying, travelling, living
    names: Zipf[Word]
    numbers: Split[Word]
    places: Split[Word]
    years: list[Word]
    special: dict[str, Lexeme]  # prices, currencies and other words that a construction asks for by name
    unseen_adjectives: dict[Cell, list[Lexeme]]  # cell -> lexemes that withhold this form
    unseen_participles: dict[Cell, list[Lexeme]]
    unseen_forms: frozenset[str]
    words: list[Word]  # every analysis of the language, sorted


def number(text: str) -> Word:
    form = "Digit" if text.isdigit() else "Word"
    return Word(text, text, "NUM", feats(f"NumForm={form}", "NumType=Card"))


def _place(name: str) -> Word:
    return Word(name, name, "PROPN", feats("NameType=Geo", "Number=Sing"))


def _names(lemmas: Sequence[str], gender: str) -> list[Word]:
    return [
        Word(name, name, "PROPN", feats(f"Gender={gender}", "NameType=Giv", "Number=Sing")) for name in lemmas
    ]


def _as_lexeme(lemma: str) -> Lexeme:
    return Lexeme(lemma, {(): Word(lemma, lemma, "X")})


def _split(first: Word, words: list[Word], withheld: int) -> Split[Word]:
    """Withhold every other word from the end of the list, and `first` (the paper's example)."""
    candidates = [word for word in reversed(words) if word != first]
    chosen = [first, *candidates[: 2 * (withheld - 1) : 2]]
    rest = [word for word in words if word not in chosen]
    return Split(Zipf(rest), chosen[: withheld // 2], chosen[withheld // 2 :])


def _withhold(lexemes: Sequence[Lexeme], ambiguous: set[str]) -> dict[Cell, list[Lexeme]]:
    withheld: dict[Cell, list[Lexeme]] = {cell: [] for cell in AGREEMENT_CELLS}
    turn = 0
    for lexeme in lexemes[FIRST_WITHHELD_RANK:]:
        forms = [lexeme.forms[cell].form for cell in AGREEMENT_CELLS]
        if len(set(forms)) < len(forms) or not ambiguous.isdisjoint(forms):
            continue
        for cell in WITHHELD_PATTERNS[turn % len(WITHHELD_PATTERNS)] or ():
            withheld[cell].append(lexeme)
        turn += 1
    return withheld


def make_stock(
    rng: Random, invented: Mapping[str, int] = INVENTED, more_special_masc: Sequence[str] = ()
) -> Stock:
    """Make the stock. `invented`: number of invented words per kind. `more_special_masc`: nouns of a construction."""
    nouns = {
        ("persons", "Masc"): [noun(lemma, "Masc") for lemma in ordinary.PERSONS_MASC],
        ("persons", "Fem"): [noun(lemma, "Fem") for lemma in ordinary.PERSONS_FEM],
        ("things", "Masc"): [noun(lemma, "Masc") for lemma in ordinary.THINGS_MASC],
        ("things", "Fem"): [noun(lemma, "Fem") for lemma in ordinary.THINGS_FEM],
    }
    special = {
        lemma: noun(lemma, "Masc")
        for lemma in (
            *ordinary.CURRENCIES,
            *ordinary.NUMBERED_MASC,
            *ordinary.PRICES_MASC,
            ordinary.YEARS_OF_AGE,
            *more_special_masc,
        )
    }
    special["prix"] = Lexeme("prix", {("Masc", "Sing"): Word("prix", "prix", "NOUN", "Gender=Masc")})
    special |= {
        lemma: noun(lemma, "Fem") for lemma in (*ordinary.NUMBERED_FEM, *ordinary.ROADS_FEM, ordinary.TOWN)
    }
    special |= {lemma: verb(lemma) for lemma in ("coûter", "payer")}
    early = [adjective(lemma) for lemma in ordinary.EARLY_ADJECTIVES]
    adjectives = [adjective(lemma) for lemma in ordinary.ADJECTIVES]
    verbs = {
        "transitive": [verb(lemma) for lemma in ordinary.TRANSITIVE],
        "intransitive": [verb(lemma) for lemma in ordinary.INTRANSITIVE],
        "liking": [verb(lemma) for lemma in ordinary.LIKING],
        "saying": [verb(lemma) for lemma in ordinary.SAYING],
        "travelling": [ALLER if lemma == "aller" else verb(lemma) for lemma in ordinary.TRAVELLING],
        "living": [verb(lemma) for lemma in ordinary.LIVING],
    }
    numbers = [str(value) for value in rng.sample(range(2, 1000), DIGIT_NUMBERS) if value != 37]
    numbers += ["37", *ordinary.NUMBER_WORDS]
    rng.shuffle(numbers)

    used = {word.form for word in closed_words()} | set(numbers)
    used |= {*ordinary.PLACES, *ordinary.NAMES_FEM, *ordinary.NAMES_MASC}
    for group in (*nouns.values(), special.values(), early, adjectives, *verbs.values()):
        used |= {word.form for lexeme in group for word in lexeme.forms.values()}
    former = formation.Former(rng, used)
    for gender, endings in (("Fem", formation.NOUN_ENDINGS_FEM), ("Masc", formation.NOUN_ENDINGS_MASC)):
        for kind in ("persons", "things"):
            nouns[kind, gender] += former.lexemes(invented[kind], endings, partial(noun, gender=gender))
    adjectives += former.lexemes(invented["adjectives"], formation.ADJECTIVE_ENDINGS, adjective)
    verbs["transitive"] += former.lexemes(invented["verbs"], formation.VERB_ENDINGS, verb)
    places, names_fem, names_masc = (
        old + [lexeme.lemma for lexeme in former.lexemes(invented[kind], endings, _as_lexeme)]
        for kind, endings, old in (
            ("places", formation.PLACE_ENDINGS, ordinary.PLACES),
            ("names", formation.NAME_ENDINGS_FEM, ordinary.NAMES_FEM),
            ("names", formation.NAME_ENDINGS_MASC, ordinary.NAMES_MASC),
        )
    )
    names = _names(names_fem, "Fem") + _names(names_masc, "Masc")
    rng.shuffle(names)
    years = [number(str(year)) for year in YEARS]

    words = closed_words() + names + years
    words += [number(text) for text in numbers] + [_place(name) for name in places]
    for group in (*nouns.values(), special.values(), early, adjectives, *verbs.values()):
        words += [word for lexeme in group for word in lexeme.forms.values()]
    words = sorted(set(words))
    lemmas: dict[str, set[str]] = {}
    for word in words:
        lemmas.setdefault(word.form, set()).add(word.lemma + word.upos + word.feats)
    ambiguous = {form for form, analyses in lemmas.items() if len(analyses) > 1}
    unseen_adjectives = _withhold(adjectives, ambiguous)
    unseen_participles = _withhold(verbs["transitive"], ambiguous)
    unseen_forms = frozenset(
        lexeme.forms[cell].form
        for table in (unseen_adjectives, unseen_participles)
        for cell, lexemes in table.items()
        for lexeme in lexemes
    )
    return Stock(
        nouns={key: Zipf(lexemes) for key, lexemes in nouns.items()},
        early_adjectives=Zipf(early),
        adjectives=Zipf(adjectives),
        verbs={kind: Zipf(lexemes) for kind, lexemes in verbs.items()},
        names=Zipf(names),
        numbers=_split(number("37"), [number(text) for text in numbers], WITHHELD_NUMBERS),
        places=_split(_place("grenoble"), [_place(name) for name in places], WITHHELD_PLACES),
        years=years,
        special=special,
        unseen_adjectives=unseen_adjectives,
        unseen_participles=unseen_participles,
        unseen_forms=unseen_forms,
        words=words,
    )
