"""Morphological analyses by Apertium: words are piped through `lt-proc` with a compiled analyser (`*.automorf.bin`).

Apertium's tags are mapped to Universal Dependencies. `<mf>` gives both genders and `<sp>` both numbers, as the union
over a type's analyses does.

lt-proc prints `^couvent/couvent<n><m><sg>/couver<vblex><pri><p3><pl>$`: the word, then its analyses. `*` marks an
unknown word. In Debian: packages `lttoolbox` (the program) and, for French, `apertium-fra-cat`.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.files.text_lines import ReadCount, in_form
from fairseq_llrnn.lexicon.casing import upper
from fairseq_llrnn.lexicon.features import by_tag
from fairseq_llrnn.lexicon.languages.language_source import Spelling
from fairseq_llrnn.lexicon.lexicon_table import ReadRequest, Row, as_features

# The first tag of an analysis is its part of speech. The tags of "to be" and "to have", vbser and vbhaver, do not tell
# auxiliaries from verbs.
PART_OF_SPEECH = by_tag("""
    POS       n=NOUN np=PROPN vblex=VERB vbser=AUX,VERB vbhaver=AUX,VERB vaux=AUX vbaux=AUX vbmod=VERB adj=ADJ adv=ADV
    POS       preadv=ADV det=DET predet=DET prn=PRON rel=PRON pr=ADP cnjcoo=CCONJ cnjsub=SCONJ cnjadv=SCONJ num=NUM
    POS       ij=INTJ sent=PUNCT cm=PUNCT lpar=PUNCT rpar=PUNCT lquot=PUNCT rquot=PUNCT guio=PUNCT apos=PUNCT
    PronType  rel=Rel
""")
FEATURES = by_tag("""
    Abbr      acr=Yes
    Definite  def=Def ind=Ind
    Degree    sup=Sup comp=Cmp
    Gender    m=Masc f=Fem mf=Fem,Masc nt=Neut
    Mood      pri=Ind pii=Ind ifi=Ind fti=Ind cni=Cnd prs=Sub pis=Sub imp=Imp
    NameType  ant=Giv cog=Sur top=Geo loc=Geo org=Com al=Oth
    NumType   ord=Ord
    Number    sg=Sing pl=Plur sp=Plur,Sing
    Person    p1=1 p2=2 p3=3
    Poss      pos=Yes
    PronType  dem=Dem itg=Int rel=Rel
    Reflex    ref=Yes
    Tense     pri=Pres pii=Imp ifi=Past fti=Fut cni=Pres prs=Pres pis=Imp imp=Pres pp=Past pprs=Pres
    VerbForm  pri=Fin pii=Fin ifi=Fin fti=Fin cni=Fin prs=Fin pis=Fin imp=Fin inf=Inf pp=Part pprs=Part ger=Ger
""")


def tags_features(tags: list[str]) -> tuple[str, ...]:
    """Return the features of the tags of one analysis. An unknown tag becomes `Apertium:tag`."""
    names: list[str] = []
    for position, tag in enumerate(tags):
        unknown = (f"Apertium:{tag}",)
        meaning = PART_OF_SPEECH.get(tag) if position == 0 else None
        names += meaning or FEATURES.get(tag, unknown)
    return tuple(names)


PROGRAM = "lt-proc"
ANALYSERS_FOLDER = Path("/usr/share/apertium")
ENDING = ".automorf.bin"
WORDS_PER_RUN = 50_000

UNKNOWN = "that it lacks"
SPLIT = "that it splits into several"

# one lexical unit, ^surface/analysis/analysis$; a backslash escapes the next character
UNIT = re.compile(r"\^((?:\\.|[^\\/^$])*)((?:/(?:\\.|[^\\/$])*)*)\$", re.DOTALL)
ANALYSIS = re.compile(r"/((?:\\.|[^\\/])*)", re.DOTALL)
# + joins the parts of a contraction, as in de<pr>+le<det>; tags are in angle brackets
PART_OR_TAG = re.compile(r"\\.|(\+)|<([^<>]*)>", re.DOTALL)
SPECIAL = re.compile(r"([\[\]{}^$/\\@<>*])")


def apertium_rows(analyser: str, request: ReadRequest) -> Iterator[tuple[Row, int]]:
    """Yield each analysis of the requested words. A word without one has no row.

    For words of lower-cased text, `lyon` is looked up as Lyon and LYON if it has no analysis.

    Args:
        analyser: the path of an *.automorf.bin, or the name of an installed mode such as `fra-cat`.

    Raises:
        OptionError: no words are requested.
        DataError: lt-proc or the analyser is missing or fails, or knows none of the words.
    """
    if request.words is None:
        raise OptionError(f"apertium {analyser} needs words to look up; give --dict or --count-text")
    program, automaton = find_program(), find_analyser(analyser)
    count, remaining = ReadCount(analyser, "words"), iter(request.words)
    while batch := list(islice(remaining, WORDS_PER_RUN)):
        spellings = [_spellings(in_form(word, "nfc"), request.spelling) for word in batch]
        answers = iter(_run(program, automaton, [spelling for group in spellings for spelling in group]))
        for word, group in zip(batch, spellings, strict=True):
            analyses = _first_analyses([(spelling, next(answers)) for spelling in group])
            count.entries += 1
            if analyses:
                count.read += 1
            else:
                count.left_out[SPLIT if analyses is None else UNKNOWN] += 1
            for analysis in analyses or ():
                lemma, names = request.spelling.of_text(_analysis_lemma(analysis) or ""), analysis_features(analysis)
                yield Row(word, lemma, as_features(names), "apertium"), 0
    if count.entries and not count.read:
        raise DataError(
            f"{automaton}: expected words of the text, found none of {count.entries}; is it a compiled analyser of "
            "their language?"
        )
    count.done()


def find_program() -> str:
    """Return the path of lt-proc. Raises DataError if it is not installed."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise DataError(
            f"the program {PROGRAM} is not installed; it is in Debian's package lttoolbox (apt install "
            "lttoolbox)"
        )
    return program


