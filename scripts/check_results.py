#!/usr/bin/env python3
"""Compare the tables of docs/results and of README.md with docs/results/runs.jsonl, and check documented commands.

    python scripts/check_results.py [--update]

A figure is a number in a column with ↑ or ↓ in its header, or in a column "Ours" (the column "Metric" then has the
arrow). Each figure needs one line of runs.jsonl with the same page, section, row, metric and numbers, and each line
needs its figure. The numbers with a decimal point in README.md, section "Results", must be in the lines. Commands in
code blocks of all pages that call a script of this repository must name an existing file and existing options.

The script prints one line for each difference and exits with status 1 if there is one. --update writes the figures of
the tables to runs.jsonl. A new figure takes data, command, commit and note from the line before it: edit these by hand.
"""

import argparse
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RUNS = "docs/results/runs.jsonl"
NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"^```(?:bash)?\n(.*?)^```|((?:^ {4}\S.*\n)+)", re.DOTALL | re.MULTILINE)
OPTION = re.compile(r"--[a-z][\w-]*")
SCRIPT = re.compile(r"^ *(?:\w+=(?:\S|\"[^\"]*\")+ )*(?:python|bash) ((?:examples|scripts)/[\w/]+\.(?:py|sh))")
OF_COLUMN = {"Std": "std", "p": "p", "Low": "low", "High": "high"}  # of the figure on the left
IDENTITY = ("page", "section", "row", "metric")
NUMBERS = ("value", "std", "n", "p", "low", "high", "baseline_value", "baseline_std")
OF_TABLE = tuple(name for name in NUMBERS if not name.startswith("baseline"))
INHERITED = ("data", "command", "commit", "note")  # by a new row
Figure = dict[str, Any]


def number(cell: str) -> float | None:
    """Return the number that a cell consists of, or None."""
    text = cell.replace("*", "").strip()
    return float(text.replace(",", "").replace("−", "-")) if NUMBER.fullmatch(text) else None


