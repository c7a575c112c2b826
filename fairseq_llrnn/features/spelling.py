"""Features of a word from its spelling alone: its shape and its suffix.

These reach words that no lexicon lists. The user's own patterns are in user_patterns.py. `Shape:SmallNumber`
is a real value that falls as the number grows, so that a model can prefer small numbers over large ones
without having seen either (Dymetman & Xiao 2016, §3).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

# 12 · 1.234,5 · 1'000 · -3 · ,5 ; a separator stands between digits, save for a leading decimal point.
NUMBER = re.compile(r"[+\-\u2212]?[.,]?\d+(?:[.,'\u2019 \u00a0\u2009\u202f]\d+)*")
FOUR_DIGITS = re.compile(r"\d{4}")
ONE_OR_TWO_DIGITS = re.compile(r"\d{1,2}")
INNER_HYPHEN = re.compile(r"\w[-\u2010\u2011]\w")

FIRST_YEAR, LAST_YEAR = 1000, 2100
# Shape:SmallNumber falls in equal steps from 1 for 0 to 0 for this number; above it, the feature is absent.
SMALL_NUMBER_END = 100

SUFFIX_LENGTHS = (2, 3, 4)
MIN_STEM_LENGTH = 2
DEFAULT_SUFFIX_FLOOR = 20


def shape_features(word: str) -> dict[str, float]:
    """Features of the group `Shape`. The two about capitals mean something only where the text is cased."""
    features: dict[str, float] = {}
    if NUMBER.fullmatch(word):
        features["Shape:Number"] = 1.0
        if FOUR_DIGITS.fullmatch(word) and FIRST_YEAR <= int(word) <= LAST_YEAR:
            features["Shape:Year"] = 1.0
        if ONE_OR_TWO_DIGITS.fullmatch(word):
            features["Shape:SmallNumber"] = 1.0 - int(word) / SMALL_NUMBER_END
    if word[:1].isupper() or word[:1].istitle():
        features["Shape:Capitalised"] = 1.0
    if word.isupper() and sum(character.isupper() for character in word) >= 2:
        features["Shape:AllCaps"] = 1.0
    if INNER_HYPHEN.search(word):
        features["Shape:Hyphenated"] = 1.0
    # Unicode keeps $ + = ° and the like apart, as symbols; for a text they are the same kind of thing.
    if word and all(unicodedata.category(character)[0] in "PS" for character in word):
        features["Shape:Punctuation"] = 1.0
    return features


def suffix_features(words: Sequence[str], floor: int = DEFAULT_SUFFIX_FLOOR) -> list[dict[str, float]]:
    """Features `Suffix:ées` of each word of a vocabulary: its endings of 2 to 4 letters, lower-cased.

    Only alphabetic words have suffixes, and only endings before which MIN_STEM_LENGTH characters stand. A
    suffix that fewer than `floor` different words of the vocabulary carry is left out: it would name words,
    not a class.
    """
    return list(iter_suffix_features(words, floor))


def iter_suffix_features(words: Sequence[str], floor: int) -> Iterator[dict[str, float]]:
    """As `suffix_features`, one word after the other."""
    types = Counter(suffix for word in set(words) for suffix in suffixes(word))
    names = {suffix: f"Suffix:{suffix}" for suffix, many in types.items() if many >= floor}
    for word in words:
        yield {names[suffix]: 1.0 for suffix in suffixes(word) if suffix in names}


def suffixes(word: str) -> list[str]:
    """The endings of a word, whether or not others share them."""
    word = word.lower()
    if not all(character.isalpha() or unicodedata.category(character)[0] == "M" for character in word):
        return []
    return [word[-length:] for length in SUFFIX_LENGTHS if len(word) >= length + MIN_STEM_LENGTH]
