"""Write the results as a page and a picture: adaptation.md, adaptation.png."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from outcome import GENERAL_MODEL, Outcomes, read_outcomes
from systems import PERCENTS, SYSTEMS

from fairseq_llrnn.files.atomic_write import write_lines

PAGE, PICTURE = "adaptation.md", "adaptation.png"
# Colours that colour-blind readers can tell apart (Okabe & Ito).
LOOKS = {
    "general": ("#000000", "none", "--"),
    "softmax": ("#999999", "s", "-"),
    "log-linear": ("#E69F00", "D", "-"),
    "fine-tuned": ("#0072B2", "o", "-"),
    "interpolated": ("#56B4E9", "v", "-"),
    "n-gram": ("#CC79A7", "^", "-"),
    "neural": ("#D55E00", "P", "-"),
    "neural-and-n-gram": ("#009E73", "X", "-"),
    "fine-tuned-interpolated": ("#0072B2", "v", ":"),
    "neural-interpolated": ("#009E73", "v", ":"),
}


def write_report(out: Path, results: Path) -> None:
    """Write both. Raises OptionError if nothing is finished."""
    outcomes, texts = read_outcomes(out)
    results.mkdir(parents=True, exist_ok=True)
    draw(outcomes, results / PICTURE)
    write_lines(results / PAGE, list(_page(outcomes, texts)))
    print(f"written: {results / PAGE}, {results / PICTURE}")


def _page(outcomes: Outcomes, texts: dict[str, Any]) -> Iterator[str]:
    domains = list(dict.fromkeys(domain for domain, _ in outcomes))
    yield from (
        "# Adaptation to a domain",
        "",
        "Made by `examples/adaptation/run.sh`; examples/adaptation/README.md describes the systems and their training.",
        "Figures are base-e log-perplexities per token of each domain's test text,",
        f"sentence ends included. One vocabulary of {texts['words']:,} words serves all models; all other words are",
        "`<unk>`. Of the recipes of a system, and of the weights of a mixture, the one with the least loss on the dev",
        "text counts. One seed.",
        "",
        f"![learning curves]({PICTURE})",
        "",
    )
    for percent in PERCENTS:
        yield from (f"## {percent} % of the domain's text", "")
        yield from _table(
            ["", "system", *domains, "mean"],
            [
                [f"({system.letter})", system.what, *_row(outcomes, system.name, domains, percent)]
                for system in SYSTEMS
                if any(system.name in outcomes[domain, percent] for domain in domains)
            ],
        )
    yield from ("## What was chosen on the dev text, and what it cost", "")
    rows = []
    for (domain, percent), cell in outcomes.items():
        for outcome in cell.values():
            if outcome.system.name != GENERAL_MODEL:
                cost = f"{outcome.seconds:.0f}" if outcome.seconds else ""
                rows.append([f"{domain}, {percent} %", outcome.system.name, outcome.how, f"{outcome.dev:.3f}", cost])
    columns = ["text", "system", "recipe, or weight in the mixture", "dev", "seconds of processor time, all recipes"]
    yield from _table(columns, rows)
    yield from ("## The texts", "")
    rows = [
        [
            name, f"{facts['sentences']:,}", f"{facts['words']:,}", f"{100 * facts['unknown']:.1f}",
            f"{100 * facts['not in the general text']:.1f}",
        ]
        for name, facts in texts["texts"].items()
    ]  # fmt: skip
    columns = ["text", "sentences", "words", "% unknown to all models", "% known, but not in the general training text"]
    yield from _table(columns, rows)


def _row(outcomes: Outcomes, name: str, domains: Sequence[str], percent: int) -> list[str]:
    """Return test losses of a system, the best of each column in bold. The mean needs all domains."""
    losses = [outcomes[domain, percent][name].test if name in outcomes[domain, percent] else None for domain in domains]
    cells = []
    for domain, value in zip(domains, losses, strict=True):
        best = min(outcome.test for outcome in outcomes[domain, percent].values())
        cells.append("" if value is None else f"**{value:.3f}**" if value == best else f"{value:.3f}")
    known = [value for value in losses if value is not None]
    return [*cells, f"{sum(known) / len(known):.3f}" if len(known) == len(domains) else ""]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(columns) + " |"
    yield "| " + " | ".join("---" for _ in columns) + " |"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def draw(outcomes: Outcomes, path: Path) -> None:
    """Draw one panel per domain: test loss by the fraction of its text."""
    domains = list(dict.fromkeys(domain for domain, _ in outcomes))
    figure = Figure(figsize=(3.2 * max(2, len(domains)), 4.8), layout="constrained")
    panels = figure.subplots(1, len(domains), squeeze=False)[0]
    for panel, domain in zip(panels, domains, strict=True):
        _draw_domain(panel, outcomes, domain)
    panels[0].set_ylabel("test loss, nats per token")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=max(2, len(domains)), fontsize=9, frameon=False)
    temporary = path.with_name(f".{path.name}.tmp")
    figure.savefig(temporary, dpi=150, format="png", metadata={"Software": None})
    os.replace(temporary, path)


def _draw_domain(panel: Axes, outcomes: Outcomes, domain: str) -> None:
    for system in SYSTEMS:
        colour, marker, line = LOOKS[system.name]
        found = [(i, outcomes[domain, percent].get(system.name)) for i, percent in enumerate(PERCENTS)]
        points = [(i, outcome.test) for i, outcome in found if outcome is not None]
        if points:
            panel.plot(
                *zip(*points, strict=True), color=colour, marker=marker, markersize=6, linestyle=line,
                label=f"({system.letter}) {system.what}",
            )  # fmt: skip
    panel.set_title(domain, fontsize=11)
    panel.set_xticks(range(len(PERCENTS)), [f"{percent} %" for percent in PERCENTS])
    panel.set_xlabel("of its training text")
    panel.grid(axis="y", color="#dddddd", linewidth=0.6)
