"""The closed classes: determiners, pronouns, auxiliaries, adverbs, prepositions, and their forms before a vowel.

After *de* and *à* the grammar never uses *le* or *les*: French would contract them (du, aux), and a token of two words
would blur the gold analyses.
"""

from toy_french.words import (
    GENDERS,
    NUMBERS,
    Cell,
    Lexeme,
    Word,
    feats,
    finite,
    participles,
)


def _determiner(form: str, lemma: str, gender: str, number: str, *kind: str) -> Word:
    shown = [f"Gender={gender}"] if gender else []
    return Word(form, lemma, "DET", feats(*shown, f"Number={number}", *kind))


_DEFINITE = ("Definite=Def", "PronType=Art")
_INDEFINITE = ("Definite=Ind", "PronType=Art")
_DEMONSTRATIVE = ("PronType=Dem",)
_POSSESSIVE = ("Poss=Yes", "PronType=Prs")

# kind of determiner -> (Gender, Number) -> word; a form that serves both genders shows none
DETERMINERS: dict[str, dict[Cell, Word]] = {}
for _kind, (_masculine, _feminine, _plural, _features) in {
    "le": ("le", "la", "les", _DEFINITE),
    "un": ("un", "une", "des", _INDEFINITE),
    "ce": ("ce", "cette", "ces", _DEMONSTRATIVE),
    "notre": ("notre", "notre", "nos", _POSSESSIVE),
    "leur": ("leur", "leur", "leurs", _POSSESSIVE),
}.items():
    _shows = _masculine != _feminine
    DETERMINERS[_kind] = {
        ("Masc", "Sing"): _determiner(_masculine, _kind, "Masc" if _shows else "", "Sing", *_features),
        ("Fem", "Sing"): _determiner(_feminine, _kind, "Fem" if _shows else "", "Sing", *_features),
        ("Masc", "Plur"): _determiner(_plural, _kind, "", "Plur", *_features),
        ("Fem", "Plur"): _determiner(_plural, _kind, "", "Plur", *_features),
    }

_BEFORE_VOWEL = {
    "le": Word("l'", "le", "DET", feats("Number=Sing", *_DEFINITE)),
    "la": Word("l'", "le", "DET", feats("Number=Sing", *_DEFINITE)),
    "ce": Word("cet", "ce", "DET", feats("Gender=Masc", "Number=Sing", *_DEMONSTRATIVE)),
    "de": Word("d'", "de", "ADP"),
    "ne": Word("n'", "ne", "ADV", "Polarity=Neg"),
    "que": Word("qu'", "que", "PRON", "PronType=Rel"),
    "je": Word("j'", "je", "PRON", feats("Number=Sing", "Person=1", "PronType=Prs")),
}
THAT = Word("que", "que", "SCONJ")
_THAT_BEFORE_VOWEL = Word("qu'", "que", "SCONJ")


def before(word: Word, following: str) -> Word:
    """Return the form of `word` in front of `following`: le + arbre = l' arbre."""
    if following[0].lower() not in "aeiouéèêâîôœh":
        return word
    if word == THAT:
        return _THAT_BEFORE_VOWEL
    return _BEFORE_VOWEL.get(word.form, word)


SPEAKER_PRONOUNS = tuple(
    Word(form, form, "PRON", feats(f"Number={number}", f"Person={person}", "PronType=Prs"))
    for form, person, number in (
        ("je", "1", "Sing"),
        ("tu", "2", "Sing"),
        ("nous", "1", "Plur"),
        ("vous", "2", "Plur"),
    )
)
THIRD_PRONOUNS: dict[Cell, Word] = {
    (gender, number): Word(
        stem + ("s" if number == "Plur" else ""),
        "il",
        "PRON",
        feats(f"Gender={gender}", f"Number={number}", "Person=3", "PronType=Prs"),
    )
    for gender, stem in zip(GENDERS, ("elle", "il"), strict=True)
    for number in NUMBERS
}
WHO = Word("qui", "qui", "PRON", "PronType=Rel")
WHOM = Word("que", "que", "PRON", "PronType=Rel")

ETRE = Lexeme(
    "être",
    finite(("suis", "es", "est", "sommes", "êtes", "sont"), "Pres", "être", "AUX")
    | finite(("étais", "étais", "était", "étions", "étiez", "étaient"), "Imp", "être", "AUX")
    | finite(("serai", "seras", "sera", "serons", "serez", "seront"), "Fut", "être", "AUX"),
)
AVOIR = Lexeme(
    "avoir",
    finite(("ai", "as", "a", "avons", "avez", "ont"), "Pres", "avoir", "AUX")
    | finite(("avais", "avais", "avait", "avions", "aviez", "avaient"), "Imp", "avoir", "AUX")
    | finite(("aurai", "auras", "aura", "aurons", "aurez", "auront"), "Fut", "avoir", "AUX"),
)
HAVE = Lexeme(  # the same forms as a full verb: "elle a 37 ans"
    "avoir", {cell: Word(word.form, "avoir", "VERB", word.feats) for cell, word in AVOIR.forms.items()}
)
ALLER = Lexeme(
    "aller",
    finite(("vais", "vas", "va", "allons", "allez", "vont"), "Pres", "aller", "VERB")
    | finite(("allais", "allais", "allait", "allions", "alliez", "allaient"), "Imp", "aller", "VERB")
    | finite(("irai", "iras", "ira", "irons", "irez", "iront"), "Fut", "aller", "VERB")
    | participles("allé", "aller", "VERB")
    | {("Inf",): Word("aller", "aller", "VERB", "VerbForm=Inf")},
)

OF = Word("de", "de", "ADP")
TO = Word("à", "à", "ADP")
IN_YEAR = Word("en", "en", "ADP")
FOR = Word("pour", "pour", "ADP")
PLACED = tuple(
    Word(form, form, "ADP") for form in ("dans", "devant", "derrière", "sous", "sur", "avec", "sans", "vers")
)
AND = Word("et", "et", "CCONJ")
BUT = Word("mais", "mais", "CCONJ")
NOT_FIRST = Word("ne", "ne", "ADV", "Polarity=Neg")
NOT_SECOND = Word("pas", "pas", "ADV", "Polarity=Neg")
DEGREE = tuple(Word(form, form, "ADV") for form in ("très", "assez", "plutôt", "trop"))
FREQUENCY = tuple(
    Word(form, form, "ADV") for form in ("souvent", "rarement", "toujours", "parfois", "encore", "déjà")
)
OPENING = tuple(
    Word(form, form, "ADV") for form in ("ici", "alors", "enfin", "ensuite", "pourtant", "aujourd'hui")
)
COMMA = Word(",", ",", "PUNCT")
STOP = Word(".", ".", "PUNCT")


def closed_words() -> list[Word]:
    """Return every closed-class analysis, forms before a vowel included."""
    words = [word for kind in DETERMINERS.values() for word in kind.values()]
    words += _BEFORE_VOWEL.values()
    words += [THAT, _THAT_BEFORE_VOWEL, *SPEAKER_PRONOUNS, *THIRD_PRONOUNS.values(), WHO, WHOM]
    for lexeme in (ETRE, AVOIR, HAVE, ALLER):
        words += lexeme.forms.values()
    words += [OF, TO, IN_YEAR, FOR, *PLACED, AND, BUT, NOT_FIRST, NOT_SECOND]
    words += [*DEGREE, *FREQUENCY, *OPENING, COMMA, STOP]
    return words
