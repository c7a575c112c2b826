"""Lower and upper case by the rules of a language, for texts, treebanks and lexicons.

Python follows Unicode's rules for all languages: a capital sigma that ends a Greek word becomes ς. Three languages have
rules of their own (Unicode's SpecialCasing.txt). In Turkish and Azerbaijani, I is ı and İ is i. In Lithuanian, an i or
j keeps its dot below another accent.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from fairseq_llrnn.errors import OptionError

TURKIC, LITHUANIAN = ("tr", "az"), ("lt",)
SYNONYMS = {"tur": "tr", "aze": "az", "azj": "az", "azb": "az", "lit": "lt"}  # codes of three letters
CODE = re.compile(r"([A-Za-z]{2,3})([-_][A-Za-z0-9]+)*")  # tr, tur, tr_TR

DOT = "\u0307"  # a combining dot above
# marks below or inside a letter may stand before the dot (After_I of SpecialCasing.txt)
_DOTTED = re.compile(f"I([\u0316-\u0319\u031c-\u0320\u0323-\u0333\u0339-\u033c]*){DOT}")
_ABOVE = 230  # the combining class of accents above
_WITH_ACCENT = {"Ì": f"i{DOT}\u0300", "Í": f"i{DOT}\u0301", "Ĩ": f"i{DOT}\u0303"}


def language_of(code: str | None, option_name: str = "--lower") -> str | None:
    """Return the language of a code such as `tr`, `tur` or `tr_TR`, or None for None or "".

    Raises:
        OptionError: the text is no code. The message names the option.
    """
    if not code:
        return None
    match = CODE.fullmatch(code)
    if match is None:
        raise OptionError(
            f"{option_name} {code}: expected the code of a language, such as tr, az, lt or el (ISO 639), "
            "found another text"
        )
    language = match[1].lower()
    return SYNONYMS.get(language, language)


def is_lower(symbols: Iterable[str]) -> bool:
    """Return whether a text of these symbols is in lower case. Symbols such as <unk> do not count."""
    return all(symbol == symbol.lower() for symbol in symbols if not symbol.startswith("<"))


def lower(text: str, language: str | None = None) -> str:
    """Return the text in lower case. `language`: from `language_of`."""
    if language in TURKIC:
        text = _DOTTED.sub(r"i\1", text).replace("İ", "i").replace("I", "ı")
    elif language in LITHUANIAN:
        text = _keep_dots(text)
    return text.lower()


def upper(text: str, language: str | None = None) -> str:
    """Return the text in upper case. `language`: from `language_of`."""
    if language in TURKIC:
        text = text.replace("i", "İ")
    elif language in LITHUANIAN:
        text = re.sub(f"([ijįIJĮ]){DOT}", r"\1", text)
    return text.upper()


def case_key(word: str) -> str:
    """Return a key that is equal for words that differ only in case, in any language: İ, I, i and ı are the same."""
    return lower(word).replace(DOT, "").replace("ı", "i").replace("ς", "σ")


def _keep_dots(text: str) -> str:
    """Return Lithuanian text with I, J and Į before an accent, and letters with an accent, in lower case with their
    dots.
    """
    lowered = ""
    for place, letter in enumerate(text):
        if letter in "IJĮ" and _accent_above(text[place + 1 :]):
            lowered += letter.lower() + DOT
        else:
            lowered += _WITH_ACCENT.get(letter, letter)
    return lowered


def _accent_above(rest: str) -> bool:
    """Return whether the letter before `rest` has an accent above it."""
    for mark in rest:
        combining = unicodedata.combining(mark)
        if combining in (0, _ABOVE):
            return combining == _ABOVE
    return False
