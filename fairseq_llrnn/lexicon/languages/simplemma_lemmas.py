"""Lemmas of words by simplemma (A. Barbaresi), in 54 languages: lists of forms, and rules for unknown words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from fairseq_llrnn.lexicon.language_check import has_letters
from fairseq_llrnn.lexicon.languages.language_source import FeatureSource, Spelling, register_source

GROUP = "Lemma"
CODES = (
    "ar ast bg ca cs cy da de el en enm eo es et fa fi fr ga gd gl grc gv he hi hu hy id is it ka la lb lt lv mk ml ms "
    "nb nl nn pl pt ro ru se sk sl sq sv sw tl tr uk"
)


@register_source
class Simplemma(FeatureSource):
    """`Lemma:ház` for házat, and for ház itself."""

    name = "simplemma"
    gives = "lemmas"
    codes: ClassVar[Mapping[str, str]] = {**{code: code for code in CODES.split()}, "sh": "hbs"}
    is_guessable = False

    def licence(self, code: str) -> str:
        return (
            "MIT; data: lemmatization lists by M. Měchura (ODbL); Wiktionary by Kaikki, FreeLing, spaCy's lookups; "
            "UniMorph, Wikinflection by E. Metheniti (CC BY 4.0)"
        )

    def read(self, words: Sequence[str], code: str, spelling: Spelling) -> Iterator[tuple[str, Iterable[str]]]:
        from simplemma.strategies import DefaultStrategy

        strategy = DefaultStrategy()
        for word in filter(has_letters, words):
            if lemma := strategy.get_lemma(word, self.codes[code]):
                yield word, [f"{GROUP}:{spelling.of_text(lemma)}"]

    def listed(self, code: str) -> Iterator[tuple[str, str]]:
        from simplemma.strategies.dictionaries import DefaultDictionaryFactory

        yield from DefaultDictionaryFactory().get_dictionary(self.codes[code]).items()
