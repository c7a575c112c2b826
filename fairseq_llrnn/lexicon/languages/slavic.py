"""Analyses of Russian and Ukrainian words by pymorphy3, from the dictionaries that are packages of their own.

Its grammemes, which are those of OpenCorpora, are told in the names of Universal Dependencies. The dictionaries are
of Russian (OpenCorpora) and of Ukrainian (LanguageTool's, converted). UD's Ukrainian and Russian treebanks were
followed; where a dictionary says less than they do, so do the features. Which grammemes are left out is told, too: a
test looks whether each of the dictionaries' has its place in this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from fairseq_llrnn.lexicon.features import Lexicon, with_finite
from fairseq_llrnn.lexicon.languages.base import FeatureSource, Package, Spelling, register_source

PART_OF_SPEECH: dict[str, tuple[str, ...]] = {
    "NOUN": ("POS:NOUN",),
    "ADJF": ("POS:ADJ",),
    "ADJS": ("POS:ADJ", "Variant:Short"),
    # of an adjective or an adverb: Russian быстрее
    "COMP": ("POS:ADJ", "POS:ADV", "Degree:Cmp"),
    "VERB": ("POS:VERB",),
    "INFN": ("POS:VERB", "VerbForm:Inf"),
    "PRTF": ("POS:VERB", "VerbForm:Part"),
    "PRTS": ("POS:VERB", "Variant:Short", "VerbForm:Part"),
    "GRND": ("POS:VERB", "VerbForm:Conv"),
    "NUMR": ("POS:NUM",),
    "NUMB": ("POS:NUM",),
    "ADVB": ("POS:ADV",),
    "NPRO": ("POS:PRON",),
    "PRED": ("POS:ADV",),
    "PREP": ("POS:ADP",),
    "CONJ": ("POS:CCONJ", "POS:SCONJ"),
    "PRCL": ("POS:PART",),
    "INTJ": ("POS:INTJ",),
}

FEATURES: dict[str, tuple[str, ...]] = {
    "nomn": ("Case:Nom",),
    "gent": ("Case:Gen",),
    "gen1": ("Case:Gen",),
    "gen2": ("Case:Par",),
    "datv": ("Case:Dat",),
    "accs": ("Case:Acc",),
    "acc2": ("Case:Acc",),
    "ablt": ("Case:Ins",),
    "loct": ("Case:Loc",),
    "loc1": ("Case:Loc",),
    "loc2": ("Case:Loc",),
    "voct": ("Case:Voc",),
    # the case that a Ukrainian preposition governs
    "rv_gent": ("Case:Gen",),
    "rv_datv": ("Case:Dat",),
    "rv_accs": ("Case:Acc",),
    "rv_ablt": ("Case:Ins",),
    "rv_loct": ("Case:Loc",),
    "rv_nomn": ("Case:Nom",),
    "sing": ("Number:Sing",),
    "plur": ("Number:Plur",),
    "masc": ("Gender:Masc",),
    "femn": ("Gender:Fem",),
    "neut": ("Gender:Neut",),
    # both: Russian сирота
    "ms-f": ("Gender:Fem", "Gender:Masc"),
    "Ms-f": ("Gender:Fem", "Gender:Masc"),
    "anim": ("Animacy:Anim",),
    "inan": ("Animacy:Inan",),
    "perf": ("Aspect:Perf",),
    "impf": ("Aspect:Imp",),
    "1per": ("Person:1",),
    "2per": ("Person:2",),
    "3per": ("Person:3",),
    "Impe": ("Person:0",),
    "Impx": ("Person:0",),
    "past": ("Tense:Past",),
    "pres": ("Tense:Pres",),
    "futr": ("Tense:Fut",),
    "indc": ("Mood:Ind",),
    "impr": ("Mood:Imp",),
    "actv": ("Voice:Act",),
    "pssv": ("Voice:Pass",),
    "infn": ("VerbForm:Inf",),
    "compb": ("Degree:Pos",),
    "Cmp2": ("Degree:Cmp",),
    "Supr": ("Degree:Sup",),
    "Poss": ("Poss:Yes",),
    "Refl": ("Reflex:Yes",),
    "pers": ("PronType:Prs",),
    "Dmns": ("PronType:Dem",),
    "Ques": ("PronType:Int",),
    "Coll": ("NumType:Sets",),
    "Abbr": ("Abbr:Yes",),
    "Name": ("NameType:Giv",),
    "Surn": ("NameType:Sur",),
    "Patr": ("NameType:Pat",),
    "Geox": ("NameType:Geo",),
    "Orgn": ("NameType:Com",),
}

NAMES = frozenset(("Name", "Surn", "Patr", "Geox", "Orgn"))
# word class that a grammeme says more exactly than the first one
INSTEAD = {"Apro": "POS:DET", "Anum": "POS:ADJ", "coord": "POS:CCONJ", "subord": "POS:SCONJ"}
# of spelling, style and valency, of no use to syntax, or nothing that Universal Dependencies has
LEFT_OUT = frozenset(
    "Adjx Af-p Anph Arch Coun Dist Erro Fimp Fixd GNdr Hypo Infr Inmx Litr Pltm Prdx Prnt Qual Sgtm Slng Subx V-be "
    "V-bi V-ej V-en V-ey V-ie V-oy V-sh Vpre alt excl incl intr real tran v-u".split()
)


def grammemes_features(grammemes: Iterable[str]) -> tuple[str, ...]:
    """Feature names of one analysis: (NOUN, inan, plur, nomn) -> POS:NOUN, Animacy:Inan, Number:Plur, Case:Nom.

    A grammeme that has no place in the tables is left out, too.
    """
    told = list(grammemes)
    names = [name for grammeme in told for name in PART_OF_SPEECH.get(grammeme) or FEATURES.get(grammeme, ())]
    better = [INSTEAD[grammeme] for grammeme in told if grammeme in INSTEAD]
    if "NOUN" in told and not NAMES.isdisjoint(told):
        better = ["POS:PROPN"]
    if better:
        names = [*better, *(name for name in names if not name.startswith("POS:"))]
    if "Anum" in told:
        names.append("NumType:Ord")
    finite = with_finite(tuple(dict.fromkeys(names)))
    is_indicative = "VerbForm:Fin" in finite and any(name.startswith("Tense:") for name in finite)
    return (*finite, "Mood:Ind") if is_indicative and not any(map(_is_mood, finite)) else finite


def _is_mood(name: str) -> bool:
    return name.startswith("Mood:")


@register_source
class Pymorphy(FeatureSource):
    """All analyses of the words that a dictionary has; what pymorphy3 predicts of other words is not taken."""

    name = "pymorphy3"
    gives = "analyses"
    codes: ClassVar[Mapping[str, str]] = {"ru": "ru", "uk": "uk"}

    def packages(self, code: str) -> Sequence[Package]:
        return (Package("pymorphy3", "pymorphy3"), Package(f"pymorphy3_dicts_{code}", f"pymorphy3-dicts-{code}"))

    def licence(self, code: str) -> str:
        data = {
            "ru": "OpenCorpora (CC BY-SA 3.0)",
            "uk": "LanguageTool's dictionary; GPL 3 by the package's metadata, CC BY-SA 3.0 by its text",
        }
        return f"MIT; data: {data[code]}"

    def read(self, words: Sequence[str], code: str, spelling: Spelling) -> Lexicon:
        from pymorphy3 import MorphAnalyzer

        analyser, lexicon = MorphAnalyzer(lang=self.codes[code]), Lexicon()
        for word in words:
            if analyser.word_is_known(word):
                tags = map(str, analyser.tag(word))
                lexicon.add(word, [name for tag in tags for name in grammemes_features(_in_order(tag))])
        return lexicon


def _in_order(tag: str) -> list[str]:
    """`NOUN,inan plur,nomn` -> its grammemes."""
    return tag.replace(" ", ",").split(",")
