"""The picture docs/results/lexicons.svg: bits per unseen word of our models without and with a lexicon.

`python scripts/check_results.py --write` draws it from the ledger.
"""

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal

from ledger import Run
from svg import LINE, OTHER, OURS, picture, text

PICTURE = "docs/results/lexicons.svg"
ROW, TOP, LEFT, WIDTH, RIGHT, BOTTOM = 24, 56, 90, 460, 24, 44
STEP = 2  # bits, of the axis


def pairs(runs: Mapping[str, Run]) -> list[tuple[str, Decimal, Decimal]]:
    """Return each language with its bits without and with a lexicon, the largest gain first."""
    found = []
    for key, run in runs.items():
        family, _, rest = key.partition("/")
        if family == "unlisted" and rest.endswith("/ours"):
            found.append((run["data"].partition(",")[0], run["unseen"], runs[f"compare/{rest}"]["unseen"]))
    return sorted(found, key=lambda pair: pair[2] - pair[1])


def drawn(runs: Mapping[str, Run]) -> str:
    """Return the picture."""
    return picture(LEFT + WIDTH + RIGHT, TOP + ROW * len(pairs(runs)) + BOTTOM, _drawn(runs))


def _drawn(runs: Mapping[str, Run]) -> Iterator[str]:
    shown = pairs(runs)
    values = [value for _, *both in shown for value in both]
    first = STEP * math.floor(min(values, default=0) / STEP)
    last = STEP * math.ceil(max(values, default=STEP) / STEP)
    end = TOP + ROW * len(shown)

    def place(bits: Decimal | int) -> float:
        return LEFT + 12 + (WIDTH - 24) * float((bits - first) / Decimal(last - first))

    for x, words, colour in ((LEFT + 18, "with a lexicon", OURS), (LEFT + 158, "without", OTHER)):
        yield _mark(x, 26, colour)
        yield text(x + 12, 30, words)
    for bits in range(first, last + 1, STEP):
        yield f'<path d="M{place(bits):.1f} {TOP - 8}V{end}" stroke="{LINE}"/>'
        yield text(place(bits), end + 16, str(bits), "middle", OTHER)
    yield text(LEFT + WIDTH / 2, end + 34, "bits per unseen word", "middle", OTHER)
    for number, (language, without, listed) in enumerate(shown):
        y = TOP + ROW * number + ROW // 2 - 4
        yield text(LEFT - 10, y + 4, language, "end")
        yield f'<path d="M{place(listed):.1f} {y}H{place(without):.1f}" stroke="{OURS}" stroke-width="2"/>'
        yield _mark(place(without), y, OTHER)
        yield _mark(place(listed), y, OURS)


def _mark(x: float, y: float, colour: str) -> str:
    fill = colour if colour == OURS else "white"
    return f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'
