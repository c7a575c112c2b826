"""The table as a picture (SVG): bits per character with intervals, and bits per word of seen and unseen words.

The interval is that of the difference from ours, at the place of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from fairseq_llrnn.comparison.bootstrap import LEVEL
from fairseq_llrnn.comparison.rows import Row
from fairseq_llrnn.comparison.settings import WITH_OURS

ROW, TOP, BOTTOM, GAP = 24, 34, 44, 44  # heights of a row, and above and below all rows; space between panels
LETTER, SMALL = 7.2, 11  # width of a letter of a title, size of small letters
LEFT, RIGHT = 16, 16
OWN, OTHER, LINE = "#0b5394", "#555555", "#d0d0d0"
MOST_TICKS = 5


class Panel(NamedTuple):
    """A measure of all rows."""

    title: str
    width: int
    value: Callable[[Row], float]
    has_intervals: bool = False


PANELS = (
    Panel("bits per character", 300, lambda row: row.test, has_intervals=True),
    Panel("bits per seen word", 150, lambda row: row.seen),
    Panel("bits per unseen word", 150, lambda row: row.unseen),
)


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers that enclose two numbers, at most MOST_TICKS + 2."""
    rough = max(high - low, 1e-6) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first = math.floor(low / step + 1e-9)
    return [number * step for number in range(first, math.ceil(high / step - 1e-9) + 1)]


def as_svg(rows: Sequence[Row]) -> str:
    """Return the picture of the rows that have figures."""
    shown = [row for row in rows if row.failure is None]
    label = round(LETTER * max((len(row.title) for row in shown), default=0)) + LEFT
    width = label + sum(panel.width + GAP for panel in PANELS) + RIGHT
    height = TOP + ROW * len(shown) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, row in enumerate(shown):
        parts.append(_text(label - 8, _middle(number) + 4, row.title, "end", _colour(row)))
    begin = label + GAP // 2
    for panel in PANELS:
        parts += _drawn(panel, shown, begin, height)
        begin += panel.width + GAP
    note = f"lines: {LEVEL:.0%} intervals of the differences from ours, the best of our models on the validation text"
    parts.append(_text(label + GAP // 2, height - 6, note, "start", OTHER, SMALL))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _drawn(panel: Panel, rows: Sequence[Row], begin: float, height: int) -> Iterator[str]:
    """Yield the elements of a panel."""
    bars = [_bar(panel, row) for row in rows]
    numbers = [number for bar in bars for number in bar if math.isfinite(number)]
    marks = ticks(min(numbers), max(numbers)) if numbers else []
    end = height - BOTTOM + 4

    def place(value: float) -> float:
        return begin + panel.width * (value - marks[0]) / ((marks[-1] - marks[0]) or 1)

    yield _text(begin + panel.width / 2, TOP - 16, panel.title, "middle", "black")
    places = max(0, -math.floor(math.log10(marks[1] - marks[0]) + 1e-9)) if len(marks) > 1 else 1
    for mark in marks:
        yield f'<path d="M{place(mark):.1f} {TOP - 6}V{end}" stroke="{LINE}"/>'
        yield _text(place(mark), end + 14, f"{mark:.{places}f}", "middle", OTHER, SMALL)
    for number, (row, (low, value, high)) in enumerate(zip(rows, bars, strict=True)):
        if not math.isfinite(value):
            continue
        y, colour = _middle(number), _colour(row)
        if high > low:
            yield f'<path d="M{place(low):.1f} {y}H{place(high):.1f}" stroke="{colour}" stroke-width="2"/>'
        fill = colour if row.name in WITH_OURS else "white"
        yield f'<circle cx="{place(value):.1f}" cy="{y}" r="3.5" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'


def _bar(panel: Panel, row: Row) -> tuple[float, float, float]:
    """Return the beginning of the interval, the value and the end of the interval."""
    value = panel.value(row)
    if not panel.has_intervals or row.difference is None:
        return value, value, value
    ours = value - row.difference.value
    return ours + row.difference.low, value, ours + row.difference.high


def _middle(number: int) -> int:
    return TOP + ROW * number + ROW // 2


def _colour(row: Row) -> str:
    return OWN if row.name in WITH_OURS else OTHER


def _text(x: float, y: float, text: str, anchor: str, colour: str, size: int | None = None) -> str:
    sized = "" if size is None else f' font-size="{size}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{sized}>{escape(text)}</text>'
