"""Words of a line, the same for tokenised and detokenised text, so that systems of either kind are counted alike.

    L'été, 57.843 t-shirts QX-417   ->   L' | été | , | 57.843 | t-shirts | QX-417

A word is letters, digits and underscores with hyphens between them; `.`, `,`, `:` and `/` between digits belong to it,
and so does an apostrophe at its end, which in French means an elision (*l' été*, *qu' il*). `<unk>` is a word.
Whatever else is visible is a word by itself. Moses' escapes (`&apos;`) are read as what they stand for.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import regex  # type: ignore[import-untyped]

ESCAPES = {
    "&apos;": "'", "&quot;": '"', "&lt;": "<", "&gt;": ">", "&#124;": "|", "&#91;": "[", "&#93;": "]", "&amp;": "&",
}  # fmt: skip
_ESCAPE = re.compile("|".join(ESCAPES))
_LETTERS = r"[\p{L}\p{M}\p{N}_]+"
_WORD = regex.compile(rf"<unk>|{_LETTERS}(?:(?:-|(?<=\p{{N}})[.,:/](?=\p{{N}})){_LETTERS})*['’]?|\S")


def plain(line: str) -> str:
    """The line without Moses' escapes."""
    return _ESCAPE.sub(lambda found: ESCAPES[found[0]], line)


def spans(text: str) -> list[tuple[int, int]]:
    """Start and end of every word of a plain text."""
    return [found.span() for found in _WORD.finditer(text)]


def words(line: str) -> list[str]:
    """The words of a line."""
    return _WORD.findall(plain(line))


def has_letters(word: str) -> bool:
    """Whether it is more than punctuation."""
    return any(character.isalnum() for character in word)


def occurrences(phrase: Sequence[str], sentence: Sequence[str]) -> int:
    """How often the words of `phrase` stand in `sentence` one after the other."""
    size = len(phrase)
    return sum(list(sentence[i : i + size]) == list(phrase) for i in range(len(sentence) - size + 1)) if size else 0


def clipped(wanted: Iterable[str], given: Iterable[str]) -> Counter[str]:
    """The multiset intersection: how often each wanted word is given, at most as often as it is wanted."""
    return Counter(wanted) & Counter(given)
