#!/usr/bin/env python3
"""Make a test of copying: put numbers and names that no training text has into English-French pairs.

    python examples/translation/make_copy_test.py --source test.en --reference test.fr \\
        --train train.en train.fr --out DIR [--seed 1]

    three men ride behind a woman .               ->   4071 men ride behind ledona .
    trois hommes roulent derrière une femme .     ->   4071 hommes roulent derrière ledona .

* **Number**: digits replace a number word. The English and the French word each occur once in their sentence, and no
other word of the English sentence could be the source of the French one.
* **Name**: an invented name replaces an indefinite article and a noun. Noun and noun phrase each occur once on either
side. Not before a possessive ('s) or after an elision (d'une femme would become de …).

A pair has at most one of each. Pairs with none are left out. Every string is new: it occurs nowhere in the training
texts, not even inside a word or in other case, nor in the test, and is used once. The result depends only on texts and
seed. Texts are tokenised or not, lower-cased. With --cased they keep their case, and names get a capital.

DIR gets copy.en, copy.fr and copy.facts.jsonl, which `llrnn report --facts` reads (systems/reranking/tallies.py).
"""

import argparse
import json
import logging
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed
logging.getLogger("fairseq").setLevel(logging.WARNING)  # before the import, which logs

from fairseq_llrnn.errors import DataError, OptionError, one_line_errors  # noqa: E402
from fairseq_llrnn.files.atomic_write import write_lines  # noqa: E402
from fairseq_llrnn.files.text_lines import iter_lines, place  # noqa: E402

NUMBER, NAME = "number", "name"
KINDS = (NUMBER, NAME)
# English, French; then English words that may also have become the French one
NUMBERS = (
    ("two", "deux", "both", "couple", "pair", "twin", "twins", "double"), ("three", "trois", "trio", "triplets"),
    ("four", "quatre"), ("five", "cinq"), ("six", "six"), ("seven", "sept"), ("eight", "huit"), ("nine", "neuf"),
    ("ten", "dix"), ("eleven", "onze"), ("twelve", "douze"),
)  # fmt: skip
PERSONS = (
    ("man", "homme", "guy", "gentleman", "male", "fellow", "person", "human"), ("boy", "garçon", "kid", "lad", "child"),
    ("woman", "femme", "lady", "female", "wife"), ("girl", "fille", "daughter", "kid", "child", "female"),
    ("child", "enfant", "kid", "toddler", "boy", "girl"), ("person", "personne", "someone", "individual", "people"),
    ("baby", "bébé", "infant", "newborn"), ("lady", "dame", "woman"), ("guy", "gars", "man"),
    ("dog", "chien", "puppy", "hound"), ("cat", "chat", "kitten"), ("horse", "cheval", "pony"),
)  # fmt: skip
PLACES = (
    ("city", "ville", "town"), ("park", "parc"), ("street", "rue", "road"), ("beach", "plage"), ("lake", "lac"),
    ("river", "rivière", "stream"),
)  # fmt: skip
ARTICLES = r"an?", r"une?"  # English, French
ONSETS = "b d f g k l m n p r s t v z br dr kr tr st".split()
PERSON_ENDINGS, PLACE_ENDINGS = "a o an in or ek ona ira".split(), "ova ium esk andia ola ursk".split()
DIGITS = (2, 3, 3, 4, 4)  # lengths of numbers, as often as they stand here
APOSTROPHE = r"(?:['’]|&apos;)"  # the last as Moses writes it


@dataclass(frozen=True)
class Rule:
    """A replacement by a new string: `phrases` (English, French), with `words` as their heads."""

    kind: str
    words: tuple[str, str]
    phrases: tuple[str, str]  # regular expressions
    others: tuple[str, ...]  # English words beside which this is not certain
    is_place: bool = False


def rules() -> Iterator[Rule]:
    for english, french, *others in NUMBERS:
        yield Rule(NUMBER, (english, french), (english, french), tuple(others))
    for is_place, nouns in ((False, PERSONS), (True, PLACES)):
        for english, french, *others in nouns:
            phrases = f"{ARTICLES[0]}\\s+{english}", f"{ARTICLES[1]}\\s+{french}"
            yield Rule(NAME, (english, french), phrases, tuple(others), is_place)


def whole(expression: str, cased: bool) -> re.Pattern[str]:
    """Return a pattern for the expression between word boundaries."""
    return re.compile(rf"(?<![\w'’-])(?:{expression})(?![\w-])", re.IGNORECASE if cased else 0)


@dataclass(frozen=True)
class Site:
    """A place in a pair, (start, end) on either side, where a rule applies."""

    rule: Rule
    spans: tuple[tuple[int, int], tuple[int, int]]


def sites(pair: tuple[str, str], cased: bool) -> Iterator[Site]:
    """Return all places where a rule certainly applies."""
    for rule in rules():
        if any(len(whole(word, cased).findall(text)) != 1 for word, text in zip(rule.words, pair, strict=True)):
            continue
        if rule.others and whole("|".join(rule.others), cased).search(pair[0]):
            continue
        found = [whole(phrase, cased).search(text) for phrase, text in zip(rule.phrases, pair, strict=True)]
        if found[0] is None or found[1] is None:
            continue
        possessed = re.match(rf"\s*{APOSTROPHE}s\b", pair[0][found[0].end() :])
        elided = re.search(rf"{APOSTROPHE}\s*$", pair[1][: found[1].start()])
        if not possessed and not elided:
            yield Site(rule, (found[0].span(), found[1].span()))