def find_analyser(analyser: str | Path, option_name: str = "apertium") -> Path:
    """Return the automaton at this path, or else of this mode among those installed in /usr/share/apertium.

    Args:
        option_name: the option that names it.

    Raises:
        DataError: there is none.
    """
    if os.path.isfile(analyser):
        return Path(analyser).resolve()
    paths = sorted(ANALYSERS_FOLDER.glob(f"apertium-*/*{ENDING}"))
    installed = {path.name.removesuffix(ENDING): path for path in paths}
    if str(analyser) in installed:
        return installed[str(analyser)]
    raise DataError(
        f"{option_name} {analyser}: expected the path of an *{ENDING}, or one of the installed modes "
        f"({', '.join(installed) or 'none'}), found neither; Debian's package apertium-fra-cat contains fra-cat, French"
    )


def _spellings(word: str, spelling: Spelling) -> list[str]:
    if not spelling.lowercase:
        return [word]
    # Saint-Denis: every part of a hyphenated name has a capital
    title = "-".join(upper(part[:1], spelling.rules) + part[1:] for part in word.split("-"))
    return list(dict.fromkeys((word, title, upper(word, spelling.rules))))


def _run(program: str, automaton: Path, words: list[str]) -> list[str]:
    # -z: a zero byte ends a text, so that words are never analysed together as one expression
    texts = [SPECIAL.sub(r"\\\1", word.replace("\0", "")) + "\0" for word in words]
    command = [program, "-z", str(automaton)]
    sent = "".join(texts).encode("utf-8", "replace")
    result = subprocess.run(command, input=sent, capture_output=True, check=False)
    answers = result.stdout.decode("utf-8", "replace").split("\0")
    if result.returncode or len(answers) < len(words):
        message = result.stderr.decode("utf-8", "replace").strip() or "nothing on its error output"
        raise DataError(
            f"{' '.join(command)}: failed with status {result.returncode}, after {len(answers) - 1} of "
            f"{len(words)} words, with the message: {message}; is the file a compiled analyser?"
        )
    return answers


def _first_analyses(answers: list[tuple[str, str]]) -> list[str] | None:
    """Return the analyses of the first spelling with features, or None if the word is split into several."""
    is_split = False
    for spelling, answer in answers:
        units = list(lexical_units(answer))
        if len(units) == 1 and units[0][0] == spelling:
            if any(map(analysis_features, units[0][1])):
                return units[0][1]
        elif len(units) > 1:
            is_split = True
    return None if is_split else []


def lexical_units(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the lexical units in Apertium's stream format: surface form, and analyses. An unknown word (`*`) has none.

    Text between the units is ignored.
    """
    for unit in UNIT.finditer(text):
        yield _unescaped(unit[1]), [analysis for analysis in ANALYSIS.findall(unit[2]) if not analysis.startswith("*")]


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _analysis_lemma(analysis: str) -> str | None:
    """Return the lemma, with the text after its tags (`cul<n># de sac`), or None for joined parts, as in
    de<pr>+le<det>.
    """
    end, is_joined, tail = None, False, 0
    for part in PART_OR_TAG.finditer(analysis):
        if part[2] is not None:
            end = part.start() if end is None else end
            tail = part.end()
        elif part[1] and end is not None:
            is_joined = True
    if is_joined or end is None:
        return None
    return _unescaped(analysis[:end] + analysis[tail:].removeprefix("#"))


def analysis_features(analysis: str) -> tuple[str, ...]:
    """Return the feature names of all parts of one analysis."""
    parts: list[list[str]] = [[]]
    for plus, tag in PART_OR_TAG.findall(analysis):
        # a plus sign may also be part of a lemma (c++<n>): it only joins after tags
        if plus and parts[-1]:
            parts.append([])
        elif tag:
            parts[-1].append(tag)
    return tuple(name for tags in parts for name in tags_features(tags))
