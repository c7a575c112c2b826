"""Analyses of Turkish words by zeyrek (O. Bulat), a port of Zemberek: its dictionary and its word parser.

zeyrek's morphemes (those of Zemberek) are mapped to Universal Dependencies. An analysis is a list of morphemes, with
parts of speech among them (Verb, Able, Verb, PastPart, Adj, P1pl): each derivation begins a new word class. The last
class is the word's. Participles, verbal nouns and converbs are forms of verbs. The mapping follows UD's Turkish
treebanks (IMST, BOUN). LEFT_OUT lists derivational morphemes, which have no feature.

Only the parser of single words is used. zeyrek's `analyze` first splits a text into words, with data of NLTK that must
be downloaded. A word takes some milliseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from fairseq_llrnn.lexicon.casing import lower
from fairseq_llrnn.lexicon.features import by_tag, with_finite
from fairseq_llrnn.lexicon.languages.language_source import FeatureSource, Spelling, register_source

# Ques is the particle mi
PART_OF_SPEECH = by_tag("""
    POS       Noun=NOUN Verb=VERB Adj=ADJ Adv=ADV Pron=PRON Num=NUM Det=DET Postp=ADP Conj=CCONJ,SCONJ Interj=INTJ
    POS       Ques=AUX Dup=X Punc=PUNCT
    PronType  Ques=Int
""")
PARTICIPLES = by_tag("""
    Aspect    AorPart=Hab
    Evident   NarrPart=Nfh
    Tense     PastPart=Past NarrPart=Past FutPart=Fut
    VerbForm  PresPart=Part PastPart=Part NarrPart=Part FutPart=Part AorPart=Part
""")
VERBAL_NOUNS = frozenset(("Inf1", "Inf2", "Inf3"))
CONVERBS = frozenset(
    "AfterDoingSo AsIf AsLongAs ByDoingSo Adamantly SinceDoingSo When While WithoutBeingAbleToHaveDoneSo "
    "WithoutHavingDoneSo".split()
)
CASES = frozenset("Nom Acc Dat Abl Loc Gen Ins Equ".split())
FEATURES = by_tag("""
    Aspect    Prog1=Prog Prog2=Prog Aor=Hab
    Case      Nom=Nom Acc=Acc Dat=Dat Abl=Abl Loc=Loc Gen=Gen Ins=Ins Equ=Equ
    Evident   Past=Fh Narr=Nfh
    Mood      Able=Pot Unable=Pot Cond=Cnd Imp=Imp Opt=Opt Desr=Des Neces=Nec
    Number    A1sg=Sing A2sg=Sing A3sg=Sing A1pl=Plur A2pl=Plur A3pl=Plur
    Person    A1sg=1 A2sg=2 A3sg=3 A1pl=1 A2pl=2 A3pl=3
    Number[psor]  P1sg=Sing P2sg=Sing P3sg=Sing P1pl=Plur P2pl=Plur P3pl=Plur
    Person[psor]  P1sg=1 P2sg=2 P3sg=3 P1pl=1 P2pl=2 P3pl=3
    Polarity  Neg=Neg Unable=Neg
    Reflex    Reflex=Yes
    Tense     Prog1=Pres Prog2=Pres Aor=Pres Pres=Pres Past=Past Narr=Past Fut=Fut
    Voice     Pass=Pass Caus=Cau Recip=Rcp
""")
LEFT_OUT = frozenset(
    "Acquire ActOf Agt Almost Become Cop Dim EverSince FeelLike Hastily JustLike Ly Ness NotState Pnon Rel Related "
    "Repeat Root Start Stay With Without Zero".split()
)
NOMINAL = frozenset(("Noun", "Pron", "Num"))


def morphemes_features(morphemes: Sequence[str], is_name: bool = False) -> tuple[str, ...]:
    """Return the features of one analysis: (Noun, A3pl, P1pl, Abl) -> POS:NOUN, Number:Plur, Person:3, …, Case:Abl.

    Args:
        is_name: whether it is a proper noun.
    """
    classes = [place for place, tag in enumerate(morphemes) if tag in PART_OF_SPEECH]
    last = morphemes[classes[-1]] if classes else "Dup"
    # from the first verb on, since derived verbs keep the inflection before: gidebilmek, gidilmek
    verbs = [place for place in classes if morphemes[place] == "Verb"]
    begin = verbs[0] if verbs else (classes[-1] if classes else 0)
    inflection = morphemes[begin:]
    verb_forms = [PARTICIPLES[tag] for tag in inflection if tag in PARTICIPLES]
    verb_forms += [("VerbForm:Vnoun",) for tag in inflection if tag in VERBAL_NOUNS]
    verb_forms += [("VerbForm:Conv",) for tag in inflection if tag in CONVERBS]
    is_verb = bool(verb_forms) or last == "Verb"
    names = list(PART_OF_SPEECH["Verb"] if is_verb else PART_OF_SPEECH[last])
    if is_name and last == "Noun" and not verbs:
        names = ["POS:PROPN"]
    names += [name for tag in inflection for name in FEATURES.get(tag, ())]
    names += [name for form in verb_forms for name in form]
    if last in NOMINAL and CASES.isdisjoint(inflection):
        names.append("Case:Nom")
    if is_verb and not any(name.startswith("Polarity:") for name in names):
        names.append("Polarity:Pos")
    return with_finite(tuple(dict.fromkeys(names)))


MARKS = str.maketrans("", "", "'’")  # İstanbul'da is looked up as istanbulda


@register_source
class Zeyrek(FeatureSource):
    """All analyses of the words that zeyrek can parse."""

    name = "zeyrek"
    gives = "analyses"
    codes: ClassVar[Mapping[str, str]] = {"tr": "tr"}

    def licence(self, code: str) -> str:
        return "MIT; data: the dictionary of Zemberek-NLP (Apache 2.0)"

    def read(self, words: Sequence[str], code: str, spelling: Spelling) -> Iterator[tuple[str, Iterable[str]]]:
        from zeyrek.lexicon import RootLexicon
        from zeyrek.morphotactics import TurkishMorphotactics
        from zeyrek.rulebasedanalyzer import RuleBasedAnalyzer

        logging.getLogger("zeyrek").setLevel(logging.ERROR)  # it logs a warning for each analysis
        analyser = RuleBasedAnalyzer(TurkishMorphotactics(RootLexicon.default_text_dictionaries()))
        for word in words:
            for analyses in analyser.analyze(lower(word, "tr").translate(MARKS)):
                is_name = analyses.dict_item.secondary_pos.name == "ProperNoun"
                yield word, morphemes_features([morpheme.id_ for morpheme, _ in analyses.morphemes], is_name)
