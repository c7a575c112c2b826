"""Words and their inflection: the morphology of the small French-like language.

A *cell* is the key of one form in a paradigm: ``("Fem", "Plur")`` for a noun, an adjective or a participle, ``("Pres",
"3", "Plur")`` for a finite verb, ``("Inf",)`` for an infinitive. Features are those of Universal Dependencies, stored
as the text of the FEATS column (sorted, ``Name=Value`` joined by ``|``, empty for none).
"""

from collections.abc import Mapping
from dataclasses import dataclass

Cell = tuple[str, ...]

GENDERS = ("Fem", "Masc")
NUMBERS = ("Sing", "Plur")
AGREEMENT_CELLS: tuple[Cell, ...] = tuple((gender, number) for gender in GENDERS for number in NUMBERS)
PERSONS: tuple[tuple[str, str], ...] = tuple((person, number) for number in NUMBERS for person in "123")

FINITE_ENDINGS = {
    "er": {
        "Pres": ("e", "es", "e", "ons", "ez", "ent"),
        "Imp": ("ais", "ais", "ait", "ions", "iez", "aient"),
        "Fut": ("erai", "eras", "era", "erons", "erez", "eront"),
    },
    "ir": {
        "Pres": ("is", "is", "it", "issons", "issez", "issent"),
        "Imp": ("issais", "issais", "issait", "issions", "issiez", "issaient"),
        "Fut": ("irai", "iras", "ira", "irons", "irez", "iront"),
    },
}
PARTICIPLE_ENDINGS = {"er": "é", "ir": "i"}

# The singular masculine ending of an adjective decides the other three forms; longest ending first.
# Order of the forms: feminine singular, feminine plural, masculine singular, masculine plural.
ADJECTIVE_ENDINGS: tuple[tuple[str, tuple[str, str, str, str]], ...] = (
    ("ien", ("ienne", "iennes", "ien", "iens")),
    ("eux", ("euse", "euses", "eux", "eux")),
    ("if", ("ive", "ives", "if", "ifs")),
    ("al", ("ale", "ales", "al", "aux")),
    ("el", ("elle", "elles", "el", "els")),
    ("e", ("e", "es", "e", "es")),
    ("", ("e", "es", "", "s")),
)


@dataclass(frozen=True, order=True)
class Word:
    """One analysis of a form."""

    form: str
    lemma: str
    upos: str
    feats: str = ""

    def feature(self, name: str) -> str:
        """Return the value of a feature, or the empty string."""
        for pair in self.feats.split("|"):
            if pair.startswith(name + "="):
                return pair[len(name) + 1 :]
        return ""


@dataclass(frozen=True)
class Lexeme:
    """A lemma with its whole paradigm."""

    lemma: str
    forms: Mapping[Cell, Word]


def listed(text: str) -> list[str]:
    return text.split()


def feats(*pairs: str) -> str:
    """Return the FEATS column of the given ``Name=Value`` pairs, in UD's order."""
    return "|".join(sorted(pairs, key=str.lower))


def noun(lemma: str, gender: str) -> Lexeme:
    if lemma.endswith("al"):
        plural = lemma[:-2] + "aux"
    elif lemma.endswith(("au", "eu")):
        plural = lemma + "x"
    else:
        plural = lemma + "s"
    return Lexeme(
        lemma,
        {
            (gender, number): Word(form, lemma, "NOUN", feats(f"Gender={gender}", f"Number={number}"))
            for number, form in (("Sing", lemma), ("Plur", plural))
        },
    )


def adjective(lemma: str) -> Lexeme:
    """Return an adjective. If a form serves both genders (or numbers), its features name neither."""
    ending, endings = next((end, forms) for end, forms in ADJECTIVE_ENDINGS if lemma.endswith(end))
    stem = lemma[: len(lemma) - len(ending)]
    forms = {cell: stem + end for cell, end in zip(AGREEMENT_CELLS, endings, strict=True)}
    words: dict[Cell, Word] = {}
    for (gender, number), form in forms.items():
        other_gender = "Masc" if gender == "Fem" else "Fem"
        other_number = "Plur" if number == "Sing" else "Sing"
        shown = []
        if forms[other_gender, number] != form:
            shown.append(f"Gender={gender}")
        if forms[gender, other_number] != form:
            shown.append(f"Number={number}")
        words[gender, number] = Word(form, lemma, "ADJ", feats(*shown))
    return Lexeme(lemma, words)


def participles(masculine: str, lemma: str, upos: str) -> dict[Cell, Word]:
    return {
        (gender, number): Word(
            masculine + ("e" if gender == "Fem" else "") + ("s" if number == "Plur" else ""),
            lemma,
            upos,
            feats(f"Gender={gender}", f"Number={number}", "Tense=Past", "VerbForm=Part"),
        )
        for gender, number in AGREEMENT_CELLS
    }


def finite(forms: tuple[str, ...], tense: str, lemma: str, upos: str) -> dict[Cell, Word]:
    """Return six forms, first person singular to third person plural."""
    return {
        (tense, person, number): Word(
            form,
            lemma,
            upos,
            feats("Mood=Ind", f"Number={number}", f"Person={person}", f"Tense={tense}", "VerbForm=Fin"),
        )
        for (person, number), form in zip(PERSONS, forms, strict=True)
    }


def verb(lemma: str) -> Lexeme:
    """Return a regular verb in -er (like fermer) or -ir (like finir)."""
    stem, group = lemma[:-2], lemma[-2:]
    forms: dict[Cell, Word] = {("Inf",): Word(lemma, lemma, "VERB", "VerbForm=Inf")}
    for tense, endings in FINITE_ENDINGS[group].items():
        forms |= finite(tuple(stem + ending for ending in endings), tense, lemma, "VERB")
    forms |= participles(stem + PARTICIPLE_ENDINGS[group], lemma, "VERB")
    return Lexeme(lemma, forms)
