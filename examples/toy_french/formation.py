"""Invented words in the manner of French: a stem of syllables and a regular ending.

The endings determine gender, class and paradigm, so that every invented form has gold features. No invented form equals
another form of the language. Only ordinary words are ambiguous.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random

from toy_french.words import Lexeme, listed

_ONSETS = listed("b d f l m n p r s t v br cr dr fl gl gr pl pr tr ch j c g")
_VOWELS = {"c": "aou", "g": "aou", "": "aeiou"}  # c and g keep their hard sound, and with it their spelling
_LAST = listed("b d l m n p r s t v br dr nt rd st lm rn mp")

NOUN_ENDINGS_FEM = listed("ette ure ade esse ine ance ie ation ille")
NOUN_ENDINGS_MASC = listed("ier eur ement age eau oir on eron al ard")
ADJECTIVE_ENDINGS = listed("é if al el ien ain ard ant in u ique eux")
VERB_ENDINGS = listed("er er er ir")
PLACE_ENDINGS = listed("ville bourg mont gny val court ac ens")
NAME_ENDINGS_FEM = listed("elle ine ane")
NAME_ENDINGS_MASC = listed("ien in o")


def stem(rng: Random) -> str:
    """Return one or two syllables and a closing consonant."""
    text = ""
    for _ in range(rng.choice((1, 1, 2))):
        onset = rng.choice(_ONSETS)
        text += onset + rng.choice(_VOWELS.get(onset, _VOWELS[""]))
    return text + rng.choice(_LAST)


class Former:
    """Creates lexemes whose forms are all new to the language."""

    def __init__(self, rng: Random, used: Iterable[str]) -> None:
        self._rng = rng
        self._used = set(used)

    def lexemes(self, count: int, endings: Sequence[str], inflect: Callable[[str], Lexeme]) -> list[Lexeme]:
        made: list[Lexeme] = []
        while len(made) < count:
            lexeme = inflect(stem(self._rng) + self._rng.choice(endings))
            forms = {word.form for word in lexeme.forms.values()}
            if self._used.isdisjoint(forms):
                self._used |= forms
                made.append(lexeme)
        return made
