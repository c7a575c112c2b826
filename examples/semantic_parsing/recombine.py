#!/usr/bin/env python3
"""Generate new pairs of questions and forms from parts of the training pairs (Jia & Liang 2016; Andreas 2020).

    recombine.py --text OUT/train --grammar funql.grammar --number 6000 --copies 4 --out OUT/mixed

reads OUT/train.{question,form} and writes OUT/mixed.{question,form}: the training pairs, --copies times, and --number
new ones. It uses only the training pairs and the grammar.

    what is the capital of state0                       answer(capital(loc_2(state0)))
    how many states border [the largest state]          answer(count(state(next_to_2([largest(state(all))]))))
    what is the capital of [the largest state]          answer(capital(loc_2([largest(state(all))])))

A *phrase* is a part of a form together with its words: those linked to it by a word alignment, if no word between them
is linked to anything else (as Wong & Mooney 2006 find the rules of a synchronous grammar). A name is linked to itself.
A phrase replaces another one if training has its first symbol below the same predicate, both pairs of words at its ends
are adjacent somewhere, and the grammar derives the form. Words in only one question become `<unk>` half of the time.
"""

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
from atis_grammar import LISTS
from funql import Form, parse_symbols
from funql_mentions import KINDS, kind_of_name
from funql_recognise import Rules, derives, read_rules

from fairseq_llrnn.alignment.aligners import choose_aligner
from fairseq_llrnn.alignment.bitext import Bitext, BitextSide
from fairseq_llrnn.alignment.word_links import directed_links, symmetrised
from fairseq_llrnn.errors import one_line_errors
from fairseq_llrnn.files.atomic_write import write_lines
from fairseq_llrnn.files.text_lines import iter_lines

ARTICLES = frozenset({"a", "an", "all", "any", "the"})  # which belong to the phrase that they begin
MOST_TRIES = 50  # for each new pair; then there are fewer

# Kinds whose symbols, side by side, are one name's; the last pair is of ATIS.
IN_ORDER = frozenset([*combinations(KINDS, 2), ("@cityname", "@airportcode")])

Path_ = tuple[int, ...]  # which argument of which argument


@dataclass(frozen=True)
class Name:
    """A name in a question: a symbol for each kind of thing that it names, `river state` for *mississippi*."""

    kinds: tuple[str, ...]
    number: int  # no other name has it

    def __str__(self) -> str:
        return "|".join(self.kinds)


@dataclass(frozen=True)
class Example:
    """A pair, and the parts of its form that are phrases: first word, word after the last, path."""

    words: tuple[str | Name, ...]
    form: Form  # with `state#7` for the name of number 7
    phrases: tuple[tuple[int, int, Path_], ...] = ()


def read_example(words: Sequence[str], form: Form) -> Example:
    """Read a pair. Adjacent symbols of names, in the order of KINDS, belong to one name."""
    read: list[str | Name] = []
    numbers: dict[str, int] = {}
    for word in words:
        last = read[-1] if read else None
        kind = kind_of_name(word)
        if not kind:
            read.append(word)
            continue
        if isinstance(last, Name) and (last.kinds[-1], kind) in IN_ORDER:
            read[-1] = Name((*last.kinds, kind), last.number)
        else:
            read.append(Name((kind,), len(numbers)))
        numbers[word] = read[-1].number  # type: ignore[union-attr]

    def named(part: Form) -> Form:
        if part.head in numbers:
            return Form(f"{part.head[:-1]}#{numbers[part.head]}")
        return Form(part.head, tuple(map(named, part.arguments)))

    return Example(tuple(read), named(form))


def written(words: Sequence[str | Name], form: Form) -> tuple[list[str], list[str]] | None:
    """Return both in symbols, with names numbered from the left, or None if the question lacks a name of the form."""
    question: list[str] = []
    symbols: dict[str, str] = {}
    for word in words:
        for kind in word.kinds if isinstance(word, Name) else ():
            number = sum(kind_of_name(symbol) == kind for symbol in symbols.values())
            symbols[f"{kind}#{word.number}"] = f"{kind}{number}"  # type: ignore[union-attr]
            question.append(f"{kind}{number}")
        if isinstance(word, str):
            question.append(word)
    heads = [part.head for _, part in parts(form)]
    if any("#" in head and head not in symbols for head in heads):
        return None

    def named(part: Form) -> Form:
        return Form(symbols.get(part.head, part.head), tuple(map(named, part.arguments)))

    return question, list(named(form).symbols())


