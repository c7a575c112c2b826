#!/usr/bin/env python3
"""The bound against processor time: how fast potentials of low rank and explicit ones reach their optimum.

    python time_to_optimum.py --text train.txt --valid valid.txt --out curve.tsv [--picture curve.png] [--seconds 30]

It writes a line for each step: potentials, step, seconds, the bounds of both texts, nats per token.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from pathlib import Path

from llrnn_research.markov_field.learning import Progress
from llrnn_research.markov_field.training import FieldOptions, train
from llrnn_research.pictures import need_matplotlib, new_figure, save

CURVES = {"uw": ("uw", "both"), "explicit": ("explicit", "both"), "uw, nested": ("uw", "nested")}
MARKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # seconds of the table
Point = tuple[int, float, float, float]  # step, seconds, bounds of both texts


class TimeIsOver(Exception):
    """Ends a training; always caught."""


def climb(options: FieldOptions, seconds: float) -> list[Point]:
    """Return the steps of one training, until it converges or after so many seconds of processor time."""
    begun, points = time.process_time(), list[Point]()

    def watch(progress: Progress) -> None:
        now = time.process_time() - begun
        points.append((progress.iteration, now, progress.bound, progress.valid or float("nan")))
        if now > seconds:
            raise TimeIsOver

    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(TimeIsOver):
        train(options, str(Path(folder) / "field"), watch)
    return points


def table(curves: dict[str, list[Point]]) -> str:
    """Return the bounds of both texts after so many seconds."""
    last = max(points[-1][1] for points in curves.values())
    marks = [mark for mark in MARKS if mark < last]
    lines = ["| | " + " | ".join(f"{mark} s" for mark in marks) + " | at the end |", "|---" * (len(marks) + 2) + "|"]
    for name, points in curves.items():
        cells = []
        for mark in marks:
            reached = [point for point in points if point[1] <= mark]
            cells.append(f"{reached[-1][2]:.3f}, {reached[-1][3]:.3f}" if reached else "—")
        step, seconds, train_bound, valid_bound = points[-1]
        cells.append(f"{train_bound:.3f}, {valid_bound:.3f} (step {step}, {seconds:.0f} s)")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(curves: dict[str, list[Point]], path: str) -> None:
    """Draw both bounds of every training. Raises OptionError: matplotlib is not installed."""
    need_matplotlib("--picture")
    figure = new_figure(7, 4)
    figure.set_layout_engine("constrained")
    axes = figure.add_subplot(xlabel="seconds of processor time", ylabel="bound, nats per token")
    for number, (name, points) in enumerate(curves.items()):
        seconds = [point[1] for point in points]
        axes.plot(seconds, [point[2] for point in points], f"C{number}:", label=f"{name}, training text")
        axes.plot(seconds, [point[3] for point in points], f"C{number}-", label=f"{name}, other text")
    finite = sorted(point[3] for points in curves.values() for point in points)
    axes.set_ylim(bottom=finite[len(finite) // 20])
    axes.set_xscale("log")
    axes.legend()
    save(figure, Path(path), 100)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--valid", nargs="+", required=True, metavar="FILE")
    parser.add_argument("--words", type=int, default=1000, metavar="V")
    parser.add_argument("--order", type=int, default=2, metavar="K")
    parser.add_argument("--width", type=int, default=30, metavar="D")
    parser.add_argument("--iterations", type=int, default=10_000, metavar="N", help="steps at most (default: no end)")
    parser.add_argument("--seconds", type=float, default=30.0, help="of processor time, for each (default: 30)")
    parser.add_argument("--out", required=True, metavar="FILE", help="all steps, as a table with tabs")
    parser.add_argument("--picture", metavar="FILE.png")
    args = parser.parse_args()
    curves = {}
    for name, (form, method) in CURVES.items():
        options = FieldOptions(
            args.text, args.valid, form, args.order, args.width, args.words, method=method, iterations=args.iterations
        )
        curves[name] = climb(options, args.seconds)
    with open(args.out, "w", encoding="utf-8") as file:
        for name, points in curves.items():
            file.writelines(f"{name}\t{step}\t{at:.2f}\t{a:.5f}\t{b:.5f}\n" for step, at, a, b in points)
    print(table(curves))
    if args.picture:
        draw(curves, args.picture)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