def rows(text: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield (section, header, cells) of each table row of a page."""
    section, header = "", None
    for line in FENCE.sub("", text).splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        if not line.startswith("|"):
            header = None
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if header is None:
            header = cells
        elif not set("".join(cells)) <= set(":-"):
            yield section, header, cells


def figures(name: str, text: str) -> Iterator[Figure]:
    """Yield the figures of a page, in order."""
    for section, header, cells in rows(text):
        label: list[str] = []
        found: list[Figure] = []
        n = None
        for column, cell in zip(header, cells, strict=True):
            if column in OF_COLUMN:
                if found and number(cell) is not None:
                    of_baseline = column == "Std" and "baseline_value" in found[-1]
                    found[-1]["baseline_std" if of_baseline else OF_COLUMN[column]] = number(cell)
            elif column == "Seeds":
                n = number(cell)
            elif column == "Baseline value" and found:
                found[-1]["baseline_value"] = number(cell)
            elif column == "Baseline" and found:
                found[-1]["baseline"] = cell
            elif column == "Ours" or "↑" in column or "↓" in column:
                metric = cells[header.index("Metric")] if column == "Ours" else column
                found.append({"metric": metric, "value": number(cell)})
            elif column != "Metric" and cell:
                label.append(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell))
        for figure in found:
            if figure["value"] is not None:
                direction = "higher" if "↑" in figure["metric"] else "lower"
                place = {"page": name, "section": section, "row": " · ".join(label)}
                yield {**place, "direction": direction, **figure, **({"n": int(n)} if n is not None else {})}


def identity(figure: Figure) -> tuple[Any, ...]:
    return tuple(figure[key] for key in IDENTITY)


def compare(found: list[Figure], runs: list[Figure]) -> Iterator[str]:
    """Yield a line for each figure without its run, run without its figure, and difference of numbers."""
    kept, values = {identity(run): run for run in runs}, {identity(figure): figure["value"] for figure in found}
    for figure in found:
        place, run = " | ".join(identity(figure)), kept.pop(identity(figure), None)
        if run is None:
            yield f"{place}: expected a line in {RUNS}, found none; run scripts/check_results.py --update"
            continue
        for key in NUMBERS:
            if figure.get(key) != run.get(key) and (key in figure or not key.startswith("baseline")):
                yield f"{place}: {key} is {figure.get(key)} in the table and {run.get(key)} in {RUNS}"
        other = values.get((run["page"], run["section"], run.get("baseline"), run["metric"]), run.get("baseline_value"))
        if other != run.get("baseline_value"):
            yield f"{place}: baseline_value is {run.get('baseline_value')} in {RUNS} and {other} in the table"
    for run in runs:
        if "command" not in run:
            yield f"{' | '.join(identity(run))}: expected a command in {RUNS}, found none; add it by hand"
    for left in kept:
        yield f"{' | '.join(left)}: expected this figure in a table, found none; correct the table or {RUNS}"
    if len(runs) != len({identity(run) for run in runs}):
        yield f"{RUNS}: expected one line for each figure, found two with the same page, section, row and metric"


def compare_readme(text: str, runs: list[Figure]) -> Iterator[str]:
    """Yield a line for each decimal number in the results table of README.md that rounds no number of a run."""
    known = {run[key] for run in runs for key in NUMBERS if run.get(key) is not None}
    for section, _, cells in rows(text):
        if section == "Results":
            for cell in cells:
                for shown in re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", re.sub(r"\]\([^)]*\)", "", cell)):
                    places = len(shown.partition(".")[2])
                    if all(f"{value:.{places}f}" != shown for value in known):
                        yield f"README.md | {cells[0]}: expected {shown} in {RUNS}, found no line with it"


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command in the code blocks of a page that calls a script of this repository."""
    for block in CODE.findall(text):
        for line in "".join(block).replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|[;|]", line.split(" #")[0]):
                if found := SCRIPT.match(part):
                    yield [found[1], *shlex.split(part[found.end() :])]


def check_command(words: list[str], root: Path) -> str | None:
    """Return what is wrong with a command, or None. Words after `--` are options of another program."""
    script = root / words[0]
    if not script.is_file():
        return f"{words[0]}: expected a script of this repository, found no such file"
    if '"$@"' in (source := script.read_text("utf-8")):  # passes its arguments on
        return None
    source += "".join(path.read_text("utf-8") for path in script.parent.glob("*.py"))
    known = {*OPTION.findall(source), "--help"}
    own = words[: words.index("--")] if "--" in words else words
    unknown = {word.partition("=")[0] for word in own if OPTION.match(word)} - known
    return f"{words[0]}: expected options that its source has, found {', '.join(sorted(unknown))}" if unknown else None


def check_commands(root: Path, runs: list[Figure]) -> Iterator[str]:
    folders = [root / "docs", root / "examples", root / "fairseq_llrnn"]
    pages = [root / "README.md", *(page for folder in folders for page in sorted(folder.rglob("*.md")))]
    texts = {str(page.relative_to(root)): page.read_text("utf-8") for page in pages}
    texts[RUNS] = "".join(f"```bash\n{command}\n```\n" for command in sorted({run.get("command", "") for run in runs}))
    for name, text in texts.items():
        yield from (f"{name}: {wrong}" for words in commands(text) if (wrong := check_command(words, root)))


def updated(found: list[Figure], runs: list[Figure]) -> Iterator[Figure]:
    """Yield the figures of the tables with the other fields of runs. New rows take INHERITED of the row before."""
    kept, rows_of = {identity(run): run for run in runs}, {identity(figure): figure for figure in found}
    run: Figure = {}
    for figure in found:
        is_same_table = all(run.get(name) == figure[name] for name in ("page", "section"))
        if own := kept.get(identity(figure)):
            run = {key: value for key, value in own.items() if key in figure or key not in OF_TABLE} | figure
        else:
            run = figure | {key: value for key, value in run.items() if is_same_table and key in INHERITED}
        if baseline := rows_of.get((run["page"], run["section"], run.get("baseline"), run["metric"])):
            run = {key: value for key, value in run.items() if key != "baseline_std"}
            run |= {f"baseline_{key}": baseline[key] for key in ("value", "std") if key in baseline}
        yield run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository (default: this one)")
    parser.add_argument("--update", action="store_true", help=f"write the figures of the tables to {RUNS}")
    args = parser.parse_args()
    pages = sorted((args.root / RUNS).parent.glob("*.md"))
    found = [figure for page in pages for figure in figures(page.name, page.read_text("utf-8"))]
    runs = [json.loads(line) for line in (args.root / RUNS).read_text("utf-8").splitlines()]
    if args.update:
        runs = [*updated(found, runs)]
        (args.root / RUNS).write_text("".join(json.dumps(run, ensure_ascii=False) + "\n" for run in runs), "utf-8")
    wrong = [*compare(found, runs), *compare_readme((args.root / "README.md").read_text("utf-8"), runs)]
    wrong += check_commands(args.root, runs)
    print("\n".join(wrong) or f"{len(found)} figures agree with {RUNS}", file=sys.stderr if wrong else sys.stdout)
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
