"""Parts of speech that stand where terms have words: `dog | NOUN => pes`, `dog => pes|NOUN`, `dog<TAB>pes | NOUN`."""

from __future__ import annotations

import re
from collections.abc import Container

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.terms_file import UPOS, TermEntry

# What stands behind a bar. In small letters, and without blanks, it may be a word: `spare|part`, `a|x`.
_KIND = "|".join(kind for kind in UPOS if kind != "X")
_MISPLACED = re.compile(rf"(?:.* )?\| (?i:NOUN|PROPN|VERB|ADJ|ADV)|.*\| ?(?:{_KIND})")


def refuse_misplaced_kinds(entry: TermEntry, source: Container[str], target: Container[str], how: str) -> None:
    """Raise DataError for a phrase that ends in a bar and a part of speech, unless the dictionary has them.

    Args:
        source, target: the words of both languages. how: where a part of speech belongs.
    """
    for side, words, known in (("source", entry.source, source), ("target", entry.target.split(), target)):
        phrase = " ".join(words)
        if _MISPLACED.fullmatch(phrase):
            last = words[-1:] if "|" in words[-1] else words[-2:]
            if not all(word in known for word in last):
                raise DataError(
                    f"{entry.where}: expected words as the {side}, found {phrase!r}, with a part of speech; {how}"
                )
