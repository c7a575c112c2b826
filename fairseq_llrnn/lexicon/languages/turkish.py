"""Analyses of Turkish words by zeyrek (O. Bulat), a port of Zemberek: its dictionary and its word parser.

Only the parser of single words is used; what zeyrek calls `analyze` first parts a text into words, with data of NLTK
that have to be downloaded. A word takes some milliseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import ClassVar

from fairseq_llrnn.lexicon.casing import lower
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.languages.base import FeatureSource, Package, Spelling, register_source
from fairseq_llrnn.lexicon.languages.turkish_tags import morphemes_features

MARKS = str.maketrans("", "", "'’")  # İstanbul'da is looked up as istanbulda


@register_source
class Zeyrek(FeatureSource):
    """All analyses of the words that zeyrek can parse."""

    name = "zeyrek"
    gives = "analyses"
    codes: ClassVar[Mapping[str, str]] = {"tr": "tr"}

    def packages(self, code: str) -> Sequence[Package]:
        return (Package("zeyrek", "zeyrek"),)

    def licence(self, code: str) -> str:
        return "MIT; data: the dictionary of Zemberek-NLP (Apache 2.0)"

    def read(self, words: Sequence[str], code: str, spelling: Spelling) -> Lexicon:
        from zeyrek.lexicon import RootLexicon
        from zeyrek.morphotactics import TurkishMorphotactics
        from zeyrek.rulebasedanalyzer import RuleBasedAnalyzer

        logging.getLogger("zeyrek").setLevel(logging.ERROR)  # it warns of each analysis
        analyser = RuleBasedAnalyzer(TurkishMorphotactics(RootLexicon.default_text_dictionaries()))
        lexicon = Lexicon()
        for word in words:
            names: list[str] = []
            for analyses in analyser.analyze(lower(word, "tr").translate(MARKS)):
                is_name = analyses.dict_item.secondary_pos.name == "ProperNoun"
                names += morphemes_features([morpheme.id_ for morpheme, _ in analyses.morphemes], is_name)
            if names:
                lexicon.add(word, names)
        return lexicon
