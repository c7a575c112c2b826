"""Analyses of Russian and Ukrainian words by pymorphy3, from the dictionaries that are packages of their own.

Its grammemes (those of OpenCorpora) are mapped to Universal Dependencies. The dictionaries are Russian (OpenCorpora)
and Ukrainian (LanguageTool's, converted). The mapping follows UD's Ukrainian and Russian treebanks. If a dictionary is
less specific than they are, the features are, too. LEFT_OUT lists the other grammemes. A test checks that each grammeme
of the dictionaries has its place in this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from fairseq_llrnn.lexicon.features import by_tag, with_finite
from fairseq_llrnn.lexicon.languages.language_source import FeatureSource, Spelling, register_source

# COMP is of an adjective or an adverb: Russian быстрее
PART_OF_SPEECH = by_tag("""
    POS       NOUN=NOUN ADJF=ADJ ADJS=ADJ COMP=ADJ,ADV VERB=VERB INFN=VERB PRTF=VERB PRTS=VERB GRND=VERB NUMR=NUM
    POS       NUMB=NUM ADVB=ADV NPRO=PRON PRED=ADV PREP=ADP CONJ=CCONJ,SCONJ PRCL=PART INTJ=INTJ
    Degree    COMP=Cmp
    Variant   ADJS=Short PRTS=Short
    VerbForm  INFN=Inf PRTF=Part PRTS=Part GRND=Conv
""")

# ms-f is both genders: Russian сирота; rv_… is the case that a Ukrainian preposition governs
FEATURES = by_tag("""
    Abbr      Abbr=Yes
    Animacy   anim=Anim inan=Inan
    Aspect    perf=Perf impf=Imp
    Case      nomn=Nom gent=Gen gen1=Gen gen2=Par datv=Dat accs=Acc acc2=Acc ablt=Ins loct=Loc loc1=Loc loc2=Loc
    Case      voct=Voc rv_nomn=Nom rv_gent=Gen rv_datv=Dat rv_accs=Acc rv_ablt=Ins rv_loct=Loc
    Degree    compb=Pos Cmp2=Cmp Supr=Sup
    Gender    masc=Masc femn=Fem neut=Neut ms-f=Fem,Masc Ms-f=Fem,Masc
    Mood      indc=Ind impr=Imp
    NameType  Name=Giv Surn=Sur Patr=Pat Geox=Geo Orgn=Com
    NumType   Coll=Sets
    Number    sing=Sing plur=Plur
    Person    1per=1 2per=2 3per=3 Impe=0 Impx=0
    Poss      Poss=Yes
    PronType  pers=Prs Dmns=Dem Ques=Int
    Reflex    Refl=Yes
    Tense     past=Past pres=Pres futr=Fut
    VerbForm  infn=Inf
    Voice     actv=Act pssv=Pass
""")

NAMES = frozenset(("Name", "Surn", "Patr", "Geox", "Orgn"))
# grammemes that determine the word class more exactly than the first one
INSTEAD = {"Apro": "POS:DET", "Anum": "POS:ADJ", "coord": "POS:CCONJ", "subord": "POS:SCONJ"}
# spelling, style, valency and others that syntax does not need or that Universal Dependencies lacks
LEFT_OUT = frozenset(
    "Adjx Af-p Anph Arch Coun Dist Erro Fimp Fixd GNdr Hypo Infr Inmx Litr Pltm Prdx Prnt Qual Sgtm Slng Subx V-be "
    "V-bi V-ej V-en V-ey V-ie V-oy V-sh Vpre alt excl incl intr real tran v-u".split()
)


def grammemes_features(grammemes: Iterable[str]) -> tuple[str, ...]:
    """Return the features of one analysis: (NOUN, inan, plur, nomn) -> POS:NOUN, Animacy:Inan, Number:Plur, Case:Nom.

    A grammeme outside of the tables is ignored, too.
    """
    all_grammemes = list(grammemes)
    names = [name for grammeme in all_grammemes for name in PART_OF_SPEECH.get(grammeme) or FEATURES.get(grammeme, ())]
    word_class = [INSTEAD[grammeme] for grammeme in all_grammemes if grammeme in INSTEAD]
    if "NOUN" in all_grammemes and not NAMES.isdisjoint(all_grammemes):
        word_class = ["POS:PROPN"]
    if word_class:
        names = [*word_class, *(name for name in names if not name.startswith("POS:"))]
    if "Anum" in all_grammemes:
        names.append("NumType:Ord")
    finite = with_finite(tuple(dict.fromkeys(names)))
    is_indicative = "VerbForm:Fin" in finite and any(name.startswith("Tense:") for name in finite)
    has_mood = any(name.startswith("Mood:") for name in finite)
    return (*finite, "Mood:Ind") if is_indicative and not has_mood else finite


@register_source
class Pymorphy(FeatureSource):
    """All analyses of the words in a dictionary, without pymorphy3's predictions for other words."""

    name = "pymorphy3"
    gives = "analyses"
    codes: ClassVar[Mapping[str, str]] = {"ru": "ru", "uk": "uk"}

    def packages(self, code: str) -> Sequence[str]:
        return (self.name, f"pymorphy3-dicts-{code}")

    def licence(self, code: str) -> str:
        data = {
            "ru": "OpenCorpora (CC BY-SA 3.0)",
            "uk": "LanguageTool's dictionary; GPL 3 by the package's metadata, CC BY-SA 3.0 by its text",
        }
        return f"MIT; data: {data[code]}"

    def read(self, words: Sequence[str], code: str, spelling: Spelling) -> Iterator[tuple[str, Iterable[str]]]:
        from pymorphy3 import MorphAnalyzer

        analyser = MorphAnalyzer(lang=self.codes[code])
        for word in filter(analyser.word_is_known, words):
            for tag in map(str, analyser.tag(word)):
                yield word, grammemes_features(tag.replace(" ", ",").split(","))  # NOUN,inan plur,nomn
