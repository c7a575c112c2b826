"""English words and their inflection, as far as the rendering needs it.

Cells: ``("Sing",)`` and ``("Plur",)`` for a noun, ``()`` for an adjective, and for a verb ``("Inf",)``, ``("Pres",)``
(third person singular), ``("Past",)`` and ``("Part",)`` (past participle). A form may have several tokens, separated by
spaces: "lady neighbour", "comes home".
"""

from toy_french.words import Lexeme, Word

_HISSING = ("s", "x", "z", "ch", "sh")


def _with_s(base: str) -> str:
    if base.endswith(_HISSING):
        return base + "es"
    return base[:-1] + "ies" if _ends_in_consonant_and_y(base) else base + "s"


def _with_ed(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    return base[:-1] + "ied" if _ends_in_consonant_and_y(base) else base + "ed"


def _ends_in_consonant_and_y(base: str) -> bool:
    return base.endswith("y") and base[-2:-1] not in tuple("aeiou")


def noun(singular: str) -> Lexeme:
    plural = singular[:-2] + "en" if singular.endswith("man") else _with_s(singular)
    return Lexeme(singular, {("Sing",): Word(singular, singular, "NOUN"), ("Plur",): Word(plural, singular, "NOUN")})


def adjective(form: str) -> Lexeme:
    return Lexeme(form, {(): Word(form, form, "ADJ")})


def verb(base: str, past: str = "", participle: str = "") -> Lexeme:
    """Return a verb, perhaps with a particle ("come home"); regular unless other forms are given."""
    first, *particle = base.split(" ")
    past = past or _with_ed(first)
    third = first + "es" if first == "go" else _with_s(first)
    forms = {("Inf",): first, ("Pres",): third, ("Past",): past, ("Part",): participle or past}
    return Lexeme(base, {cell: Word(" ".join((form, *particle)), base, "VERB") for cell, form in forms.items()})