class Strings:
    """New strings, each used once.

    Args:
        taken: lower-case text that must contain none of them.
    """

    def __init__(self, taken: str, seed: int) -> None:
        self.taken = taken
        self.given: set[str] = set()
        self.random = random.Random(seed)

    def new(self, rule: Rule) -> str:
        """Return a new string. Raises DataError if the texts contain all that were tried."""
        for _ in range(10_000):
            text = self._number() if rule.kind == NUMBER else self._name(rule.is_place)
            if text not in self.given and text not in self.taken:
                self.given.add(text)
                return text
        raise DataError(f"found no new {rule.kind} in 10,000 attempts: the texts contain them all; use a smaller test")

    def _number(self) -> str:
        length = self.random.choice(DIGITS)
        return str(self.random.randrange(10 ** (length - 1), 10**length))

    def _name(self, is_place: bool) -> str:
        choice = self.random.choice
        syllables = [choice(ONSETS) + choice("aeiou") for _ in range(choice((1, 2)))]
        return "".join(syllables) + choice(ONSETS) + choice(PLACE_ENDINGS if is_place else PERSON_ENDINGS)


@dataclass(frozen=True)
class CopyPair:
    """A pair with new strings. `copies` are (kind, string, replaced English word)."""

    english: str
    french: str
    copies: list[tuple[str, str, str]]

    def facts(self) -> str:
        copies = [{"kind": kind, "english": text, "french": text, "seen": False} for kind, text, _ in self.copies]
        return json.dumps({"copies": copies}, ensure_ascii=False)


def make(pairs: Sequence[tuple[str, str]], strings: Strings, cased: bool) -> Iterator[CopyPair]:
    """Return the pairs with a replacement."""
    for pair in pairs:
        by_kind: dict[str, list[Site]] = {kind: [] for kind in KINDS}
        for site in sites(pair, cased):
            by_kind[site.rule.kind].append(site)
        chosen = [strings.random.choice(found) for found in by_kind.values() if found]
        if not chosen:
            continue
        new = [(site, strings.new(site.rule)) for site in chosen]
        if cased:
            new = [(site, text.capitalize()) for site, text in new]
        sides = list(pair)
        for i in range(len(sides)):
            for site, text in sorted(new, key=lambda one: one[0].spans[i], reverse=True):
                start, end = site.spans[i]
                sides[i] = sides[i][:start] + text + sides[i][end:]
        yield CopyPair(sides[0], sides[1], [(site.rule.kind, text, site.rule.words[0]) for site, text in new])


def read_pairs(source: str, reference: str, cased: bool) -> list[tuple[str, str]]:
    """Read pairs. Raises DataError: unreadable files, different numbers of lines, or capitals without --cased."""
    sides = [list(iter_lines(path)) for path in (source, reference)]
    if len(sides[0]) != len(sides[1]):
        raise DataError(
            f"{reference}: expected {len(sides[0]):,} lines, as many as {source} has, found {len(sides[1]):,}; use "
            "two sides of one text"
        )
    for path, lines in zip((source, reference), sides, strict=True):
        for number, line in lines:
            if not cased and line != line.lower():
                raise DataError(f"{place(path, number)}: expected lower-cased text, found capitals; add --cased")
    return [(english, french) for (_, english), (_, french) in zip(*sides, strict=True)]


def table(made: Sequence[CopyPair]) -> str:
    """Return a table of replaced words and their counts."""
    counts = {kind: Counter(word for one in made for k, _, word in one.copies if k == kind) for kind in KINDS}
    rows = [f"{'kind':<8} {'strings':>7}  in place of"]
    for kind, counted in counts.items():
        words = ", ".join(f"{word} {count}" for word, count in counted.most_common())
        rows.append(f"{kind:<8} {counted.total():>7,}  {words}")
    both = sum(len(one.copies) > 1 for one in made)
    return "\n".join([*rows, f"{len(made):,} pairs, {both:,} of them with both"])


@one_line_errors("make_copy_test")
def main() -> None:
    parser = argparse.ArgumentParser(description="Put numbers and names that training lacks into English-French pairs.")
    parser.add_argument("--source", required=True, metavar="FILE", help="English text, one sentence per line (.gz too)")
    parser.add_argument("--reference", required=True, metavar="FILE", help="its French translation")
    parser.add_argument(
        "--train", required=True, nargs="+", metavar="FILE", help="texts that must not contain the new strings"
    )
    parser.add_argument("--cased", action="store_true", help="keep the case of the texts, and give names a capital")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="for copy.en, copy.fr, copy.facts.jsonl")
    args = parser.parse_args()
    pairs = read_pairs(args.source, args.reference, args.cased)
    texts = (line.lower() for path in (*args.train, args.source, args.reference) for _, line in iter_lines(path))
    made = list(make(pairs, Strings("\n".join(texts), args.seed), args.cased))
    if not made:
        raise DataError(
            f"{args.source}: expected English sentences with words such as `two` or `a man`, and their French "
            "translations, found no pair in which to put a number or name"
        )
    try:
        for name, lines in (
            ("copy.en", [one.english for one in made]),
            ("copy.fr", [one.french for one in made]),
            ("copy.facts.jsonl", [one.facts() for one in made]),
        ):
            write_lines(args.out / name, lines)
    except OSError as error:
        raise OptionError(f"--out {args.out}: cannot be written to: {error.strerror or error}") from None
    print(table(made))


if __name__ == "__main__":
    sys.exit(main())
