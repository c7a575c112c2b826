#!/usr/bin/env python3
"""Convert ATIS' questions and forms to symbols, one sentence per line, and derive a grammar of types from training
forms.

    atis_prepare.py --data FOLDER --out OUT [--held-out]

reads FOLDER/{train,dev,test}.tsv.gz and writes OUT/{train,test}.{question,form}, OUT/test.tsv (unchanged),
OUT/dict.form.txt and OUT/forms.grammar. With --held-out the development set is the test, and the test is not used.
Otherwise the development set is training data.

    flights from boston on may fifth         flights from @cityname0 @airportcode0 on @month0 @ordinal0
    … _from_2(city_name(boston)) …           … _from_2 ( city_name ( @cityname0 ) ) …

A constant is a name if at least half of the questions with its words have it in their forms. A symbol replaces it in
questions and forms, named after the function that it is mostly an argument of. Symbols also replace every number of
three digits or more, times such as `530pm` (1730), `twenty seventh` and `twenty seven` (27), and, as `@word0`, every
word in fewer than two training questions. So that the model learns to copy these, a tenth of the names in the training
pairs are read as such words, too. All of this is derived from the training pairs. After a city follows the symbol of
its airport's code (airports.tsv).
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from atis_grammar import grammar_of, parse
from funql import Form
from funql_pairs import Pair, read_pairs
from funql_recognise import read_rules, terminals

from fairseq_llrnn.errors import one_line_errors
from fairseq_llrnn.files.atomic_write import write_lines
from fairseq_llrnn.files.text_lines import iter_lines

MOST = 6  # names of a kind in a question; more stay as they are
NUMBER = re.compile("[0-9]{3,}")  # shorter ones are said of times, which forms write otherwise: 5 for 1700
SAYS = 0.5  # share of the questions with a constant's words whose forms have it, for a name
UNKNOWN, SEEN = "word", 2  # the kind of words that fewer training questions have
INVENTED = 0.1  # share of the names in training that are read as of that kind
CITY, AIRPORT = "cityname", "airportcode"  # kinds, as the functions of ATIS are called
TIME = re.compile("(1[0-2]|[1-9])([0-5][0-9])?([ap])m")
ORDINALS = """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
 fifteenth sixteenth seventeenth eighteenth nineteenth twentieth""".split()
DAYS = {word: number for number, word in enumerate(ORDINALS, 1)} | {"thirtieth": 30}
del DAYS["first"]  # mostly of a class
TENS = {"twenty": 20, "thirty": 30}
UNITS = {word: number for number, word in enumerate("one two three four five six seven eight nine".split(), 1)}
UNITS |= {word: number for number, word in enumerate(ORDINALS[:9], 1)}
AIRPORTS = Path(__file__).with_name("airports.tsv")
Names = Mapping[tuple[str, ...], tuple[str, str]]  # words -> constant, kind


def constants(form: Form, above: str = "") -> list[tuple[str, str]]:
    """Return each constant with the function that it is an argument of."""
    if not form.arguments:
        return [(form.head, above)]
    return [each for argument in form.arguments for each in constants(argument, form.head)]


def find_names(pairs: Sequence[Pair]) -> Names:
    """Return the names in the pairs."""
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in pairs:
        for constant, above in set(constants(pair.form)):
            kinds[constant][above] += 1
    said, meant = Counter[str](), Counter[str]()
    for pair in pairs:
        words, meanings = f" {' '.join(words_of(pair.question))} ", {constant for constant, _ in constants(pair.form)}
        for constant in kinds:
            if f" {constant.replace('_', ' ')} " in words:
                said[constant] += 1
                meant[constant] += constant in meanings
    return {
        tuple(constant.split("_")): (constant, kinds[constant].most_common(1)[0][0].replace("_", ""))
        for constant in sorted(said)
        if meant[constant] >= SAYS * said[constant] and not constant.isdigit()
    }


@dataclass(frozen=True)
class Known:
    """Data for reading questions."""

    names: Names
    words: frozenset[str]  # that are no symbols
    airports: Mapping[str, str]  # city -> code


@dataclass(frozen=True)
class Question:
    """A question in symbols."""

    words: tuple[str, ...]
    offers: Mapping[str, str]  # the constant that each of its symbols stands for


def number_in(words: Sequence[str]) -> tuple[int, str, str]:
    """Return how many of the words form a number, its constant and its kind; 0 if the first word does not begin one."""
    time = TIME.fullmatch(words[0])
    if time is not None:
        hour = int(time[1]) % 12 + 12 * (time[3] == "p")
        return 1, str(100 * hour + int(time[2] or 0)), "time"
    if words[0] in TENS and len(words) > 1 and words[1] in UNITS:
        return 2, str(TENS[words[0]] + UNITS[words[1]]), "ordinal"
    if words[0] in DAYS:
        return 1, str(DAYS[words[0]]), "ordinal"
    return (1, words[0], "number") if NUMBER.fullmatch(words[0]) else (0, "", "")


def words_of(text: str) -> list[str]:
    """Split a text into words. `boston's` is two words, and `st.` is `st`, as in the names of forms."""
    return re.sub(r"(\w)'s\b", r"\1 's", text).replace("st. ", "st ").split()


def read_question(text: str, known: Known, draw: Callable[[], float] = lambda: 1.0) -> Question:
    """Return the question with symbols instead of names and numbers, equal ones for equal names.

    Args:
        draw: returns a random number for each name; below INVENTED, the name is read as an unknown word.
    """
    words, read, names = words_of(text), list[str](), known.names
    symbols: dict[str, str] = {}
    longest = max(map(len, names), default=1)

    def symbol(constant: str, kind: str) -> list[str]:
        """Return the symbol of a constant, or None if there are too many of the kind."""
        used = sum(other[:-1] == f"@{kind}" for other in symbols.values())
        return [symbols.setdefault(constant, f"@{kind}{used}")] if constant in symbols or used < MOST else []

    at = 0
    while at < len(words):
        ends = range(min(len(words), at + longest), at, -1)
        name = next((tuple(words[at:end]) for end in ends if tuple(words[at:end]) in names), (words[at],))
        constant, kind = names.get(name, (words[at], ""))
        length, number, of_number = number_in(words[at:])
        if length and not kind:
            name, constant, kind = tuple(words[at : at + length]), number, of_number
        if constant not in symbols and (draw() < INVENTED if kind else words[at] not in known.words):
            kind = UNKNOWN
        read += (symbol(constant, kind) if kind else []) or name
        if symbols.get(constant, "").startswith(f"@{CITY}") and constant in known.airports:
            read += symbol(known.airports[constant], AIRPORT)
        at += len(name)
    return Question(tuple(read), {symbol: constant for constant, symbol in symbols.items()})


def renamed(form: Form, names: Mapping[str, str]) -> Form:
    """Return the form with other constants."""
    if not form.arguments:
        return Form(names.get(form.head, form.head))
    return Form(form.head, tuple(renamed(argument, names) for argument in form.arguments))


def in_symbols(pair: Pair, known: Known, draw: Callable[[], float] = lambda: 1.0) -> tuple[Question, Form]:
    question = read_question(pair.question, known, draw)
    return question, renamed(pair.form, {constant: symbol for symbol, constant in question.offers.items()})


@one_line_errors("atis_prepare.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--held-out", action="store_true", help="test on the development set")
    args = parser.parse_args()
    train, dev = (read_pairs(args.data / f"{split}.tsv.gz", parse) for split in ("train", "dev"))
    train, test = (train, dev) if args.held_out else (train + dev, read_pairs(args.data / "test.tsv.gz", parse))
    airports = dict(line.split("\t") for _, line in iter_lines(AIRPORTS) if not line.startswith("#"))
    seen = Counter(word for pair in train for word in set(words_of(pair.question)))
    known = Known(find_names(train), frozenset(word for word in seen if seen[word] >= SEEN), airports)
    args.out.mkdir(parents=True, exist_ok=True)
    forms: dict[str, list[Form]] = {}
    for split, pairs in (("train", train), ("test", test)):
        draw = random.Random(1).random if split == "train" else lambda: 1.0
        both = [in_symbols(pair, known, draw) for pair in pairs]
        forms[split] = [form for _, form in both]
        write_lines(args.out / f"{split}.question", [" ".join(question.words) for question, _ in both])
        write_lines(args.out / f"{split}.form", [" ".join(form.symbols()) for form in forms[split]])
    grammar = args.out / "forms.grammar"
    write_lines(grammar, grammar_of(forms["train"]).splitlines())
    write_lines(args.out / "test.tsv", [f"{pair.question}\t{pair.form}" for pair in test])
    counts = Counter(word for form in forms["train"] for word in form.symbols())
    words = sorted(terminals(read_rules(grammar)), key=lambda word: (-counts[word], word))
    write_lines(args.out / "dict.form.txt", [f"{word} {counts[word]}" for word in words])
    print(f"{len(train)} and {len(test)} pairs; {len(known.names)} names; {len(words)} symbols")


if __name__ == "__main__":
    sys.exit(main())
