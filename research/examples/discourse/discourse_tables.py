"""The tables of results, in the form of the thesis' 5.5 and 5.6."""

import json
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import DataError

COLUMNS = ("conjunction", "order", "next")


def read(paths: list[Path]) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def tables(out: Path) -> str:
    """Return both, from the existing results. Raises DataError if there are none."""
    rows, transfers = read(sorted(out.glob("*/result.json"))), read(sorted((out / "transfer").glob("*.json")))
    if not rows and not transfers:
        raise DataError(f"{out}: expected results of `discourse_rows.py train`, found none")
    return "\n\n".join([*([accuracies(rows)] if rows else []), *([of_sets(transfers)] if transfers else [])])


def accuracies(rows: list[dict[str, Any]]) -> str:
    """Return a line for each model, and chance, the frequency of the most frequent answer."""
    lines = ["| | CONJ | ORDER | NEXT | updates | seconds |", "|---|---|---|---|---|---|"]
    chance = rows[0]["chance"]
    lines.append(f"| chance | {' | '.join(f'{100 * chance[name]:.1f}' for name in COLUMNS)} | | |")
    for row in rows:
        found = row["accuracy"]
        cells = " | ".join(f"{100 * found[name]:.1f}" if name in found else "—" for name in COLUMNS)
        lines.append(f"| {row['row']} | {cells} | {row['updates']:,} | {row['seconds']} |")
    return "\n".join(lines)


def of_sets(found: list[dict[str, Any]]) -> str:
    """Return a line for each kind of features. The average is over the sets that all have."""
    sets = list(dict.fromkeys(one["set"] for one in found))
    by_features: dict[str, dict[str, float]] = {}
    for one in found:
        by_features.setdefault(one["features"], {})[one["set"]] = one["accuracy"]
    common = [name for name in sets if all(name in row for row in by_features.values())]
    lines = [f"| | average | {' | '.join(sets)} |", "|---" * (len(sets) + 2) + "|"]
    for features, row in by_features.items():
        cells = " | ".join(f"{100 * row[name]:.1f}" if name in row else "—" for name in sets)
        average = 100 * sum(row[name] for name in common) / len(common) if common else float("nan")
        lines.append(f"| {features} | {average:.1f} | {cells} |")
    return "\n".join(lines)
