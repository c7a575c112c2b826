"""Marks that decoders add to words and sentences. They are no words of the text, and models do not know them.

    la |0-0| mer |1-1|, la |0-1,wa=0-0,total=-2.5|     Moses: source words of a phrase
    petit|UNK|UNK|UNK, UNKpetitUNK, petit_OOV          Moses and Joshua: a word that the system did not translate
    la|DET mer|NOUN                                    Moses: factors, the word first
    <s> la mer </s> <pad>                              many decoders: start, end, padding
    la ⁇ mer, la <UNK> mer, la <<unk>> mer             SentencePiece, others, fairseq: an unknown word, our <unk>

A bar within a word is part of it, unless each word of the list has as many: then the list has factors.
"""

import re
from collections import Counter
from collections.abc import Iterable

from fairseq_llrnn.features.dictionary import UNK

MARKED = "hypotheses with marks of a decoder (such as |0-1|, |UNK, </s>), which are removed; <UNK> is read as <unk>"
FACTORED = "hypotheses with factors (word|FACTOR): only the first one is read, which should be the word"
BARS = "hypotheses with `|` within some words, read as part of them; remove factors and marks, if they are any"
TAGS = "{} with XML tags, read as words; remove them"

_SEGMENTS = re.compile(r"(?<!\S)\|[0-9]+-[0-9]+(,[^|]*)?\|(?!\S)\s*")
_UNTRANSLATED = re.compile(r"(?<!\S)(?:UNK(\S+?)UNK|([^\s|]+)(?:_OOV|(?:\|UNK)+))(?!\S)")
_START = re.compile(r"^((<s>|<bos>|<pad>)(?!\S)\s*)+", re.IGNORECASE)
_END = re.compile(r"(?<!\S)((</s>|<eos>|<pad>)\s*)+$", re.IGNORECASE)
_UNKNOWN = re.compile(r"(?<!\S)(⁇|<unk>|<<unk>>|\[unk\])(?!\S)", re.IGNORECASE)
_FACTORS = re.compile(r"([^\s|]+)((?:\|[^\s|]+)+)")
_TAG = re.compile(r"""<(?:/(?!s>)\w+|\w+\s*/|\w+(?:\s+[\w-]+\s*=\s*(?:"[^"]*"|'[^']*'))+\s*/?)\s*>""")


def without_marks(text: str) -> str:
    """Return the text without marks of segments, sentences and untranslated words, and with <unk> for unknown ones."""
    text = _END.sub("", _START.sub("", _SEGMENTS.sub("", text).strip())).strip()
    if "UNK" in text or "_OOV" in text:
        text = _UNTRANSLATED.sub(lambda match: match[1] or match[2], text)
    return _UNKNOWN.sub(UNK, text)


def has_tags(text: str) -> bool:
    """Return whether the text has XML tags, such as those of Moses' input."""
    return _TAG.search(text) is not None


class Factors:
    """Detect the factors of words in a list, and remove them."""

    def __init__(self) -> None:
        self._sizes = Counter[int]()  # words by their number of bars

    def count(self, text: str) -> bool:
        """Count the words of a text that may have marks, and return whether a word has bars inside."""
        sizes = [
            match[2].count("|") if (match := _FACTORS.fullmatch(word)) else 0
            for word in _SEGMENTS.sub("", text).split()
            if not _UNTRANSLATED.fullmatch(word) and not _END.fullmatch(word) and not _START.fullmatch(word)
        ]
        self._sizes.update(sizes)
        return any(sizes)

    @property
    def are_used(self) -> bool:
        """Whether each of several words has the same number of factors."""
        return len(self._sizes) == 1 and 0 not in self._sizes and self._sizes.total() > 1

    def first(self, text: str) -> str:
        """Return the text with only the first factor of each word."""
        return _FACTORS.sub(r"\1", text)


def words_of(lines: Iterable[str]) -> list[str]:
    """Return the lines of a system's output without marks and factors."""
    lines, factors = list(lines), Factors()
    for line in lines:
        factors.count(line)
    cleaned = map(without_marks, lines)
    return [factors.first(line) for line in cleaned] if factors.are_used else list(cleaned)
