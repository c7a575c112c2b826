"""Word frequencies of wordfreq (Speer 2022): web, books, subtitles, Wikipedia, in 42 languages until about 2021."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from fairseq_llrnn.lexicon.languages.language_source import FrequencySource, register_source

CODES = (
    "ar bg bn ca cs da de el en es fa fi fr he hi hu id is it ja ko lt lv mk ms nb nl pl pt ro ru sh sk sl sv ta tr uk "
    "ur vi zh"
)


@register_source
class Wordfreq(FrequencySource):
    """wordfreq's largest list of a language."""

    name = "wordfreq"
    gives = "frequencies"
    codes: ClassVar[Mapping[str, str]] = {**{code: code for code in CODES.split()}, "tl": "fil"}

    def licence(self, code: str) -> str:
        return (
            "Apache 2.0; data: CC BY-SA 4.0; from Google Books Ngrams, the Leeds Internet Corpus; "
            "from Wikipedia, ParaCrawl, OpenSubtitles 2018 and others"
        )

    def frequencies(self, words: Sequence[str], code: str) -> np.ndarray:
        import wordfreq
        from wordfreq.language_info import get_language_info

        package_code = self.codes[code]
        listed = wordfreq.get_frequency_dict(package_code)
        # the tokenizers of Chinese, Japanese and Korean are separate packages, and a dictionary's words need none
        is_parted_by_blanks = get_language_info(package_code)["tokenizer"] == "regex"

        def frequency(word: str) -> float:
            frequency_of_word = listed.get(self.spelled(word, code), 0.0)
            # numbers, and words with hyphens and apostrophes, get a frequency from their parts
            return frequency_of_word or (wordfreq.word_frequency(word, package_code) if is_parted_by_blanks else 0.0)

        return np.array([frequency(word) for word in words], dtype=np.float64)

    def spelled(self, word: str, code: str) -> str:
        from wordfreq.preprocess import preprocess_text

        spelled: str = preprocess_text(word, self.codes[code])  # straße is strasse, in Turkish Işık is ışık
        return spelled

    def all_frequencies(self, code: str) -> Mapping[str, float]:
        import wordfreq

        frequencies: Mapping[str, float] = wordfreq.get_frequency_dict(self.codes[code])
        return frequencies

    def least(self, code: str) -> float:
        return min(self.all_frequencies(code).values())
