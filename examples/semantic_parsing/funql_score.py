#!/usr/bin/env python3
"""Count forms that are right, and those that are valid.

    funql_score.py --gold OUT/test.tsv plain=OUT/plain-1/test.out plain=OUT/plain-2/test.out grammar=OUT/grammar-1/t.out

A file has a parser's symbols, one question per line. Files of one name are its seeds: the table has their mean, and
each. p compares the exact forms of a name with those of the first name: a paired bootstrap over the questions, with the
mean of the seeds for each. Names are restored from the question by funql_mentions.py. funql.py checks the form without
a grammar:

    exact        the form is the gold one, name by name
    well-formed  brackets, commas, numbers of arguments; every name is of the question
    well-typed   well-formed, and it denotes something
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import TypeVar

import numpy as np
from funql import is_well_formed, is_well_typed
from funql_mentions import Names, from_symbols, read_names, read_question
from funql_pairs import Pair, read_pairs
from funql_prepare import NAMES

from fairseq_llrnn.comparison.bootstrap import paired_bootstrap
from fairseq_llrnn.errors import DataError, one_line_errors
from fairseq_llrnn.files.text_lines import iter_lines

Gold = TypeVar("Gold")  # what a form is compared with
MEASURES = ("exact", "well-formed", "well-typed")


def judge(pair: Pair, symbols: str, names: Names) -> tuple[bool, bool, bool]:
    """Return whether a parser's form is exact, well-formed, well-typed."""
    try:
        form = from_symbols(symbols.split(), read_question(pair.question, names))
    except DataError:
        return False, False, False
    return form == pair.form, is_well_formed(form), is_well_typed(form)


def judged(gold: Sequence[Gold], path: Path, judge: Callable[[Gold, str], tuple[bool, bool, bool]]) -> np.ndarray:
    """Return 100 for each measure that a form fulfils, 0 otherwise: (questions, measures).

    Raises DataError: the numbers of lines and questions differ.
    """
    lines = [line for _, line in iter_lines(path)]
    if len(lines) != len(gold):
        raise DataError(f"{path}: expected {len(gold)} forms, one for each question, found {len(lines)}; parse again")
    return 100.0 * np.array([judge(one, line) for one, line in zip(gold, lines, strict=True)])


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `report`."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("outputs", nargs="+", metavar="NAME=FILE")


def report(
    args: argparse.Namespace, gold: Sequence[Gold], judge: Callable[[Gold, str], tuple[bool, bool, bool]]
) -> None:
    """Print a line for each name, and write --json."""
    systems: dict[str, list[np.ndarray]] = {}
    for output in args.outputs:
        name, _, path = output.partition("=")
        systems.setdefault(name, []).append(judged(gold, Path(path), judge))
    print(f"{len(gold)} questions", *(f"{measure:>24}" for measure in MEASURES), "p of exact")
    first: np.ndarray | None = None
    for name, files in systems.items():
        means = [found.mean(0) for found in files]
        cells = []
        for measure in range(len(MEASURES)):
            each = ", ".join(f"{found[measure]:.1f}" for found in means)
            cells.append(f"{mean(float(found[measure]) for found in means):.1f} ({each})")
        exact = np.mean(files, axis=0)[:, 0]  # of each question
        p = "" if first is None else f"{paired_bootstrap(exact, first, np.ones(len(gold))).p:.4f}"
        first = exact if first is None else first
        print(f"{name:16}", *(f"{cell:>24}" for cell in cells), p)
    if args.json:
        named = {
            name: [dict(zip(MEASURES, found.mean(0), strict=True)) for found in files]
            for name, files in systems.items()
        }
        args.json.write_text(json.dumps({"questions": len(gold), "systems": named}, indent=1) + "\n", "utf-8")


@one_line_errors("funql_score.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gold", type=Path, required=True)
    add_output_options(parser)
    args = parser.parse_intermixed_args()  # outputs may come after options
    names = read_names(NAMES)
    report(args, read_pairs(args.gold), lambda pair, symbols: judge(pair, symbols, names))


if __name__ == "__main__":
    sys.exit(main())
