"""The tiny language as a grammar, and what a search wrote in it."""

from __future__ import annotations

import re

from shell import Result
from tiny_world import ADJECTIVES, ARTICLES, NOUNS, VERBS


def grammar() -> str:
    """The tiny language: a phrase, a verb, and a phrase or `bien`; uniform, as a set of strings."""
    lines = []
    for first, last in ((0, 10), (11, 20)):  # the phrases before and behind the verb
        for k, gender in enumerate(("Masc", "Fem")):
            article, noun = first + 1 + 2 * k, first + 2 + 2 * k
            lines += [f"{first} {article} {word}" for word in ARTICLES[gender]]
            lines += [f"{article} {noun} {word}" for word in NOUNS[gender]]
            lines += [f"{noun} {last} {word}" for word in ADJECTIVES[gender]]
            if last == 10:  # an adjective may be left out
                lines += [f"{noun} 11 {verb}" for verb in VERBS]
            else:
                lines.append(f"{noun}")
    lines += [f"10 11 {verb}" for verb in VERBS] + ["11 20 bien", "20"]
    return "\n".join(lines) + "\n"


def in_the_language(words: list[str]) -> bool:
    """By a regular expression over the words' kinds."""
    kind = {"bien": "b"} | dict.fromkeys(VERBS, "v")
    for gender, sign in (("Masc", "m"), ("Fem", "f")):
        kind |= dict.fromkeys(ARTICLES[gender], sign) | dict.fromkeys(NOUNS[gender], sign.upper())
        kind |= dict.fromkeys(ADJECTIVES[gender], {"m": "a", "f": "e"}[sign])
    spelled = "".join(kind.get(word, "?") for word in words)
    return re.fullmatch(r"(mMa?|fFe?)v(mMa?|fFe?|b)", spelled) is not None


def hypotheses(found: Result) -> list[tuple[float, list[str]]]:
    """What a search wrote, in order: score in base 2, and words."""
    return [(score, words.split()) for some in found.hypotheses().values() for score, words in some]
