"""Lexicons of UniMorph: rows of lemma, form and tags (`ház<TAB>házat<TAB>N;ACC;SG`), of any language.

UniMorph's tags are mapped to Universal Dependencies. The schema is Sylak-Glassman 2016, *The Composition and Use of the
Universal Morphological Feature Schema*. McCarthy et al. 2018, *Marrying Universal Dependencies and Universal
Morphology*, compare the two. Only tags with the same meaning in both are mapped. UniMorph's plain essive (ESS) is a
place, which others call locative. Its formal (FRML) is the essive of Finnish and Hungarian. Local cases of two tags
(IN+ABL) have one name.

A fourth column, which segments the form in newer files, is ignored. Blank lines separate the paradigms of older ones.
"""

import re
import sys
from collections.abc import Container, Iterator
from functools import lru_cache

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import ReadCount, check_not_blank, place, shown
from fairseq_llrnn.lexicon.features import by_tag, with_finite
from fairseq_llrnn.lexicon.lexicon_table import ReadRequest, Row, as_features

PERSONS = ("1", "2", "3")
NUMBERS = {"S": "Sing", "P": "Plur", "D": "Dual"}
# the possessor of a noun (Hungarian házam, "my house"), and the arguments that a verb agrees with (Basque dizkiot)
LAYERS = {
    "PSS": "psor", "ARGAB": "abs", "ARGAC": "acc", "ARGBE": "ben", "ARGDA": "dat", "ARGER": "erg", "ARGIO": "io",
    "ARGNO": "nom",
}  # fmt: skip

# CONJ may be either of the two
PART_OF_SPEECH = by_tag("""
    POS       N=NOUN PROPN=PROPN ADJ=ADJ PRO=PRON DET=DET ART=DET CLF=NOUN V=VERB V.PTCP=VERB V.MSDR=VERB V.CVB=VERB
    POS       AUX=AUX ADV=ADV ADP=ADP COMP=SCONJ CONJ=CCONJ,SCONJ NUM=NUM PART=PART INTJ=INTJ
    NounType  CLF=Clf
    PronType  ART=Art
    VerbForm  V.PTCP=Part V.MSDR=Vnoun V.CVB=Conv
""")
FEATURES: dict[str, tuple[str, ...]] = {
    **by_tag("""
    Animacy   ANIM=Anim INAN=Inan HUM=Hum NHUM=Nhum
    Aspect    IPFV=Imp PFV=Perf PRF=Perf PROG=Prog PROSP=Prosp ITER=Iter HAB=Hab
    Case      NOM=Nom ACC=Acc GEN=Gen DAT=Dat VOC=Voc ERG=Erg ABS=Abs INS=Ins INST=Ins DIST=Dis COM=Com PRIV=Abe
    Case      PRT=Par TRANS=Tra FRML=Ess EQTV=Equ COMPV=Cmp BEN=Ben PRP=Cau TERM=Ter ESS=Loc LOC=Loc ABL=Abl ALL=All
    Case      IN+ESS=Ine IN+ALL=Ill IN+ABL=Ela AT+ESS=Ade AT+ALL=All AT+ABL=Abl ON+ESS=Sup ON+ALL=Sbl ON+ABL=Del
    Clusivity INCL=In EXCL=Ex
    Definite  DEF=Def INDF=Ind SPEC=Spec
    Degree    CMPR=Cmp SPRL=Sup EQT=Equ AB=Abs
    Deixis    PROX=Prox MED=Med REMT=Remt
    Evident   FH=Fh NFH=Nfh
    Gender    MASC=Masc FEM=Fem NEUT=Neut
    Mood      IND=Ind SBJV=Sub IMP=Imp COND=Cnd POT=Pot OPT=Opt PURP=Prp ADM=Adm IRR=Irr
    Number    SG=Sing PL=Plur DU=Dual TRI=Tri PAUC=Pauc GPAUC=Grpa GRPL=Grpl INVN=Inv
    Person    0=0 1=1 2=2 3=3 4=4
    Person[psor] PSS3=3
    Polarity  POS=Pos NEG=Neg
    Polite    INFM=Infm FORM=Form ELEV=Elev HUMB=Humb
    Reflex    REFL=Yes
    Tense     PRS=Pres PST=Past FUT=Fut
    VerbForm  FIN=Fin NFIN=Inf
    Voice     ACT=Act MID=Mid PASS=Pass ANTIP=Antip CAUS=Cau DIR=Dir INV=Inv RECP=Rcp
    """),
    **{f"BANTU{n}": (f"NounClass:Bantu{n}",) for n in range(1, 24)},
    **{
        f"{tag}{person}{number}": (f"Number[{layer}]:{NUMBERS[number]}", f"Person[{layer}]:{person}")
        for tag, layer in LAYERS.items()
        for person in PERSONS
        for number in NUMBERS
    },
}

GROUP = "UniMorph"
TAG = re.compile(r"(?:[^;()]|\([^()]*\)|[()])+")  # a semicolon within NOM(1;SG) of UniMorph 4 ends no tag
ALTERNATIVES = re.compile(r"[+/]")


