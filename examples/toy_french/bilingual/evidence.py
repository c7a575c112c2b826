"""The words that a translator copies or maps: numbers, times, codes, names, months.

One rule finds them in the English text: *a token with a digit in it, or with a capital first letter*; no other token
has either. Their French form follows from the English one alone, and is one token:

| | English | French | |
|---|---|---|---|
| numbers, years | 37, 1987 | 37, 1987 | copied |
| thousands, decimals | 1,250  12.50 | 1.250  12,50 | comma and point change places |
| times | 8:30 | 8h30 | |
| codes | QX-417 | QX-417 | copied |
| names | Marie, Grenoble, London | Marie, Grenoble, Londres | copied, save for exonyms |
| months | July | juillet | |

French typography writes `1 250` with a no-break space; fairseq splits at any Unicode space, so a point stands there, as
on Belgian price tags.

Kept from training: every number, time and code whose digits form a multiple of three, every other name. A form and its
translation have the same digits, so what is unseen is so in both languages.
"""

from collections.abc import Callable
from random import Random

from toy_french.bilingual.glossary import EXONYMS, MONTHS
from toy_french.words import Word

Maker = Callable[[Random], str]  # draws a French form of one kind

KINDS = {"NUM": "number", "X": "code", "PROPN": "name", "NOUN": "month"}  # by UPOS of the French word
_CHANGE_PLACES = str.maketrans(",.", ".,")
_CODE_LETTERS = "ABCDEFGHJKLMNPQRSTVWXZ"


def is_evidence(token: str) -> bool:
    """Apply the rule of the module's docstring; also true of a French token, except for months."""
    return token[:1].isupper() or any(character.isdigit() for character in token)


def english_evidence(word: Word) -> str:
    """Return the English form of a French number, code, name or month."""
    if word.upos == "NUM":
        return word.form.replace("h", ":").translate(_CHANGE_PLACES)
    return MONTHS.get(word.form) or EXONYMS.get(word.form, word.form)


def _kept_from_training(form: str) -> bool:
    return int("".join(character for character in form if character.isdigit())) % 3 == 0


def drawn(rng: Random, make: Maker, unseen: bool) -> str:
    """Return a form of one kind, withheld from training or not."""
    while _kept_from_training(form := make(rng)) != unseen:
        pass
    return form


# -- French forms ---------------------------------------------------------------------------------------


def whole(rng: Random) -> str:
    return str(rng.randint(2, 999))


def thousands(rng: Random) -> str:
    return f"{rng.randint(1001, 199_999):,}".replace(",", ".")


def price(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.4:
        return whole(rng)
    return thousands(rng) if kind < 0.7 else f"{rng.randint(1, 99)},{rng.randrange(5, 100, 5):02}"


def weight(rng: Random) -> str:
    return f"{rng.randint(1, 40)},{rng.randint(1, 9)}"


def year(rng: Random) -> str:
    return str(rng.randint(1850, 2020))


def day(rng: Random) -> str:
    return str(rng.randint(2, 28))


def time(rng: Random) -> str:
    return f"{rng.randint(1, 23)}h{rng.randrange(0, 60, 5):02}"


def code(rng: Random) -> str:
    letters = "".join(rng.choice(_CODE_LETTERS) for _ in range(rng.randint(1, 2)))
    return f"{letters}{rng.choice(('', '-'))}{rng.randint(10, 9999)}"