def parts(form: Form, path: Path_ = ()) -> Iterator[tuple[Path_, Form]]:
    """Yield the form and all forms inside it, each with its path."""
    yield path, form
    for number, argument in enumerate(form.arguments):
        yield from parts(argument, (*path, number))


def part_at(form: Form, path: Path_) -> Form:
    for number in path:
        form = form.arguments[number]
    return form


def replaced(form: Form, path: Path_, new: Form) -> Form:
    if not path:
        return new
    inside = list(form.arguments)
    inside[path[0]] = replaced(inside[path[0]], path[1:], new)
    return Form(form.head, tuple(inside))


def _side(sentences: Sequence[Sequence[str]]) -> tuple[BitextSide, int]:
    ids: dict[str, int] = {}
    tokens = [ids.setdefault(word, len(ids)) for sentence in sentences for word in sentence]
    lengths = [len(sentence) for sentence in sentences]
    return BitextSide(np.array(tokens, dtype=np.int64), np.cumsum([0, *lengths])), len(ids)


def with_phrases(examples: Sequence[Example], aligner: str) -> list[Example]:
    """Return the same examples, with their phrases."""
    places = [[i for i, word in enumerate(example.words) if isinstance(word, str)] for example in examples]
    predicates = [
        [
            (path, part.head)
            for path, part in parts(example.form)
            if path and "#" not in part.head and part.head != "all"
        ]
        for example in examples
    ]
    source, num_words = _side([[str(e.words[i]) for i in own] for e, own in zip(examples, places, strict=True)])
    target, num_heads = _side([[head for _, head in own] for own in predicates])
    bitext = Bitext(source, target)
    forward, backward = directed_links(bitext, num_words, num_heads, aligner)
    links = symmetrised(forward, backward, bitext)
    said: list[dict[int, set[Path_]]] = [defaultdict(set) for _ in examples]  # the parts that each word says
    for word, head in zip(links.source.tolist(), links.target.tolist(), strict=True):
        pair = int(np.searchsorted(source.offsets, word, side="right")) - 1
        place = places[pair][word - int(source.offsets[pair])]
        said[pair][place].add(predicates[pair][head - int(target.offsets[pair])][0])
    found = []
    for example, own in zip(examples, said, strict=True):
        for place, word in enumerate(example.words):
            if isinstance(word, Name):
                own[place] |= {path for path, part in parts(example.form) if part.head.endswith(f"#{word.number}")}
        spans = [(path, _span(example, path, own)) for path, part in parts(example.form) if path and part.head != "all"]
        phrases = tuple((*span, path) for path, span in spans if span)
        found.append(Example(example.words, example.form, phrases))
    return found


def _span(example: Example, path: Path_, said: dict[int, set[Path_]]) -> tuple[int, int] | None:
    """Return the words of the part at `path` only, from the first to after the last, if there are any."""

    def below(place: int) -> list[bool]:
        return [other[: len(path)] == path for other in said.get(place, ())]

    own = [place for place in range(len(example.words)) if any(below(place))]
    if not own or not all(all(below(place)) for place in range(own[0], own[-1] + 1)):
        return None
    begin = own[0]
    while begin and example.words[begin - 1] in ARTICLES and not said.get(begin - 1):
        begin -= 1
    return begin, own[-1] + 1


