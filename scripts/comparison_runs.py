#!/usr/bin/env python3
"""Write the figures of `llrnn compare` into the ledger, and print the rows of a page's table.

    python scripts/comparison_runs.py OUT=[FAMILY/]LANGUAGE …

OUT is a folder of `llrnn compare`, LANGUAGE a name such as Welsh, FAMILY the beginning of the keys (`compare`). The
ledger gets a line for each of these rows, which the validation text chooses: the best n-grams, the best softmax over
words, pieces and characters (alone if they are not mixed with n-grams), the best pretrained network, and our best model
alone and mixed. Lines of the same family and language are replaced. p compares with ours.

Put the printed rows into the table of docs/results/small-texts.md, and run `python scripts/check_results.py --write`.
"""

import argparse
import json
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ledger import LEDGER, NOT_RECORDED

from fairseq_llrnn.comparison.settings import MIXED
from fairseq_llrnn.errors import DataError, one_line_errors

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = {  # end of the key: beginnings of names of rows, of which the validation text chooses one
    "ngrams": ("ngrams",),
    "softmax": ("softmax",),
    "pieces": ("pieces",),
    "characters": ("characters",),
    "pretrained": ("pretrained",),
    "ours": ("suffixes", "lexicon"),
    **{name: (name,) for name in MIXED},
    "joined-others": ("joined-others",),
    "joined": ("joined",),
}
JOINED = {"joined": "joined-others", "joined-others": "joined"}  # a mixture of all models: its baseline
COLUMNS = (
    *("mixed-ours", "mixed-softmax", "mixed-pieces", "mixed-characters"),
    *("ngrams", "ours", "joined-others", "joined"),
)
PLACES = 4
Run = dict[str, Any]


def runs_of(result: Mapping[str, Any], name: str) -> Iterator[Run]:
    """Yield the lines of the ledger. name: [FAMILY/]LANGUAGE."""
    beginning, _, language = name.rpartition("/")
    finished = [row for row in result["rows"] if row["failure"] is None]
    best = {}
    for family, names in FAMILIES.items():
        if rows := [row for row in finished if row["name"].startswith(names)]:
            row = min(rows, key=lambda row: row["valid"])
            best[family] = row
    for name in MIXED:
        if name in best and name != "mixed-ours":
            best.pop(name.removeprefix("mixed-"), None)
    letters = unicodedata.normalize("NFKD", language.lower()).encode("ascii", "ignore").decode()
    place = f"{beginning or 'compare'}/{re.sub('[^a-z0-9]+', '-', letters).strip('-')}"
    ours = [family for family, row in best.items() if row["is_reference"]]
    others = [family for family, row in best.items() if family not in ("ours", "mixed-ours", *JOINED)]
    if not ours or not others:
        raise DataError(f"{language}: expected a row of ours and another one, found none; compare more models")
    strongest = min(others, key=lambda family: best[family]["test"])
    baselines = dict.fromkeys(best, ours[0]) | JOINED | {ours[0]: strongest}
    for family, row in best.items():
        is_first = family in (ours[0], "joined")  # the difference is in the row of its baseline
        compared = best[baselines[family]]["difference"] if is_first else row["difference"]
        run: Run = {"key": f"{place}/{family}", "metric": "test bits per character", "better": "lower"}
        run["value"] = row["test"]
        run |= {"seeds": "none"} if family == "ngrams" else {"seeds": row["seeds"]}
        if len(row["tests"]) > 1:
            run |= {"values": row["tests"], "std": row["deviation"]}
        if row["seconds"] is not None and family != "ngrams":
            run |= {"seconds": round(row["seconds"])}
        run |= {"unseen": row["unseen"], "p": float(f"{compared['p']:.2g}")}
        run["baseline"] = f"{place}/{baselines[family]}"
        run |= {"data": f"{language}, {result['texts']['words']:,} words of training text"}
        run |= {"command": command_of(result), "commit": (result["commit"] or NOT_RECORDED)[:12]}
        yield run


def table_row(language: str, runs: Sequence[Run]) -> str:
    """Return a row of the table, whose figures `check_results.py --write` fills in."""
    keys = {run["key"].rpartition("/")[2]: run["key"] for run in runs}
    first, *cells = ["0" if name in keys else "" for name in COLUMNS]
    expressions = "; ".join(keys[name] for name in COLUMNS if name in keys)
    return f"| {language} | {first} | | | | {' | '.join(cells)} <!-- = {expressions} --> |"


def command_of(result: Mapping[str, Any]) -> str:
    """Return the command of a comparison, with the names of files instead of their paths."""
    return shlex.join(["llrnn", *(Path(word).name if "/" in word else word for word in result["command"][1:])])


def written(ledger: str, runs: Sequence[Run]) -> str:
    """Return the ledger with these runs, at the place of the first earlier line of the same language."""
    languages = {run["key"].rpartition("/")[0] for run in runs}
    kept = [line for line in ledger.splitlines() if json.loads(line)["key"].rpartition("/")[0] not in languages]
    return "".join(f"{line}\n" for line in [*kept, *map(as_line, runs)])


def as_line(run: Run) -> str:
    """Return a line of the ledger, whose figures have all their decimals."""
    places = {"value": PLACES, "std": PLACES, "unseen": 2}
    decimals: Run = {name: f"{run[name]:.{size}f}" for name, size in places.items() if name in run}
    if "values" in run:
        decimals["values"] = [f"{value:.{PLACES}f}" for value in run["values"]]
    return re.sub(r'"(\d+\.\d+)"', r"\1", json.dumps(run | decimals, ensure_ascii=False))


@one_line_errors("comparison_runs.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", metavar="OUT=LANGUAGE")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository (default: this one)")
    args = parser.parse_args()
    table, runs = list[str](), list[Run]()
    for text in args.places:
        out, _, language = text.partition("=")
        path = Path(out) / "result.json"
        if not language or not path.is_file():
            raise DataError(f"{text}: expected OUT=LANGUAGE with OUT of `llrnn compare`, found no {path}; correct it")
        found = [*runs_of(json.loads(path.read_text(encoding="utf-8")), language)]
        runs += found
        table.append(table_row(language.rpartition("/")[2], found))
    ledger = args.root / LEDGER
    ledger.write_text(written(ledger.read_text(encoding="utf-8"), runs), encoding="utf-8")
    print("\n".join(table))
    print(f"{len(runs)} lines written to {LEDGER}", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
