"""The words of RNNLG's sentences, and the values of the act among them.

`normalise` converts a raw sentence to the tokens that RNNLG compares (its utils/nlp.py). `mark` replaces each value by
one token, like its loader/DataLexicaliser.py with SLOT_NAME. Our token includes the value, so that nothing is lost:

    red door cafe is a cheap restaurant .      @name_red_door_cafe is a @pricerange_cheap restaurant .

A value is found in the form of the act, with its parts (between `and` and `or`) in any order. Only the first occurrence
of a value counts. Longer values are tried first, so that `bay` is not found inside `mission bay`.
"""

from __future__ import annotations

import itertools
import re

from dialog_acts import Act

MARK = "@"  # begins a token that stands for a value
PLURALS = "restaurant hotel venue place location specification requirement card kid range price meal".split()
WORDS = {
    **{f"{word}s": f"{word} -s" for word in PLURALS},
    **{f"{adverb}ly": f"{adverb} -ly" for adverb in "typical certain total actual definite moderate".split()},
    **{"children": "child -s", "includes": "include -s", "cheaper": "cheap -er"},
    **{"teh": "the", "pricerange": "price range", "st": "street", "ave": "avenue"},
    **{"can't": "cannot", "won't": "will not"},
    **{f"{verb}n't": f"{verb} not" for verb in "do does did could are is was were".split()},
    **{f"{whom}'re": f"{whom} are" for whom in "you they we there".split()},
    **{f"{whom}'s": f"{whom} is" for whom in "it that what there".split()},
    **{f"{whom}'d": f"{whom} would" for whom in "i you".split()},
    **{f"{whom}'ve": f"{whom} have" for whom in "i we".split()},
    **{"i'm": "i am", "you'll": "you will", "they'll": "they will", "#": "number", "&": "and"},
}
_PHONE = re.compile(r"\(?(\d{3})\)?[-.\s]?(\d{3})[-.\s]?(\d{4})")
_ODD = re.compile(r"[\":<>@]")
_LAST = re.compile(r" [.?!]$")


def normalise(sentence: str) -> str:
    """Return lower-cased tokens between single blanks, without a final full stop, question or exclamation mark."""
    text = _LAST.sub("", sentence).lower().strip()
    text = _PHONE.sub(r"\1\2\3", text).replace(";", ",").replace("/", " and ")
    text = _ODD.sub("", text).replace(" - ", "")
    text = re.sub(r"(?<!\d)\s*([?.,!])|([?.,!])(?!\d)", lambda found: f" {found[0].strip()} ", text)
    text = re.sub(r"(?<!\S)'|'(?!\S)", "", text)
    words = [WORDS.get(word, word) for word in text.split()]
    return _numbers_together(" ".join(words).replace("'s", " 's").split())


def _numbers_together(words: list[str]) -> str:
    """Join adjacent digits to one number."""
    runs = itertools.groupby(words, key=str.isdecimal)
    return " ".join("".join(run) if digits else " ".join(run) for digits, run in runs)


def token(slot: str, value: str) -> str:
    """Return the token of a value: `@` and letters, digits, underscores."""
    return f"{MARK}{slot}_{re.sub(r'[^0-9A-Za-z]+', '_', value).strip('_')}"


def mark(sentence: str, act: Act) -> str:
    """Replace each value of the act in the sentence by its token."""
    text = f" {sentence} "
    for slot, value in sorted(act.texts, key=lambda pair: len(pair[1]), reverse=True):
        for written in _orders(value):
            if f" {written} " in text:
                text = text.replace(f" {written} ", f" {token(slot, value)} ", 1)
                break
    return text.strip()


def unmark(marked: str, act: Act) -> str:
    """Reverse `mark` for every token of a value of the act."""
    values = {token(slot, value): value for slot, value in act.texts}
    return " ".join(values.get(word, word) for word in marked.split())


def carry(marked: str, act: Act, other: Act) -> str:
    """Return a marked sentence of `act` with the values of `other`, an act that is alike."""
    values = sorted(act.texts, key=lambda pair: pair[0])  # stable: the first `area` for the first `area`
    others = sorted(other.texts, key=lambda pair: pair[0])
    new = {token(*pair): token(*instead) for pair, instead in zip(values, others, strict=True)}
    return " ".join(new.get(word, word) for word in marked.split())


def _orders(value: str) -> list[str]:
    """Return a value with its parts in all orders, the given one first: `a or b`, `b and a`, …"""
    parts = value.replace(" or ", " and ").split(" and ")
    if len(parts) > 4:  # 5 parts would have 240 orders
        return [value]
    orders = [joint.join(order) for joint in (" and ", " or ") for order in itertools.permutations(parts)]
    return list(dict.fromkeys([value, *orders]))
