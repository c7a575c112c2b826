"""Parts of speech that stand where terms have words: `dog | NOUN => pes`, `dog => pes|Noun`, `dog<TAB>pes (noun)`.

Whatever else is behind a bar, behind a slash or in brackets may be a word: `spare|part`, `km / h`, `noun/verb`, and
abbreviations: `USB / AUX`, `adenosine diphosphate (ADP)`, `Datenverarbeitung (ADV)`.
"""

from __future__ import annotations

import re
from collections.abc import Container

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.stored_terms import TermEntry
from fairseq_llrnn.evidence.terms_file import UPOS

_TAG = "|".join(kind for kind in UPOS if kind != "X")
_NAME = r"(?!ADV\b)(?i:noun|propn|verb|adj(?:ective)?|adv(?:erb)?)"
_MISPLACED = re.compile(
    rf"(?:\| ?(?:{_TAG}|Noun|Propn|Verb|Adj|Adv)|/(?:NOUN|PROPN|VERB|ADJ)|(?<!\S)[|/] {_NAME}|\( ?{_NAME} ?\))\Z"
)


def refuse_misplaced_kinds(entry: TermEntry, source: Container[str], target: Container[str]) -> None:
    """Raise DataError for a phrase that ends in a part of speech, unless the dictionary has its last words.

    Args:
        source, target: the words of both languages.
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
