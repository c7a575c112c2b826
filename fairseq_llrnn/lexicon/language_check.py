"""Checks whether a source is of a text's language, by the share of words that both contain.

A treebank of another language has the same format, and guesses would hide its uselessness. Of two word lists, the
measure is the share of the smaller one's words in the larger one: a text contains the words of a small lexicon, a large
lexicon those of the text. For treebanks and texts of six languages, two lists of the same language share at least 18 %
of the smaller one; French verbs or adjectives alone share 21 and 10 % with any French list. Of pairs of different
languages, 86 % share less than 10 %, half of them less than 2.3 % (examples/languages/language_shares.py). The others
are large lists with foreign words, compared with 500 lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from fairseq_llrnn.lexicon.held_out import SEEN

FEW = 0.1  # of the words of the smaller list
LEAST = 10  # least number of words to compare
FEW_TOKENS = 0.5  # share of a text's tokens in its dictionary
MANY = 0.05  # share of unknown words in a text that makes its perplexity too low
MANY_UNKNOWN = (
    ". With so many, a perplexity is too low. Check the tokenisation and case of the text; if they are right, use a "
    "larger dictionary (llrnn dictionary --text FILES), pieces, or an open vocabulary (llrnn prior --open-vocabulary "
    "characters)"
)
NOT_SPELLED = ". The bits lack their spelling: add --open, because the model can spell them"
OTHER_LANGUAGE = "is it of the text's language, and in its case?"


def has_letters(word: str) -> bool:
    """Return whether a word has a letter: numbers and signs are the same in all languages."""
    return any(map(str.isalpha, word))


def words_in_both(source: str, listed: Iterable[str], words: Collection[str], answers: bool = False) -> Counter[str]:
    """Return a remark with its number if a list of words and those of a text are of different languages.

    Args:
        source: of the list, as the user named it.
        answers: whether it lists only words of the text.
    """
    source_words, text_words = set(filter(has_letters, listed)), set(filter(has_letters, words))
    listed_words = None if answers else len(source_words)
    return few_words_remark(source, len(source_words & text_words), len(text_words), listed_words)


def few_words_remark(source: str, covered: int, words: int, listed: int | None = None) -> Counter[str]:
    """Return the same remark from numbers of words.

    Args:
        covered: words of the text in the source.
        words: words of the text.
        listed: words of the source, or None if it lists only words of the text.
    """
    smaller = words if listed is None else min(words, listed)
    if smaller < LEAST or covered >= FEW * smaller:
        return Counter()
    among = "" if listed is None else f", among {listed:,}"
    return Counter({f"of the text's {words:,} words are known to {source}{among}: {OTHER_LANGUAGE}": covered})


def unknown_remark(
    text: str, unknown: int, words: int, is_open: bool = False, is_explained: bool = False, can_open: bool = False
) -> Counter[str]:
    """Return a remark on the words of a text that a dictionary lacks, if any.

    Args:
        text: its name.
        unknown, words: numbers of tokens.
        is_open: whether an open vocabulary spells unknown words.
        can_open: whether --open would spell them.
        is_explained: whether another warning gives the cause of many unknown words.
    """
    known = words - unknown
    if known < FEW_TOKENS * words and not is_explained:
        return Counter({f"of the {words:,} tokens of {text} are words of the dictionary: {OTHER_LANGUAGE}": known})
    if not unknown:
        return Counter()
    share = f"of the {words:,} tokens of {text} are outside the dictionary ({unknown / words:.1%})"
    if is_open:
        return Counter({f"{share}; the open vocabulary spells them": unknown})
    hint = NOT_SPELLED if can_open else MANY_UNKNOWN if unknown > MANY * words else ""
    return Counter({f"{share} and count as <unk>{'' if is_explained else hint}": unknown})


def is_warning(remark: str) -> bool:
    """Return whether a remark indicates a serious mistake."""
    return remark.endswith((OTHER_LANGUAGE, MANY_UNKNOWN, NOT_SPELLED, SEEN))
