"""A grammar of ATIS' logical forms, read off a set of them: each argument may hold what it holds somewhere there.

    atis_grammar.py FORMS.tsv.gz [--depth N] > atis.grammar

FORMS has lines of question<TAB>form, as ../shared/data/atis-funql. The nonterminal of an argument is the function and
the place; the members of `intersection` are alike, and as many as somewhere in the set. Constants stand as they are. It
is no grammar of types as funql.grammar is: it is there to see what a larger grammar costs.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
from dataclasses import dataclass
from pathlib import Path

TOKEN = re.compile(r"[(),]|[^(),\s]+")
LIST = "intersection"  # whose arguments are all of one kind


@dataclass(frozen=True)
class Call:
    """A function with its arguments; a constant has none and no brackets."""

    name: str
    arguments: tuple[Call, ...] | None = None


def parse(form: str) -> Call:
    """Raises ValueError for what is no form."""
    tokens = TOKEN.findall(form)
    call, end = _call(tokens, 0)
    if end != len(tokens):
        raise ValueError(f"expected one form, found {form!r}")
    return call


def _call(tokens: list[str], at: int) -> tuple[Call, int]:
    name = tokens[at]
    if at + 1 >= len(tokens) or tokens[at + 1] != "(":
        return Call(name), at + 1
    arguments, at = [], at + 1
    while tokens[at] != ")":
        argument, at = _call(tokens, at + 1)  # behind the bracket or the comma
        arguments.append(argument)
    return Call(name, tuple(arguments)), at + 1


def rules(forms: list[Call]) -> dict[str, set[str]]:
    """The alternatives of every nonterminal; that of a whole form is `Form`, the first."""
    found: dict[str, set[str]] = {"Form": set()}
    for form in forms:
        _add(form, "Form", found)
    return found


def _add(call: Call, slot: str, found: dict[str, set[str]]) -> None:
    if call.arguments is None:
        found.setdefault(slot, set()).add(f'"{call.name}"')
        return
    base = "A_" + re.sub(r"\W", "_", call.name)
    if call.name == LIST:
        slots = [f"{base}_in_{slot}"] * len(call.arguments)  # its members are those that stand here
    else:
        slots = [f"{base}_{place}" for place in range(len(call.arguments))]
    inside = ' "," '.join(slots)
    found.setdefault(slot, set()).add(f'"{call.name}" "(" {inside} ")"')
    for argument, own in zip(call.arguments, slots, strict=True):
        _add(argument, own, found)


def main() -> int:
    parser = argparse.ArgumentParser(description="a grammar of logical forms, read off a set of them")
    parser.add_argument("forms", type=Path, metavar="FORMS", help="question<TAB>form, .gz too")
    parser.add_argument("--depth", type=int, default=8, metavar="N", help="of the grammar (default: 8)")
    args = parser.parse_args()
    with (gzip.open if args.forms.suffix == ".gz" else open)(args.forms, "rt", encoding="utf-8") as lines:
        forms = [parse(line.rstrip("\n").split("\t")[1]) for line in lines]
    print(f"# {len(forms):,} forms of {args.forms.name}\n%depth {args.depth}")
    for slot, alternatives in rules(forms).items():
        print(f"{slot} -> {' | '.join(sorted(alternatives))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
