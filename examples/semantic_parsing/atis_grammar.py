"""Derive a grammar of types from a set of ATIS' logical forms.

    atis_grammar.py FORMS.tsv.gz > atis.grammar

FORMS has lines of question<TAB>form, as in ../shared/data/atis-funql. A *slot* is a function and the place of an
argument. It allows its contents anywhere in the set. Two slots that share two functions have one type, and each allows
the contents of the other. `intersection` and `or` are lists: their members belong to the slot of the list, and are at
most as many as somewhere in the set. The contents of a member have no further lists, but a member itself may be one.

The rules are written out for every remaining depth of functions, so that no nonterminal nests, and a chain of
nonterminals counts the members of a list: in an automaton, equal remainders are one state.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from funql import Form, parse_symbols
from funql_pairs import read_pairs

from fairseq_llrnn.errors import one_line_errors

TOKEN = re.compile(r"[(),]|[^(),\s]+")
LISTS = ("intersection", "or")  # whose arguments are all of one kind
SHARED = 2  # functions that two slots of one type have in common; chosen on ATIS' development set
FUNCTIONS, LISTS_IN_LISTS = 7, 2  # that stand in each other, at most


def parse(text: str) -> Form:
    """Parse a form. Raises DataError if it is none."""
    return parse_symbols(TOKEN.findall(text), text)


@dataclass(frozen=True)
class Found:
    """An item in a slot; in a list, with the number of members."""

    slot: str
    form: Form
    around: int  # lists around it, from the whole form on


def found_in(form: Form, slot: str = "Form", around: int = 0) -> Iterator[Found]:
    """Yield all items of a form."""
    yield Found(slot, form, around)
    for place, argument in enumerate(form.arguments):
        if form.head in LISTS:
            yield from found_in(argument, slot, around + 1)
        else:
            yield from found_in(argument, _slot(form.head, place), around)


def _slot(name: str, place: int) -> str:
    # "_<_fare_2" and "_>_fare_2" are two
    return "A" + re.sub(r"\W", lambda match: f"{ord(match[0]):x}", name) + f"_{place}"


class Types:
    """The allowed contents of slots, from a set of forms."""

    def __init__(self, forms: Sequence[Form]) -> None:
        found = [each for form in forms for each in found_in(form)]
        functions: dict[str, set[str]] = {}
        for each in found:
            is_function = bool(each.form.arguments) and each.form.head not in LISTS
            functions.setdefault(each.slot, set()).update([each.form.head] * is_function)
        apart = {"Form", *(_slot(form.head, 0) for form in forms)}  # an answer is a thing of any type
        self.type_of = {slot: slot for slot in functions}
        for one, other in combinations(functions, 2):
            if len(functions[one] & functions[other]) >= SHARED and not {one, other} & apart:
                old, new = self.type_of[other], self.type_of[one]
                self.type_of = {slot: new if kind == old else kind for slot, kind in self.type_of.items()}
        self.items: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)  # type: {name: types of its arguments}
        self.longest: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)  # type, lists around: members of a list
        for each in found:
            kind, arguments = self.type_of[each.slot], each.form.arguments
            if each.form.head in LISTS:
                known = self.longest[kind, each.around]
                known[each.form.head] = max(len(arguments), known.get(each.form.head, 0))
            else:
                inside = (self.type_of[_slot(each.form.head, place)] for place in range(len(arguments)))
                self.items[kind][each.form.head] = tuple(inside)

    def allow(self, form: Form) -> bool:
        """Return whether each argument is of its type. Members of lists are of the list's."""
        found = [(self.type_of.get(each.slot), each.form) for each in found_in(form)]
        return all(form.head in LISTS or (kind and form.head in self.items[kind]) for kind, form in found)

    def rules(self, functions: int, lists: int) -> Iterator[str]:
        """Return the rules of a grammar with so many nested functions, and so many nested lists."""
        least, most = self._heights(functions)
        names: dict[tuple[str, int, int], str] = {}

        def named(kind: str, depth: int, around: int) -> str:
            state = (kind, min(depth, most[kind]), around if most[kind] else 0)
            return names.setdefault(state, "_".join(map(str, state)))

        named("Form", functions, 0)
        for kind, depth, around in _growing(names):
            name = names[kind, depth, around]
            rules, chains = [], []
            for item, inside in sorted(self.items[kind].items()):
                if all(least[each] < depth for each in inside):
                    arguments = ' "," '.join(named(each, depth - 1, lists if around else 0) for each in inside)
                    rules.append(f'"{item}" "(" {arguments} ")"' if inside else f'"{item}"')
            longest = self.longest[kind, around] if around < lists else {}
            for each, members in sorted(longest.items()):
                member = named(kind, depth, around + 1)
                rules.append(f'"{each}" "(" {member} "," {name}_more{members - 1} ")"')
            for rest in range(1, max(longest.values(), default=0)):
                more = f' | {member} "," {name}_more{rest - 1}' if rest > 1 else ""
                chains.append(f"{name}_more{rest} -> {member}{more}")
            yield f"{name} -> {' | '.join(rules)}"
            yield from chains

    def _heights(self, functions: int) -> tuple[dict[str, int], dict[str, int]]:
        """Return the least and the greatest nesting depth of functions of each type, at most `functions`."""
        least, most = dict.fromkeys(self.items, functions), dict.fromkeys(self.items, 0)
        for _ in range(functions):
            for kind, items in self.items.items():
                least[kind] = min(1 + max(map(least.__getitem__, inside)) if inside else 0 for inside in items.values())
                greatest = max(1 + max(map(most.__getitem__, inside)) if inside else 0 for inside in items.values())
                most[kind] = min(functions, greatest)
        return least, most


def _growing(keys: dict[tuple[str, int, int], str]) -> Iterator[tuple[str, int, int]]:
    """Yield the keys in their order, including keys that are added meanwhile."""
    done = 0
    while done < len(keys):
        yield list(keys)[done]
        done += 1


def grammar_of(forms: Sequence[Form], functions: int = FUNCTIONS, lists: int = LISTS_IN_LISTS) -> str:
    """Return the lines of a grammar file."""
    return "".join(f"{line}\n" for line in (f"# {len(forms):,} forms", *Types(forms).rules(functions, lists)))


@one_line_errors("atis_grammar.py")
def main() -> None:
    parser = argparse.ArgumentParser(description="a grammar of logical forms, read off a set of them")
    parser.add_argument("forms", type=Path, metavar="FORMS", help="question<TAB>form, .gz too")
    args = parser.parse_args()
    sys.stdout.write(grammar_of([pair.form for pair in read_pairs(args.forms, parse)]))


if __name__ == "__main__":
    sys.exit(main())
