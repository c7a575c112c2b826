#!/usr/bin/env python3
"""Generate a small set of questions and forms from templates, for a first try without GeoQuery's files.

    funql_made.py --out FOLDER          writes funql_train.tsv (320 pairs) and funql_test.tsv (80)

The templates nest: a set of states can be those next to others, those with a city, those with a certain river. Names
come from names.tsv. Most test questions have a name or a nesting that no training question has.
"""

import argparse
import random
from pathlib import Path

from funql import CITY, PLACE, RIVER, STATE
from funql_mentions import AMBIGUOUS, read_names
from funql_prepare import NAMES

from fairseq_llrnn.files.atomic_write import write_lines

TRAIN, TEST = 320, 80

# {X}: something of that kind; without more, a name. Upper case on both sides: the same choice.
SETS: dict[str, list[tuple[str, str]]] = {
    "STATES": [
        ("the states", "state(all)"),
        ("states that border {ONE}", "state(next_to_2({ONE}))"),
        ("the states through which the {FLOW} runs", "state(traverse_1({FLOW}))"),
        ("the states next to {STATES}", "state(next_to_2({STATES}))"),
    ],
    "ONE": [
        ("{state}", "{state}"),
        ("{state}", "{state}"),
        ("the largest of {STATES}", "largest({STATES})"),
        ("the state with the most rivers", "most(river(loc_2(state(all))))"),
        ("the state where {city} is", "state(loc_1({city}))"),
    ],
    "FLOW": [
        ("{river}", "{river}"),
        ("{river} river", "river({river})"),
        ("longest river in {ONE}", "longest(river(loc_2({ONE})))"),
    ],
    "TOWN": [("{city}", "{city}"), ("the largest city in {ONE}", "largest(city(loc_2({ONE})))")],
}
QUESTIONS = [
    ("what are {STATES}", "answer({STATES})"),
    ("how many are {STATES}", "answer(count({STATES}))"),
    ("name the rivers in {ONE}", "answer(river(loc_2({ONE})))"),
    ("what cities are in {ONE}", "answer(city(loc_2({ONE})))"),
    ("how many people live in {TOWN}", "answer(population_1({TOWN}))"),
    ("what is the population of {ONE}", "answer(population_1({ONE}))"),
    ("how big is {ONE}", "answer(size({ONE}))"),
    ("how long is the {FLOW}", "answer(len({FLOW}))"),
    ("how high is {place}", "answer(elevation_1({place}))"),
    ("what is the highest point in {ONE}", "answer(highest(place(loc_2({ONE}))))"),
    ("what is the capital of {ONE}", "answer(capital(loc_2({ONE})))"),
    ("where is {TOWN}", "answer(loc_1({TOWN}))"),
]
DEEPEST = 4


class Maker:
    """Generates questions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names: dict[str, list[str]] = {kind: [] for kind in (CITY, PLACE, RIVER, STATE)}
        for words, kinds in read_names(NAMES).items():
            for kind, abbreviation in kinds.items():
                if words != (abbreviation,) and not AMBIGUOUS & set(words):
                    self.names[kind].append(" ".join(words))

    def pair(self) -> tuple[str, str]:
        """Return a question and its form."""
        return self.filled(*self.random.choice(QUESTIONS), depth=0)

    def filled(self, question: str, form: str, depth: int) -> tuple[str, str]:
        """Fill the braces in both. At large depth, use the first choice, which is the shortest."""
        while "{" in form:
            slot = form[form.index("{") + 1 : form.index("}")]
            if slot in SETS:
                choices = SETS[slot] if depth < DEEPEST else SETS[slot][:1]
                said, meant = self.filled(*self.random.choice(choices), depth=depth + 1)
            else:
                said = self.random.choice(self.names[slot])
                meant = f"{slot}id('{said}'{', _' if slot == CITY else ''})"
            question, form = question.replace("{" + slot + "}", said, 1), form.replace("{" + slot + "}", meant, 1)
        return question, form


def make(seed: int = 1) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return training and test pairs. No question is in both."""
    maker = Maker(seed)
    pairs: dict[str, str] = {}
    while len(pairs) < TRAIN + TEST:
        question, form = maker.pair()
        pairs.setdefault(question, form)
    every = list(pairs.items())
    return every[:TRAIN], every[TRAIN:]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for split, pairs in zip(("train", "test"), make(), strict=True):
        write_lines(args.out / f"funql_{split}.tsv", ["\t".join(pair) for pair in pairs])


if __name__ == "__main__":
    main()
