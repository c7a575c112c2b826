"""Parts of SVG pictures."""

from collections.abc import Iterable
from html import escape

OURS, OTHER, LINE = "#0b5394", "#555555", "#d0d0d0"


def picture(width: float, height: float, parts: Iterable[str]) -> str:
    """Return a picture on white."""
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="13">\n<rect width="{width}" height="{height}" fill="white"/>'
    )
    return "\n".join([start, *parts, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, anchor: str = "start", colour: str = "black") -> str:
    """Return text. anchor: start, middle or end."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'
