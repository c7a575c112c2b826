"""What a user's regular expression may not ask for: calls of its own groups, and repeats that would fill the memory.

The `regex` package writes out what has to be repeated, and follows `(?R)` for ever; a time limit of a match stops
neither before the memory is full. So an expression is read here before it is compiled. Where the reading is simpler
than the package's, as inside comments of `(?x)`, it counts too much.
"""

from __future__ import annotations

import re

MOST_PIECES = 100_000  # characters and groups when repeats are written out: below 0.1 GB

# An escaped character, a set of characters, the beginning of a group, its end, a repeat, or anything else
_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<call>\(\?(?:R|[+-]?\d|&|P[>&]))|(?P<begin>\()|(?P<end>\))"
    r"|\{(?P<least>[0-9]*)(?:,[0-9]*)?\}|.",
    re.DOTALL,
)
_VERBOSE = re.compile(r"\(\?[a-zA-Z0-9-]*x")
_BROKEN_REPEAT = re.compile(r"\{[0-9,]*[\s#]")  # the package reads `{ 2 0 }` in (?x) as 20


def refused(expression: str) -> str | None:
    """What is wrong with an expression, for a message; None for one that may be compiled."""
    is_verbose = _VERBOSE.search(expression) is not None
    if is_verbose and _BROKEN_REPEAT.search(expression):
        return "has a blank or a comment in a repeat; write repeats as {3} or {2,5}, also after (?x)"
    groups = [0]  # the pieces of each open group
    last = 0  # those of what a repeat would repeat
    product = 1
    for found in _PIECE.finditer(expression):
        if found["call"] is not None:
            return "calls a group of itself, which may have no end; write out what the group says"
        if found["begin"] is not None:
            groups.append(0)
            last = 0
        elif found["end"] is not None:
            last = groups.pop() + 1
            groups = groups or [0]
            groups[-1] += last
        elif found["least"] is not None:
            times = int(found["least"].lstrip("0")[:9] or 0)
            groups[-1] += last * max(times - 1, 0)
            last *= max(times, 1)
            product *= max(times, 1)
        else:
            groups[-1] += 1
            last = 1
    pieces = len(expression) * product if is_verbose else sum(groups)
    if pieces > MOST_PIECES:
        return f"has more than {MOST_PIECES:,} characters when its repeats are written out; repeat less, or use + or *"
    return None
