"""Whether what is given beside a text is of its language: by the words that both have, and how they are spelled.

A treebank of another language changes no format, and guesses would hide that it knows nothing. Of two lists of
words, the smaller one says how many of its words the other has: a short lexicon is known to the text, a large one
knows the text. Of treebanks and texts of six languages, two lists of the same language share 18 % of the smaller one at
least, French verbs or adjectives alone 21 and 10 % with any French one; of different languages, 86 % of the pairs share
less than 10 %, half of them less than 2.3 % (scripts/language_shares.py; the others are large lists that hold foreign
words, beside 500 lines).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from fairseq_llrnn.lexicon.held_out import SEEN

FEW = 0.1  # of the words of the smaller list
LEAST = 10  # words; fewer say nothing
FEW_TOKENS = 0.5  # of a text, that its dictionary has
MANY = 0.05  # of the words of a text: so many unknown ones make a perplexity lower than it seems
MANY_UNKNOWN = (
    ". With so many, a perplexity is too low. Check the tokenisation and case of the text; if they are right, use a "
    "larger dictionary (llrnn dictionary --text FILES), pieces, or an open vocabulary (llrnn prior --open-vocabulary "
    "characters)"
)
OTHER_LANGUAGE = "is it of the text's language, and in its case?"


def has_letters(word: str) -> bool:
    """Numbers and signs are the same in all languages."""
    return any(map(str.isalpha, word))


def words_in_both(
    source: str, listed: Iterable[str], words: Collection[str], answers: bool = False
) -> Counter[str]:
    """A remark, with its number, where a list of words and those of a text are of different languages; else none.

    Args:
        source: who lists them, as the user named it. answers: whether it lists only what it is asked for.
    """
    named, asked = set(filter(has_letters, listed)), set(filter(has_letters, words))
    return few_words_remark(source, len(named & asked), len(asked), None if answers else len(named))


def few_words_remark(source: str, covered: int, words: int, listed: int | None = None) -> Counter[str]:
    """The same of numbers: how many of a text's `words` a source knows, and how many it lists.

    Args:
        listed: None where it lists none, but answers.
    """
    smaller = words if listed is None else min(words, listed)
    if smaller < LEAST or covered >= FEW * smaller:
        return Counter()
    among = "" if listed is None else f", among {listed:,}"
    return Counter({f"of the text's {words:,} words are known to {source}{among}: {OTHER_LANGUAGE}": covered})


def unknown_remark(
    text: str, unknown: int, words: int, is_open: bool = False, is_explained: bool = False
) -> Counter[str]:
    """A remark on the words of a text that a dictionary lacks; none where it has all.

    Args:
        text: its name. unknown, words: how many. is_open: whether an open vocabulary spells them. is_explained:
            whether another warning says why there are many.
    """
    known = words - unknown
    if known < FEW_TOKENS * words and not is_explained:
        return Counter({f"of the {words:,} tokens of {text} are words of the dictionary: {OTHER_LANGUAGE}": known})
    if not unknown:
        return Counter()
    share = f"of the {words:,} tokens of {text} are outside the dictionary ({unknown / words:.1%})"
    if is_open:
        return Counter({f"{share}; the open vocabulary spells them": unknown})
    hint = MANY_UNKNOWN if unknown > MANY * words and not is_explained else ""
    return Counter({f"{share} and count as <unk>{hint}": unknown})


def is_warning(remark: str) -> bool:
    """Whether a remark says that all may be wrong."""
    return remark.endswith((OTHER_LANGUAGE, MANY_UNKNOWN, SEEN))
