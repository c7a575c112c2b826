"""What Apertium's tags say, in the names of Universal Dependencies.

`<mf>` says both genders and `<sp>` both numbers, as the union over a type's analyses does.
"""

# The first tag of an analysis is its part of speech.
PART_OF_SPEECH: dict[str, tuple[str, ...]] = {
    "n": ("POS:NOUN",),
    "np": ("POS:PROPN",),
    "vblex": ("POS:VERB",),
    # The tags of "to be" and "to have" do not say whether the form is used as an auxiliary.
    "vbser": ("POS:AUX", "POS:VERB"),
    "vbhaver": ("POS:AUX", "POS:VERB"),
    "vaux": ("POS:AUX",),
    "vbaux": ("POS:AUX",),
    "vbmod": ("POS:VERB",),
    "adj": ("POS:ADJ",),
    "adv": ("POS:ADV",),
    "preadv": ("POS:ADV",),
    "det": ("POS:DET",),
    "predet": ("POS:DET",),
    "prn": ("POS:PRON",),
    "rel": ("POS:PRON", "PronType:Rel"),
    "pr": ("POS:ADP",),
    "cnjcoo": ("POS:CCONJ",),
    "cnjsub": ("POS:SCONJ",),
    "cnjadv": ("POS:SCONJ",),
    "num": ("POS:NUM",),
    "ij": ("POS:INTJ",),
    "sent": ("POS:PUNCT",),
    "cm": ("POS:PUNCT",),
    "lpar": ("POS:PUNCT",),
    "rpar": ("POS:PUNCT",),
    "lquot": ("POS:PUNCT",),
    "rquot": ("POS:PUNCT",),
    "guio": ("POS:PUNCT",),
    "apos": ("POS:PUNCT",),
}

FEATURES: dict[str, tuple[str, ...]] = {
    "m": ("Gender:Masc",),
    "f": ("Gender:Fem",),
    "mf": ("Gender:Fem", "Gender:Masc"),
    "nt": ("Gender:Neut",),
    "sg": ("Number:Sing",),
    "pl": ("Number:Plur",),
    "sp": ("Number:Plur", "Number:Sing"),
    "p1": ("Person:1",),
    "p2": ("Person:2",),
    "p3": ("Person:3",),
    "pri": ("Mood:Ind", "Tense:Pres", "VerbForm:Fin"),
    "pii": ("Mood:Ind", "Tense:Imp", "VerbForm:Fin"),
    "ifi": ("Mood:Ind", "Tense:Past", "VerbForm:Fin"),
    "fti": ("Mood:Ind", "Tense:Fut", "VerbForm:Fin"),
    "cni": ("Mood:Cnd", "Tense:Pres", "VerbForm:Fin"),
    "prs": ("Mood:Sub", "Tense:Pres", "VerbForm:Fin"),
    "pis": ("Mood:Sub", "Tense:Imp", "VerbForm:Fin"),
    "imp": ("Mood:Imp", "Tense:Pres", "VerbForm:Fin"),
    "inf": ("VerbForm:Inf",),
    "pp": ("Tense:Past", "VerbForm:Part"),
    "pprs": ("Tense:Pres", "VerbForm:Part"),
    "ger": ("VerbForm:Ger",),
    "def": ("Definite:Def",),
    "ind": ("Definite:Ind",),
    "dem": ("PronType:Dem",),
    "itg": ("PronType:Int",),
    "rel": ("PronType:Rel",),
    "pos": ("Poss:Yes",),
    "ref": ("Reflex:Yes",),
    "ord": ("NumType:Ord",),
    "sup": ("Degree:Sup",),
    "comp": ("Degree:Cmp",),
    "acr": ("Abbr:Yes",),
    "ant": ("NameType:Giv",),
    "cog": ("NameType:Sur",),
    "top": ("NameType:Geo",),
    "loc": ("NameType:Geo",),
    "org": ("NameType:Com",),
    "al": ("NameType:Oth",),
}


def tags_features(tags: list[str]) -> tuple[str, ...]:
    """Feature names of one analysis' tags, first tag first; what has no name here stays as `Apertium:tag`."""
    names: list[str] = []
    for position, tag in enumerate(tags):
        unknown = (f"Apertium:{tag}",)
        meaning = PART_OF_SPEECH.get(tag) if position == 0 else None
        names += meaning or FEATURES.get(tag, unknown)
    return tuple(names)
