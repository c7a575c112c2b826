"""Analyses of Russian and Ukrainian words by pymorphy3, from the dictionaries that are packages of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.languages.base import FeatureSource, Package, Spelling, register_source
from fairseq_llrnn.lexicon.languages.opencorpora_tags import grammemes_features


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
