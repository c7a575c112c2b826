"""TOML of users, which is untrusted input: read within limits of time and memory.

Python's own reader needs time and memory that grow with the square of a key's parts (`a.a.a…`), follows nested brackets
until its stack ends, and accepts integers with more digits than Python prints. So a text is checked before it is
parsed. The check is simpler than Python's parser, for example for floats, and there it counts too much.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from fairseq_llrnn.files.reading import read_whole

LONGEST = 1 << 18  # bytes
MOST_PARTS = 8  # of a key
LONGEST_WORD = 1_000  # characters of a name without quotes, or of a number

# Possessive and atomic, so that nothing is read twice. A string without an end extends as far as in Python's parser.
_STRING = r'"""(?>\\?.)*?(?:"{3,5}|\Z)' + r"|'''.*?(?:'{3,5}|\Z)" + r'|"(?>\\?[^\n])*?(?:"|(?=\n)|\Z)' + r"|'[^\n']*+'?"
_WORD = "[A-Za-z0-9_-]"
_PART = rf"(?:{_STRING}|{_WORD}{{1,{LONGEST_WORD}}}+)"
_DOT = r"[ \t]*+\.[ \t]*+"
_BEYOND = rf"(?P<parts>{_DOT}{_PART})|(?P<word>(?<={_WORD}){_WORD})"
# a comment, or a possible key
_KEY = re.compile(rf"#[^\n]*+|{_PART}(?>(?:{_DOT}{_PART}){{0,{MOST_PARTS - 1}}})(?:{_BEYOND})?", re.DOTALL)


def read_toml(path: Path | str, errors: str = "strict") -> dict[str, Any]:
    """Return the contents of a file.

    Args:
        errors: as in `bytes.decode`.

    Raises:
        OSError, DataError: as `read_whole`.
        ValueError: no UTF-8, or as `parsed_toml`.
    """
    return parsed_toml(read_whole(path, LONGEST).decode("utf-8-sig", errors))


def parsed_toml(text: str) -> dict[str, Any]:
    """Return the contents of a text. Raises ValueError for invalid TOML, or beyond the limits."""
    for key in _KEY.finditer(text):
        if key.lastgroup is not None:
            most = f"{MOST_PARTS} parts in a key" if key["parts"] else f"{LONGEST_WORD:,} characters in a number or key"
            raise ValueError(f"more than {most} (at line {text.count(chr(10), 0, key.start()) + 1})")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("too many nested brackets") from None
