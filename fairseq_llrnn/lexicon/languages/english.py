"""Analyses of English words from the lists of forms that lemminflect ships (B. Jascob), based on the SPECIALIST
Lexicon.

The package itself is not imported: its rules for unknown words are pickled, which is code. Its two lists are text:

    lemma_lu.csv    form, category, lemma/lemma
    infl_lu.csv     lemma, category, forms of the kinds in FORMS, alternatives with slashes between
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import iter_sentences, place, shown
from fairseq_llrnn.lexicon.languages.language_source import FeatureSource, Spelling, register_source

PART_OF_SPEECH = {"noun": "POS:NOUN", "verb": "POS:VERB", "adj": "POS:ADJ", "adv": "POS:ADV", "aux": "POS:AUX"}
COMPARED = ("Degree:Pos", "Degree:Cmp", "Degree:Sup")
# features of the lemma, then of the forms in the row; in UD English, participles and gerunds have one form
FORMS: dict[str, tuple[str, ...]] = {
    "noun": ("Number:Sing", "Number:Plur"),
    "verb": (
        "Mood:Ind Tense:Pres VerbForm:Fin VerbForm:Inf",
        "Mood:Ind Tense:Past VerbForm:Fin",
        "Tense:Past VerbForm:Part",
        "Tense:Pres VerbForm:Ger VerbForm:Part",
        "Mood:Ind Number:Sing Person:3 Tense:Pres VerbForm:Fin",
    ),
    "adj": COMPARED,
    "adv": COMPARED,
    "aux": ("",),
}


@register_source
class Lemminflect(FeatureSource):
    """Part of speech and form of each English word in the lists."""

    name = "lemminflect"
    gives = "analyses"
    codes: ClassVar[Mapping[str, str]] = {"en": "en"}

    def licence(self, code: str) -> str:
        return "MIT; data: SPECIALIST Lexicon, US National Library of Medicine; free, to be acknowledged"

    def read(self, words: Sequence[str], code: str, spelling: Spelling) -> Iterator[tuple[str, Iterable[str]]]:
        spec = importlib.util.find_spec("lemminflect")  # does not import it
        folder = Path((spec.submodule_search_locations or [""])[0] if spec else "", "resources")
        words_of_form = dict[str, list[str]]()
        for word in words:
            for form in dict.fromkeys((word, word.lower())):  # the word may begin a sentence
                words_of_form.setdefault(form, []).append(word)
        for form, names in (*_lemmas(folder / "lemma_lu.csv.gz"), *_forms(folder / "infl_lu.csv.gz")):
            for word in words_of_form.get(spelling.cased(form), ()):
                yield word, names


def _rows(path: Path) -> Iterator[list[str]]:
    for number, line in iter_sentences(path):
        cells = line.split(",")
        if len(cells) < 3 or cells[1] not in PART_OF_SPEECH:
            raise DataError(
                f"{place(path, number)}: expected a word, a category and forms, found {shown(line)}; install "
                "lemminflect again, in the version of constraints.txt"
            )
        yield cells


def _lemmas(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    for form, category, *_ in _rows(path):
        yield form, (PART_OF_SPEECH[category],)


def _forms(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    for lemma, category, *cells in _rows(path):
        if category == "verb" and len(cells) > 1:
            cells[1] = cells[1] or cells[0]  # walked: an empty cell of the participle means the past form
        for names, forms in zip(FORMS[category], [lemma, *cells], strict=False):
            for form in filter(None, forms.split("/")):
                yield form, (PART_OF_SPEECH[category], *names.split())
