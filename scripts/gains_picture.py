"""The picture docs/results/gains.svg: bits per character that other models need more than ours, by language.

`python scripts/check_results.py --write` draws it from the ledger. Networks are mixed with n-grams where
the ledger has the mixture.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from ledger import Run
from svg import LINE, OTHER, OURS, picture, text

PICTURE = "docs/results/gains.svg"
ROW, TOP, LEFT, WIDTH, RIGHT, BOTTOM = 20, 62, 150, 480, 24, 30
STEP = Decimal("0.05")  # of the axis
MODELS = {"n-grams": 0, "softmax over words": 90, "softmax over BPE": 250, "characters": 400}  # places


class Language(NamedTuple):
    name: str
    gaps: tuple[Decimal | None, ...]  # of MODELS
    std: Decimal | None  # of ours


def _gaps(runs: Mapping[str, Run], ours: str, others: Sequence[Sequence[str]]) -> tuple[Decimal | None, ...]:
    """Return the gap of the first run of each row of keys that there is."""
    found = [next((runs[key] for key in keys if key in runs), None) for keys in others]
    return tuple(None if run is None else run["value"] - runs[ours]["value"] for run in found)


def groups(runs: Mapping[str, Run]) -> list[tuple[str, list[Language]]]:
    """Return the languages without and with a lexicon, the largest gain over the best other model first."""
    found: dict[str, list[Language]] = {"without a lexicon": [], "with a lexicon for all word models": []}
    for key, run in runs.items():
        place, _, model = key.rpartition("/")
        if place.startswith("compare/") and model == "mixed-ours":
            networks = [[f"{place}/mixed-{kind}", f"{place}/{kind}"] for kind in ("softmax", "pieces", "characters")]
            gaps = _gaps(runs, key, [[f"{place}/ngrams"], *networks])
            name = run["data"].partition(",")[0].partition(" (")[0]
            title = [*found]["--spelling-lexicon" in run["command"]]
            found[title].append(Language(name, gaps, run.get("std")))

    def least(language: Language) -> Decimal:
        return min(gap for gap in language.gaps if gap is not None)

    return [(title, sorted(languages, key=least, reverse=True)) for title, languages in found.items() if languages]


def drawn(runs: Mapping[str, Run]) -> str:
    """Return the picture."""
    rows = sum(1 + len(languages) for _, languages in groups(runs))
    return picture(LEFT + WIDTH + RIGHT, TOP + ROW * rows + BOTTOM, _drawn(runs))


def _drawn(runs: Mapping[str, Run]) -> Iterator[str]:
    shown = groups(runs)
    gaps = [gap for _, languages in shown for language in languages for gap in language.gaps if gap is not None]
    first, last = math.floor(min([Decimal(0), *gaps]) / STEP), math.ceil(max([STEP, *gaps]) / STEP)
    marks = [STEP * number for number in range(first, last + 1)]

    def place(gap: Decimal) -> float:
        return LEFT + 12 + (WIDTH - 12) * float((gap - marks[0]) / (marks[-1] - marks[0]))

    end = TOP + ROW * sum(1 + len(languages) for _, languages in shown)
    yield text(LEFT, 16, "bits per character more than ours, every string possible")
    for number, (model, x) in enumerate(MODELS.items()):
        x += 30
        yield _mark(number, x, 36)
        yield text(x + 10, 40, model)
    for mark in marks:
        colour, width = (LINE, 1) if mark else (OURS, 2)
        yield f'<path d="M{place(mark):.1f} {TOP - 8}V{end}" stroke="{colour}" stroke-width="{width}"/>'
        if mark % (2 * STEP) == 0:
            yield text(place(mark), end + 16, f"{mark:+}" if mark else "ours", "middle", OTHER if mark else OURS)
    y: float = TOP
    for title, languages in shown:
        yield text(LEFT + 20, y + 12, title, colour=OTHER)
        y += ROW
        for language in languages:
            middle = y + ROW // 2 - 4
            yield text(LEFT - 10, middle + 4, language.name, "end")
            if language.std:
                ends = f"M{place(-language.std):.1f} {middle}H{place(language.std):.1f}"
                yield f'<path d="{ends}" stroke="{OURS}" stroke-width="5"/>'
            for number, gap in enumerate(language.gaps):
                if gap is not None:
                    yield _mark(number, place(gap), middle)
            y += ROW


def _mark(number: int, x: float, y: float) -> str:
    shapes = (
        f'<path d="M{x - 4:.1f} {y - 4}h8v8h-8z" fill="none"',
        f'<circle cx="{x:.1f}" cy="{y}" r="4.5" fill="{OTHER}"',
        f'<path d="M{x:.1f} {y - 5}l5 9h-10z" fill="white"',
        f'<path d="M{x - 5:.1f} {y - 5}l10 10m0 -10l-10 10" fill="none"',
    )
    return f'{shapes[number]} stroke="{OTHER}" stroke-width="1.5"/>'
