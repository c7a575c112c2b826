"""Draw the sweep: log-perplexity against M in both modes, with the softmaxes as horizontal lines."""

import os
import textwrap
from pathlib import Path

from experiments import BEST_M, HONEST, MODES, PAPER, SWEEP
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from results import Result, Results
from tables import PAPER_LOSS

# Colours that colour-blind readers can tell apart (Okabe & Ito).
LINES = {
    "valid": ("Validation", "#999999", "s"),
    "test1": ("Test1", "#0072B2", "o"),
    "test2": ("Test2", "#D55E00", "^"),
}
TITLES = {PAPER: "paper mode: features and counts of all texts", HONEST: "honest mode: training text only"}
SOFTMAXES = ("softmax-stock", "softmax-strong", "softmax-adaptive", "softmax-adaptive-wider")


def draw_sweep(results: Results, path: Path) -> None:
    """Write the picture. Unfinished models are left out."""
    figure = Figure(figsize=(13, 5), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    levels = [draw_mode(panel, results, mode) for panel, mode in zip(panels, MODES, strict=True)]
    for panel, lines in zip(panels, levels, strict=True):
        name_levels(panel, lines)
    panels[0].set_ylabel("nats per token (sentence ends included)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9, frameon=False)
    temporary = path.with_name(path.name + ".tmp")
    figure.savefig(temporary, dpi=150, format="png", metadata={"Software": None})
    os.replace(temporary, path)


Level = tuple[Result, str]  # and its colour


def draw_mode(panel: Axes, results: Results, mode: str) -> list[Level]:
    """Draw one panel, and return its horizontal lines, still without names."""
    # Evenly spaced: 2,000, 2,500 and 3,000 would lie upon each other on any scale that also shows 10.
    place = {top: number for number, top in enumerate(SWEEP)}
    for subset, (label, colour, marker) in LINES.items():
        swept = [(place[top], result.loss(subset)) for top in SWEEP for result in results.get(f"{mode}-m{top}")]
        if swept:
            panel.plot(*zip(*swept, strict=True), color=colour, marker=marker, markersize=5, label=label)
    names = [*SOFTMAXES, f"{mode}-softmax-unigram"]
    levels = [(result, "#555555") for result in results.get(*names)]
    best = results.best(mode)
    if best is not None and best.model.group != "sweep":
        levels.append((best, "#007A5A"))
    for result, colour in levels:
        panel.axhline(
            result.test_loss, color=colour, linestyle="--" if result.model.group == "softmax" else "-", linewidth=1
        )
    if mode == PAPER:
        panel.scatter(
            [place[BEST_M]], [PAPER_LOSS["test1"]], marker="*", s=110, color="black", zorder=5, label="the paper, Test1"
        )
    panel.set_xticks(range(len(SWEEP)), [f"{top:,}" for top in SWEEP], fontsize=8)
    panel.set_xlim(-0.4, len(SWEEP) - 0.6)
    panel.set_xlabel("M, words with an identity of their own")
    panel.set_title(TITLES[mode], fontsize=10)
    panel.grid(axis="y", alpha=0.3)
    return levels


def name_levels(panel: Axes, levels: list[Level]) -> None:
    """Write the lines' names next to the panel, moved apart if two lines are close."""
    low, high = panel.get_ylim()
    gap, free = (high - low) / 13, low
    for result, colour in sorted(levels, key=lambda level: level[0].test_loss):
        height = max(result.test_loss, free)
        free = height + gap
        panel.annotate(
            "\n".join(textwrap.wrap(f"{result.test_loss:.2f} {result.model.what}", 30)),
            (1, result.test_loss),
            xycoords=("axes fraction", "data"),
            xytext=(1.03, height),
            textcoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
            color=colour,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "relpos": (0, 0.5)},
        )