# A file repeats some hundred bundles of tags many thousand times.
@lru_cache(maxsize=16384)
def tags_features(tags: str) -> tuple[str, ...]:
    """Return feature names: `N;ACC;PL` -> (`POS:NOUN`, `Case:Acc`, `Number:Plur`).

    `{ACC/NOM}` and `ACC+NOM` give both. A verb with a mood, a tense or a person and without a form is finite. An
    unknown tag becomes `UniMorph:TAG`.
    """
    names = tuple(dict.fromkeys(name for tag in TAG.findall(tags) for name in _one_tag(tag.strip())))
    return with_finite(names)


def _one_tag(tag: str) -> Iterator[str]:
    whole = _ud_features(tag)
    parts = [tag] if whole or "(" in tag else [part.strip("{} ") for part in ALTERNATIVES.split(tag)]
    for part in filter(None, parts):
        yield from whole or _ud_features(part) or (f"{GROUP}:{'_'.join(part.split())}",)


def _ud_features(tag: str) -> tuple[str, ...]:
    return PART_OF_SPEECH.get(tag.upper()) or FEATURES.get(tag.upper(), ())


def _is_bundle(cell: str) -> bool:
    tag, semicolon, _ = cell.partition(";")
    return tag in PART_OF_SPEECH or bool(semicolon and _ud_features(tag))


class _FeatureNames:
    """Possible names of the features column: anything but a tag or the name of another column."""

    def __contains__(self, word: object) -> bool:
        return not _ud_features(str(word)) and word not in NAMES[0] and word not in NAMES[1]


COLUMNS = ("lemma", "form", "features")
# their names in a header
NAMES: tuple[Container[str], ...] = (
    ("lemma", "lemmas", "lexeme", "base", "citation"),
    ("form", "forms", "word", "words", "wordform", "wordforms", "inflected", "inflection"),
    _FeatureNames(),
)
THREE_OR_MORE = range(len(COLUMNS), sys.maxsize)
EXPECTED = f"at least {len(COLUMNS)} columns ({', '.join(COLUMNS)}) separated by tabs"
OF_LEXICONS = ("NOUN", "VERB", "PRON", "CCONJ", "SCONJ", "SYM")  # parts of speech that are no tags of UniMorph
MISSING = ("-", "–", "—")  # marks of a missing form

WITHOUT_FORM = "without a form"
MOST_SHOWN = 5


def unimorph_rows(path: str, request: ReadRequest) -> Iterator[tuple[Row, int]]:
    """Yield each row, also phrases. Raises DataError, with file and line, for a malformed row or a file without
    rows.
    """
    count, unknown = ReadCount(path, "rows", request.spelling.form), dict[str, None]()
    lemmas, forms = set[str](), set[str]()
    for lemma, form, tags in _cells(count):
        count.read += 1
        lemmas.add(lemma)
        forms.add(form)
        names = tags_features(tags)
        unknown.update(dict.fromkeys(name for name in names if name.startswith(f"{GROUP}:")))
        lemma = "" if lemma in ("", "_") else request.spelling.cased(lemma)
        yield Row(request.spelling.cased(form), lemma, as_features(names), "unimorph"), 0
    if len(lemmas) > len(forms):
        request.notes[f"lemmas in {path}, more than it has forms: are the columns {', '.join(COLUMNS)}?"] += len(lemmas)
    if unknown:
        examples = ", ".join(list(unknown)[:MOST_SHOWN]) + (", …" if len(unknown) > MOST_SHOWN else "")
        note = f"kinds of UniMorph tags that Universal Dependencies lacks, kept as they are ({examples})"
        request.notes[note] += len(unknown)


def _cells(count: ReadCount) -> Iterator[tuple[str, str, str]]:
    """Yield lemma, form and tags of each row, in order, as written. Rows of a missing form are left out."""
    path = count.file
    for number, cells in count.rows(THREE_OR_MORE, EXPECTED, header=NAMES):
        location, (lemma, form, tags) = place(path, number), cells[: len(COLUMNS)]
        for column, cell in ((2, form), (3, tags)):
            check_not_blank(cell, location, f"column {column} ({COLUMNS[column - 1]})")
        if tags in OF_LEXICONS:
            raise DataError(
                f"{location}: expected UniMorph features such as N;NOM;SG in column 3, found the part of "
                f"speech {tags}; a file of form, lemma, UPOS and FEATS is a lexicon: give it as one "
                "(--lexicon)"
            )
        for column, cell in enumerate((lemma, form), 1):
            if _is_bundle(cell) and not any(map(_ud_features, TAG.findall(tags))):
                raise DataError(
                    f"{location}: expected the columns {', '.join(COLUMNS)}, found features in column {column}: "
                    f"{shown(cell)}; reorder the columns"
                )
        if form not in MISSING or tags.upper().startswith("PUNCT"):
            yield lemma, form, tags
        else:
            count.left_out[WITHOUT_FORM] += 1
    if not count.entries:
        raise DataError(f"{path}: expected rows with {', '.join(COLUMNS)}, found none; is the file empty?")
