"""What stands where terms have words: parts of speech (`dog | NOUN => pes`, `dog => pes|Noun`, `dog<TAB>pes (noun)`),
and several words with commas (`pes,psa`).

Whatever else is behind a bar, behind a slash or in brackets may be a word: `spare|part`, `km / h`, `noun/verb`, and
abbreviations: `USB / AUX`, `adenosine diphosphate (ADP)`, `Datenverarbeitung (ADV)`.
"""

from __future__ import annotations

import re
from collections.abc import Container

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.stored_terms import TermEntry
from fairseq_llrnn.lexicon.ud import UPOS

_TAG = "|".join(kind for kind in UPOS if kind != "X")
_NAME = r"(?!ADV\b)(?i:noun|propn|verb|adj(?:ective)?|adv(?:erb)?)"
_MISPLACED = re.compile(
    rf"(?:\| ?(?:{_TAG}|Noun|Propn|Verb|Adj|Adv)|/(?:NOUN|PROPN|VERB|ADJ)|(?<!\S)[|/] {_NAME}|\( ?{_NAME} ?\))\Z"
)


_LISTED = re.compile(r"[^\W\d_][,;]([^\W\d_]|\Z)")  # between words; `1,2-dioxan` is one


def refuse_lists(entry: TermEntry, source: Container[str], target: Container[str]) -> None:
    """Raise DataError for several words with commas between them, unless the dictionary has that as one.

    Args:
        source, target: the words of both languages.
    """
    of_target = [word for phrase in (entry.target, *entry.forms) for word in phrase.split()]
    for side, words, known in (("source", entry.source, source), ("target", of_target, target)):
        wrong = next((word for word in words if _LISTED.search(word) and word not in known), None)
        if wrong is not None:
            raise DataError(
                f"{entry.where}: expected one {side} in tokens, as the text has them, found {wrong!r}; write a row for "
                "each source, the forms of a target in the fourth column of a TSV, with | between them, and a comma "
                "that belongs to the phrase as a token of its own"
            )


def refuse_misplaced_kinds(entry: TermEntry, source: Container[str], target: Container[str]) -> None:
    """Raise DataError for a phrase that ends in a part of speech, unless the dictionary has its last words.

    Args:
        source, target: as of `refuse_lists`.
    """
    for side, words, known in (("source", entry.source, source), ("target", entry.target.split(), target)):
        phrase = " ".join(words)
        if (found := _MISPLACED.search(phrase)) is None:
            continue
        if not all(word in known for word in words[phrase.count(" ", 0, found.start()) :]):
            raise DataError(
                f"{entry.where}: expected words as the {side}, found {phrase!r}, with a part of speech; write that "
                f"{entry.kind_place}"
            )
