"""The tables of the results page, by language: bits per character of the best row of each group, and of all rows."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from language_rows import ROWS
from language_texts import LANGUAGES

HELD_OUT = ("valid", "test")
BASELINES = ("a", "b", "c", "n")
GROUPS = {
    "a": "BPE",
    "b": "characters",
    "c": "words, `<unk>` spelled",
    "n": "word n-grams",
    "d": "spelling",
    "e": "+ morphemes",
    "f": "+ characters",
    "g": "+ `--language`",
    "h": "+ treebank",
}
GOAL = 0.05  # bits per character below the best baseline
Result = Mapping[str, Any]
Found = dict[str, dict[str, list[Result]]]  # language -> row -> its seeds


def by_language(results: Sequence[Result]) -> Found:
    """Return the results by language and row. Rows of `tuning`, in no GROUPS, are only in the details."""
    found: dict[str, dict[str, list[Result]]] = {name: defaultdict(list) for name in LANGUAGES}
    for row in ROWS.values():
        for result in results:
            if result["row"] == row.name and result["language"] in found:
                found[result["language"]][row.name].append(result)
    return {name: dict(rows) for name, rows in found.items() if rows}


def mean(seeds: Sequence[Result], split: str) -> float:
    """Return bits per character, the mean over seeds."""
    return fmean(result[split]["bits_per_character"] for result in seeds)


def best(rows: Mapping[str, Sequence[Result]], groups: Sequence[str]) -> str | None:
    """Return the row of these groups with the fewest bits on the validation text with seed 1, or None without any."""
    first = {
        name: result["valid"]["bits_per_character"]
        for name, seeds in rows.items()
        for result in seeds
        if ROWS[name].group in groups and result["seed"] == 1
    }
    return min(first, key=lambda name: first[name]) if first else None


def difference(rows: Mapping[str, Sequence[Result]], split: str) -> float | None:
    """Return the best of ours minus the best of the baselines, or None if either is missing."""
    ours, theirs = best(rows, [group for group in GROUPS if group not in BASELINES]), best(rows, BASELINES)
    return None if ours is None or theirs is None else mean(rows[ours], split) - mean(rows[theirs], split)


def summary(found: Found, split: str) -> str:
    """Return one line per language, one column per group: its best row, chosen on the validation text."""
    shown = [group for group in GROUPS if any(best(rows, [group]) for rows in found.values())]
    head = [f"({group}) {GROUPS[group]}" for group in shown]
    lines = [
        f"| {split} | {' | '.join(head)} | best of ours − best of the baselines |",
        "|---|" + "---:|" * (len(shown) + 1),
    ]
    for language, rows in found.items():
        names = [best(rows, [group]) for group in shown]
        values = [None if name is None else mean(rows[name], split) for name in names]
        least = min(value for value in values if value is not None)
        cells = ["–" if value is None else f"**{value:.3f}**" if value == least else f"{value:.3f}" for value in values]
        cells.append(_signed(difference(rows, split)))
        lines.append(f"| {language} | {' | '.join(cells)} |")
    return "\n".join(lines)


def to_the_end(found: Found) -> Found:
    """Return the rows with a larger budget, for the languages that have such rows."""
    longer = {language: {name: rows[name] for name in rows if ROWS[name].times > 1} for language, rows in found.items()}
    return {language: rows for language, rows in longer.items() if rows}


def details(found: Found) -> str:
    """Return every row of every language. With several seeds: mean, lowest and highest."""
    head = ("language", "row", "what", "seeds", *HELD_OUT, "parameters", "epochs (best)", "seconds")
    lines = [f"| {' | '.join(head)} |", "|---|---|---|" + "---:|" * (len(head) - 3)]
    for language, rows in found.items():
        for name, seeds in rows.items():
            first = seeds[0]
            figures = [_spread([result[split]["bits_per_character"] for result in seeds]) for split in HELD_OUT]
            cells = [language, f"`{name}`", f"({ROWS[name].group}) {ROWS[name].what}", str(len(seeds)), *figures]
            cells += [f"{first['parameters']:,}", f"{first['epochs']} ({first['best_epoch']})"]
            cells.append(f"{fmean(result['seconds']['fairseq-train'] for result in seeds):.0f}")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _spread(values: Sequence[float]) -> str:
    one = f"{fmean(values):.4f}"
    return one if len(values) == 1 else f"{one} ({min(values):.4f}–{max(values):.4f})"


def mixtures(found: Found) -> str:
    """Return the rows of networks mixed with n-grams, each with the network alone; "" without any."""
    head = ("language", "network", *HELD_OUT, "n-grams", "weight of the network", *(f"mixed, {s}" for s in HELD_OUT))
    lines = [f"| {' | '.join(head)} |", "|---|---|" + "---:|" * (len(head) - 2)]
    for language, rows in found.items():
        for name, seeds in rows.items():
            network = ROWS[name].network
            if network in rows:
                alone, both = ([f"{mean(s, split):.4f}" for split in HELD_OUT] for s in (rows[network], seeds))
                chosen = [f"{seeds[0]['order']}", f"{seeds[0]['weight']:.2f}"]
                lines.append(f"| {' | '.join([language, f'`{network}`', *alone, *chosen, *both])} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def parts(found: Found) -> str:
    """Return the parts of the bits of the test text, for rows whose units are words: the best of ours, and words with
    <unk>.
    """
    lines = [
        "| test | row | known words | unknown words, as <unk> | their spelling | line ends | number of unknown words |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for language, rows in found.items():
        ours = best(rows, [group for group in GROUPS if group not in BASELINES])
        for name in (ours, "unk"):
            if name is None or name not in rows:
                continue
            test = rows[name][0]["test"]
            bits = (test[f"{part}_bits"] / test["characters"] for part in ("known", "unknown", "spelling", "end"))
            cells = " | ".join(f"{value:.3f}" for value in bits)
            lines.append(f"| {language} | `{name}` | {cells} | {test['unknown_words']:,.0f} |")
    return "\n".join(lines)


def compared(found: Found) -> str:
    """Return the effect of mixing with n-grams on the goal: best of ours minus best baseline, trained longest."""
    head = [
        f"{which}: {split}" for which in ("nothing mixed", "baselines alone mixed", "both mixed") for split in HELD_OUT
    ]
    lines = [f"| | {' | '.join(head)} |", "|---|" + "---:|" * len(head)]
    for language, rows in found.items():
        theirs = {name: seeds for name, seeds in rows.items() if ROWS[name].group in BASELINES}
        ours = {name: seeds for name, seeds in rows.items() if name not in theirs}
        cells = []
        for mixed in ((), theirs, rows):
            kept = {
                name: seeds for name, seeds in {**theirs, **ours}.items() if name in mixed or not ROWS[name].network
            }
            less = [difference(kept, split) for split in HELD_OUT]
            reached = all(value is not None and value <= -GOAL for value in less)
            cells += [_bold(_signed(value), reached) for value in less]
        lines.append(f"| {language} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}".replace("-", "−")


def _bold(cell: str, whether: bool) -> str:
    return f"**{cell}**" if whether else cell


def tables(results: Sequence[Result]) -> str:
    """Return the tables of the page: the best rows of each group."""
    found = by_language(results)
    reached = [
        language
        for language, rows in found.items()
        if all(best(rows, [group]) for group in BASELINES)
        and all((difference(rows, split) or 0.0) <= -GOAL for split in HELD_OUT)
    ]
    said = f"At least {GOAL} below all baselines, all measured, on both texts: {', '.join(reached) or 'none'}."
    best_rows = [summary(found, split) for split in HELD_OUT]
    longer = to_the_end(found)
    ends = ["Trained to their end:", *(summary(longer, split) for split in HELD_OUT)] if longer else []
    mixing = ["Mixed with n-grams, trained to their end:", compared(longer)] if mixtures(longer) else []
    return "\n\n".join([*best_rows, said, *ends, *mixing])


def all_rows(results: Sequence[Result]) -> str:
    """Return the tables of the page of all rows."""
    found = by_language(results)
    mixing = ["Mixed with n-grams:", said_of] if (said_of := mixtures(found)) else []
    return "\n\n".join([details(found), *mixing, parts(found)])
