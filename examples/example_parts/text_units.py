"""Convert a text to other units: characters, or subword pieces; and write their dictionaries.

A model gives a probability to the same lines of text in any units, so that bits per character can be compared
(`unit_bits.py`).
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

BLANK = "\N{LOWER ONE EIGHTH BLOCK}"  # ▁, for a blank among characters


def as_characters(line: str) -> str:
    """Split a line into characters, blanks included."""
    return " ".join(BLANK if c == " " else c for c in line)


def character_symbols(lines: Sequence[str]) -> Counter[str]:
    """Count every character of the training text."""
    return Counter(symbol for line in lines for symbol in as_characters(line).split(" "))


def write_dictionary(path: Path, counts: Counter[str]) -> None:
    """Write fairseq's dict.txt, the most frequent symbols first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    path.write_text("".join(f"{symbol} {count}\n" for symbol, count in ordered), encoding="utf-8")


def lines_of(path: Path) -> list[str]:
    """Return the lines of a text, with words between single blanks."""
    return [" ".join(line.split()) for line in path.read_text(encoding="utf-8").removesuffix("\n").split("\n")]
