"""The sentences that are worth reading: those in which the systems' sentence scores lie furthest apart."""

import difflib
from collections.abc import Sequence

import numpy as np

from fairseq_llrnn.evaluation.words import plain, spans

MOST_WORDS = 300  # of a line that is shown: comparing takes quadratic time

Piece = tuple[str, bool]  # a stretch of text, and whether it is unlike the reference


def most_different(scores: np.ndarray, count: int) -> list[int]:
    """Numbers of at most `count` sentences of (N, Y) scores, the widest range first; of one system, the worst first.

    Sentences in which all systems score alike are left out (of one system: those that are perfect).
    """
    least = scores.min(axis=1)  # shape: (N,)
    ranges = (scores.max(axis=1) if scores.shape[1] > 1 else 100.0) - least
    order = np.argsort(-ranges, kind="stable")
    return [int(n) for n in order[:count] if ranges[n] > 1e-9]


def pieces(output: str, reference: str) -> list[Piece]:
    """The output cut into stretches, those that difflib does not find in the reference in this order marked.

    Joined, they are the output without Moses' escapes, or its first MOST_WORDS words.
    """
    text = plain(output)
    wanted = plain(reference)
    places = spans(text)[:MOST_WORDS]
    own = [text[a:b] for a, b in places]
    others = [wanted[a:b] for a, b in spans(wanted)[:MOST_WORDS]]
    found: list[Piece] = []
    end = 0
    for name, first, last, _, _ in difflib.SequenceMatcher(None, own, others, autojunk=False).get_opcodes():
        if first == last:
            continue
        start, stop = places[first][0], places[last - 1][1]
        if start > end:
            found.append((text[end:start], False))
        found.append((text[start:stop], name != "equal"))
        end = stop
    return found


def shortened(line: str) -> str:
    """A plain line, cut where `pieces` cuts."""
    text = plain(line)
    places: Sequence[tuple[int, int]] = spans(text)
    return text if len(places) <= MOST_WORDS else text[: places[MOST_WORDS - 1][1]] + " …"
