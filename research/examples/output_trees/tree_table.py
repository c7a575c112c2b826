"""The tables of trained and timed models, and the picture of the curves."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

from tree_models import OUTPUTS
from tree_training import NETWORKS


def results(out: Path, network: str) -> dict[str, list[dict[str, Any]]]:
    """Return the measured results of the trainings with the tuned rates: row -> seeds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in OUTPUTS:
        paths = sorted((out / "models").glob(f"{network}-{row}-[0-9].json"))
        if paths:
            found[row] = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return found


def table(out: Path) -> None:
    times = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (out / "times").glob("*.json")}
    for network in NETWORKS:
        of_network = results(out, network)
        if not of_network:
            continue
        head = "output | validation | test | train ms/batch | test ms/batch | whole update, ms | seeds"
        print(f"\n{network}\n\n| {head} |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for row, runs in of_network.items():
            valid, test = (statistics.fmean(run[split] for run in runs) for split in ("valid", "test"))
            whole = statistics.fmean(1000 * run["seconds"] / run["updates"] for run in runs)
            changes = statistics.fmean(1000 * run["tree_seconds"] / run["updates"] for run in runs)
            ms = times.get(row, {"train": math.nan, "test": math.nan})
            alone = ms["train"] + changes
            print(f"| {row} | {valid:.1f} | {test:.1f} | {alone:.1f} | {ms['test']:.1f} | {whole:.0f} | {len(runs)} |")
    draw(out)


def draw(out: Path) -> None:
    """Draw validation perplexity by epoch (like Figure 3.9)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    networks = {network: found for network in NETWORKS if (found := results(out, network))}
    figure, panels = pyplot.subplots(1, len(networks), figsize=(5.5 * len(networks), 4), squeeze=False)
    for panel, (network, of_network) in zip(panels[0], networks.items(), strict=True):
        for row, runs in of_network.items():
            curve = runs[0]["curve"]
            width = 2.2 if row.startswith("learned") else 1.1
            panel.plot([p["epoch"] for p in curve], [p["valid"] for p in curve], label=row, linewidth=width)
        panel.set(title=f"llrnn_{'lm' if network == 'lstm' else network}", xlabel="epochs", ylabel="perplexity")
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter("{x:.0f}")
        panel.yaxis.set_minor_formatter("{x:.0f}")
        panel.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(out / "curves.png", dpi=120)
    print(f"\n{out / 'curves.png'}")