class Recombiner:
    """Generates new pairs from examples with phrases."""

    def __init__(self, examples: Sequence[Example], rules: Rules, seed: int) -> None:
        self.examples = examples
        self.is_form = cache(lambda symbols: derives(rules, symbols))  # the same form comes with many questions
        self.random = random.Random(seed)
        self.longest = max(len(e.words) for e in examples), max(len(list(e.form.symbols())) for e in examples)
        self.below: set[tuple[str, str]] = set()  # predicate, first symbol of an argument
        self.beside: set[tuple[str, str]] = set()  # words
        phrases: dict[str, list[tuple[tuple[str | Name, ...], Form]]] = defaultdict(list)
        for example in examples:
            words = ["<s>", *map(str, example.words), "</s>"]
            self.beside |= set(zip(words, words[1:], strict=False))
            for _, part in parts(example.form):
                self.below |= {(part.head, _kind(argument)) for argument in part.arguments}
            for begin, end, path in example.phrases:
                part = part_at(example.form, path)
                phrases[_kind(part)].append((example.words[begin:end], part))
        above: dict[str, list[tuple[tuple[str | Name, ...], Form]]] = defaultdict(list)
        for predicate, kind in sorted(self.below):
            above[predicate] += phrases[kind]
        self.fitting = above  # the phrases that may stand below a predicate

    def pair(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Return a new question and form, or None if the random choice does not fit."""
        example = self.random.choice(self.examples)
        for _ in range(self.random.choice((1, 1, 2))):
            example = self._exchanged(example) or example
        new = written(example.words, example.form)
        if new is None or len(new[0]) > self.longest[0] or len(new[1]) > self.longest[1]:
            return None
        question, form = map(tuple, new)
        return (question, form) if self.is_form(form) else None

    def _exchanged(self, example: Example) -> Example | None:
        """Return the example with one phrase replaced."""
        if not example.phrases:
            return None
        begin, end, path = self.random.choice(example.phrases)
        old, above = part_at(example.form, path), part_at(example.form, path[:-1]).head
        if not self.fitting[above]:
            return None
        words, part = self.random.choice(self.fitting[above])
        if above in LISTS and _kind(part) != _kind(old):
            return None  # lists have their members in an order
        ends = ["<s>", *map(str, example.words), "</s>"]
        if not {(ends[begin], str(words[0])), (str(words[-1]), ends[end + 1])} <= self.beside:
            return None
        offset = 1 + max((word.number for word in example.words if isinstance(word, Name)), default=0)
        words, part = _renumbered(words, part, offset)
        moved = len(words) - (end - begin)
        kept = [
            (first + (moved if first >= end else 0), last + (moved if first >= end else 0), other)
            for first, last, other in example.phrases
            if (last <= begin or first >= end) and other[: len(path)] != path and path[: len(other)] != other
        ]
        return Example(
            (*example.words[:begin], *words, *example.words[end:]), replaced(example.form, path, part), tuple(kept)
        )


def _kind(part: Form) -> str:
    """Return the first symbol of a part, with names by their kind."""
    return part.head.partition("#")[0]


def _renumbered(words: tuple[str | Name, ...], part: Form, offset: int) -> tuple[tuple[str | Name, ...], Form]:
    """Return the phrase with its names numbered from `offset` on."""
    numbers = {word.number: offset + i for i, word in enumerate(words) if isinstance(word, Name)}

    def renamed(form: Form) -> Form:
        kind, _, number = form.head.partition("#")
        return Form(f"{kind}#{numbers[int(number)]}" if number else kind, tuple(map(renamed, form.arguments)))

    return tuple(Name(w.kinds, numbers[w.number]) if isinstance(w, Name) else w for w in words), renamed(part)


def recombined(
    pairs: Sequence[tuple[str, str]], rules: Rules, number: int, aligner: str, seed: int = 1
) -> list[tuple[str, str]]:
    """Return at most so many new pairs, all different."""
    known = set(pairs)
    examples = [read_example(question.split(), parse_symbols(form.split(), form)) for question, form in sorted(known)]
    recombiner = Recombiner(with_phrases(examples, aligner), rules, seed)
    found: dict[tuple[str, str], None] = {}
    for _ in range(number * MOST_TRIES):
        if len(found) == number:
            break
        new = recombiner.pair()
        if new and (pair := (" ".join(new[0]), " ".join(new[1]))) not in known:
            found[pair] = None
    return list(found)


@one_line_errors("recombine.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", required=True, help="training pairs: the files without .question and .form")
    parser.add_argument("--grammar", type=Path, required=True, help="which every new form is of")
    parser.add_argument("--number", type=int, required=True, help="of new pairs")
    parser.add_argument("--copies", type=int, default=1, help="of the training pairs (default: 1)")
    parser.add_argument("--aligner", default="auto", help="as of llrnn prior (default: auto)")
    parser.add_argument("--out", required=True, help="the files without .question and .form")
    args = parser.parse_args()
    sides = [[line for _, line in iter_lines(Path(f"{args.text}.{side}"))] for side in ("question", "form")]
    pairs = list(zip(*sides, strict=True))
    new = recombined(pairs, read_rules(args.grammar), args.number, choose_aligner(args.aligner)) if args.number else []
    counts = Counter(word for question in set(sides[0]) for word in set(question.split()))
    hidden = random.Random(2)
    mixed = [
        (
            " ".join(
                "<unk>" if counts[w] == 1 and not kind_of_name(w) and hidden.random() < 0.5 else w
                for w in question.split()
            ),
            form,
        )
        for question, form in pairs * args.copies + new
    ]
    for side, lines in zip(("question", "form"), zip(*mixed, strict=True), strict=True):
        write_lines(Path(f"{args.out}.{side}"), lines)
    print(f"{len(pairs)} pairs, {args.copies} times, and {len(new)} new ones")


if __name__ == "__main__":
    sys.exit(main())
