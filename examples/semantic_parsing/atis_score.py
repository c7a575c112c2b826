#!/usr/bin/env python3
"""Count ATIS' forms that are right, and those that are valid.

    atis_score.py --text OUT plain=OUT/plain-1/test.out plain=OUT/plain-2/test.out grammar=OUT/grammar-1/t.out

OUT is the output of atis_prepare.py. Forms are compared in symbols: names and numbers are restored without a choice.

    exact        the form is the gold one, the order of lists included
    well-formed  brackets, commas, numbers of arguments as in training
    well-typed   well-formed, and every argument is of a type found in training (atis_grammar.py)
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from atis_grammar import LISTS, Types, parse
from funql import Form
from funql_score import add_output_options, report

from fairseq_llrnn.errors import DataError, one_line_errors
from fairseq_llrnn.files.text_lines import iter_lines


def arities(forms: Iterable[Form]) -> dict[str, set[int]]:
    """Return the numbers of arguments of each function and constant in these forms."""
    found: dict[str, set[int]] = {}
    for form in forms:
        found.setdefault(form.head, set()).add(len(form.arguments))
        for head, numbers in arities(form.arguments).items():
            found.setdefault(head, set()).update(numbers)
    return found


class Judge:
    """Judges forms by those of the training pairs."""

    def __init__(self, forms: Iterable[str]) -> None:
        read = [parse(form) for form in forms]
        self.arities, self.types = arities(read), Types(read)

    def __call__(self, gold: str, symbols: str) -> tuple[bool, bool, bool]:
        """Return whether a parser's form is exact, well-formed, well-typed."""
        try:
            form = parse(symbols)
        except DataError:
            return False, False, False
        formed = self.is_well_formed(form)
        return symbols == gold, formed, formed and self.types.allow(form)

    def is_well_formed(self, form: Form) -> bool:
        known = self.arities.get(form.head, set())
        number = len(form.arguments)
        return (number in known or (form.head in LISTS and number > 1)) and all(
            map(self.is_well_formed, form.arguments)
        )


@one_line_errors("atis_score.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", type=Path, required=True)
    add_output_options(parser)
    args = parser.parse_intermixed_args()  # outputs may come after options
    train, gold = ([line for _, line in iter_lines(args.text / f"{split}.form")] for split in ("train", "test"))
    report(args, gold, Judge(train))


if __name__ == "__main__":
    sys.exit(main())
