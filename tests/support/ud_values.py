"""The values of Universal Dependencies' features, to which tables of other schemas are held."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# the values of Universal Dependencies, version 2: https://universaldependencies.org/u/feat/index.html
UD_VALUES = {
    "Abbr": "Yes",
    "Animacy": "Anim Hum Inan Nhum",
    "Aspect": "Hab Imp Iter Perf Prog Prosp",
    "Case": "Abe Abl Abs Acc Add Ade All Ben Cau Cmp Cns Com Dat Del Dis Ela Equ Erg Ess Gen Ill Ine Ins Lat Loc Nom "
    "Par Per Sbe Sbl Spl Sub Sup Tem Ter Tra Voc",
    "Clusivity": "Ex In",
    "Definite": "Com Cons Def Ind Spec",
    "Degree": "Abs Aug Cmp Dim Equ Pos Sup",
    "Deixis": "Abv Bel Even Med Nvis Prox Remt",
    "Evident": "Fh Nfh",
    "Gender": "Com Fem Masc Neut",
    "Mood": "Adm Cnd Des Imp Ind Int Irr Jus Nec Opt Pot Prp Qot Sub",
    "NounClass": " ".join(f"Bantu{n}" for n in range(1, 24)),
    "NameType": "Com Geo Giv Nat Oth Pat Pro Prs Sur",
    "NounType": "Clf",
    "NumType": "Card Dist Frac Mult Ord Range Sets",
    "Number": "Coll Count Dual Grpa Grpl Inv Pauc Plur Ptan Sing Tri",
    "Person": "0 1 2 3 4",
    "Polarity": "Neg Pos",
    "Polite": "Elev Form Humb Infm",
    "Poss": "Yes",
    "PronType": "Art Dem Emp Exc Ind Int Neg Prs Rcp Rel Tot",
    "Reflex": "Yes",
    "Tense": "Fut Imp Past Pqp Pres",
    "Variant": "Short",
    "VerbForm": "Conv Fin Gdv Ger Inf Part Sup Vnoun",
    "Voice": "Act Antip Bfoc Cau Dir Inv Lfoc Mid Pass Rcp",
    "POS": "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X",
}


def unknown_values(table: Mapping[str, Iterable[str]]) -> list[str]:
    """What a table says that Universal Dependencies has not: `Case:Xyz`, and the tag that is said to be it."""
    return [
        f"{tag}: {name}"
        for tag, names in table.items()
        for name in names
        if name.partition(":")[2] not in UD_VALUES.get(re.sub(r"\[\w+\]$", "", name.partition(":")[0]), "").split()
    ]
