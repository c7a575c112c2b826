"""Plot accuracy on valid against processor time, from the logs of `discourse_rows.py train`.

    learning_curves.py --out OUT --picture FILE.png ROW …

It prints, for each row and objective, the best accuracy on valid with its time, and the last one.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from discourse_tables import COLUMNS

from fairseq_llrnn.errors import DataError, one_line_errors
from llrnn_research.pictures import need_matplotlib, new_figure, save

Curves = dict[str, list[tuple[float, float]]]  # of an objective: seconds and accuracy of each validation
CHANCE = "chance"


def read_curves(log: Path) -> tuple[Curves, dict[str, float]]:
    """Return the curves of a row, and chance on valid. Raises DataError: no log, or one without a validation."""
    if not log.is_file():
        raise DataError(f"{log}: expected the log of a row, found no such file; train the row first")
    curves: Curves = {}
    chance: dict[str, float] = {}
    seconds = 0.0
    for found in _messages(log.read_text(encoding="utf-8").splitlines()):
        seconds = float(found.get("seconds", seconds))
        for name in COLUMNS:
            if (accuracy := found.get(f"valid_{name}_accuracy")) is not None:
                curves.setdefault(name, []).append((seconds, float(accuracy)))
                chance[name] = float(found[f"valid_{name}_{CHANCE}"])
    if not curves:
        raise DataError(f"{log}: expected accuracies on valid, found none; train the row for longer")
    return curves, chance


def _messages(lines: Iterable[str]) -> Iterable[dict[str, str]]:
    """Yield the log's messages on validations and seconds."""
    for line in lines:
        for said_by in (" | valid | ", " | discourse_rows | "):
            _, found, message = line.partition(said_by)
            if found and message.startswith("{"):
                yield json.loads(message)


def table(rows: dict[str, Curves]) -> str:
    """Return accuracies in percent, and seconds of processor time."""
    lines = ["| | objective | best on valid | at | at the end | at |", "|---|---|---|---|---|---|"]
    for row, curves in rows.items():
        for name, points in curves.items():
            at, best = max(points, key=lambda point: point[1])
            end, last = points[-1]
            lines.append(f"| {row} | {name.upper()} | {100 * best:.1f} | {at:.0f} s | {100 * last:.1f} | {end:.0f} s |")
    return "\n".join(lines)


def draw(rows: dict[str, Curves], chance: dict[str, float], path: Path) -> None:
    """Draw a panel for each objective. Raises OptionError: matplotlib is not installed."""
    need_matplotlib("--picture")
    named = [name for name in COLUMNS if name in chance]
    figure = new_figure(4 * len(named), 3.6)
    figure.set_layout_engine("constrained")
    for place, name in enumerate(named, 1):
        axes = figure.add_subplot(1, len(named), place, title=name.upper(), xlabel="seconds of processor time")
        axes.axhline(100 * chance[name], color="grey", linestyle=":", label=CHANCE)
        for number, (row, curves) in enumerate(rows.items()):
            points = curves.get(name, [])
            if points:
                axes.plot(*zip(*((at, 100 * value) for at, value in points), strict=True), f"C{number}-", label=row)
        axes.set_ylabel("accuracy on valid, %" if place == 1 else "")
        axes.legend(fontsize="small")
    save(figure, path, 100)


def show(names: Sequence[str], out: Path, picture: Path | None) -> int:
    found = {row: read_curves(out / row / "train.log") for row in names}
    rows = {row: curves for row, (curves, _) in found.items()}
    print(table(rows))
    if picture:
        draw(rows, {name: value for _, of_row in found.values() for name, value in of_row.items()}, picture)
    return 0


@one_line_errors("learning_curves.py")
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("rows", nargs="+", metavar="ROW")
    parser.add_argument("--out", type=Path, required=True, help="of `discourse_rows.py train`")
    parser.add_argument("--picture", type=Path, metavar="FILE.png")
    args = parser.parse_intermixed_args()
    return show(args.rows, args.out, args.picture)


if __name__ == "__main__":
    sys.exit(main())
