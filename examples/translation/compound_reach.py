#!/usr/bin/env python3
"""Count the unseen compounds of a reference that translations of adjacent source words could form.

    python examples/translation/compound_reach.py --train-source train.en --train train.de \\
        --source val.en --reference val.de

A compound is two words of the training text with a linking element between them: 'spiel' + 'haus' = 'spielhaus',
'arbeit' + s + 'anzug' = 'arbeitsanzug'. The script learns linking elements from the training words: those of at least
1 % of the words that have a split. It splits compounds of the training text, so that their parts have translations. A
word is split if the geometric mean of its parts' counts is above its own count (Koehn & Knight 2003), or, with
--splitter compound-split, where that package splits it (PyPI; German). With --stems, a part also matches a translation
if only their last two letters differ ('tasche' and 'taschen').

The table has a row for each K, the number of translations of a source word. The other columns are about the tokens of
the reference that the training text lacks:

    unseen      number of these tokens
    compounds   tokens that can be split into two words of the training text
    adjacent    compounds whose parts are translations of one source word, or of two adjacent ones: *in reach*
    anywhere    the same for any two words of the sentence
    strings     different unseen strings that adjacent translations form, mean of the sentences
    BLEU        of the reference without the compounds in reach, against itself: a perfect translation without them

No model is needed.
"""

import argparse
import importlib.util
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import sacrebleu

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed

from translated_texts import Pairs, read_pairs

from fairseq_llrnn.alignment.aligners import ALIGNERS, choose_aligner, translation_table
from fairseq_llrnn.alignment.bitext import bitext_of
from fairseq_llrnn.errors import one_line_errors

SHORTEST = 3  # letters of a part of an unseen word
SHORTEST_OF_TEXT = 4  # of a part of a training word, which may be no compound
MOST_LETTERS = 2  # of a linking element
LEAST_SHARE = 0.01  # of the words with a split, for a linking element
TRANSLATIONS = (3, 5, 10)  # K

Parts = tuple[str, str]
Match = Callable[[str, str], bool]


def is_same_stem(part: str, translation: str) -> bool:
    """Return whether two words share at least four letters, and all but two of the longer word, at their beginning."""
    shared = len(os.path.commonprefix([part, translation]))
    return part == translation or shared >= max(4, max(len(part), len(translation)) - 2)


def joined(first: str, element: str, last: str) -> str | None:
    """Return the compound. The element '-e' removes the first part's final e. None: the part has no such e."""
    if element == "-e":
        return first[:-1] + last if first.endswith("e") else None
    return first + element + last


def splits(
    word: str, counts: Counter[str], elements: Sequence[str], shortest: int = SHORTEST
) -> Iterator[tuple[str, Parts]]:
    """Yield the linking elements of a word with the parts, which are words of the training text."""
    for place in range(shortest, len(word) - shortest + 1):
        first, last = word[:place], word[place:]
        if not (last.isalpha() and counts[last]):
            continue
        for element in elements:
            part = first + "e" if element == "-e" else first.removesuffix(element)
            if len(part) >= shortest and counts[part] and joined(part, element, last) == word:
                yield element, (part, last)


def learned_elements(counts: Counter[str]) -> list[str]:
    """Return the frequent linking elements of the words, '' among them."""
    ends = {word[-size:] for word in counts for size in range(1, MOST_LETTERS + 1)}
    found, num_words = Counter[str](), 0
    for word in counts:
        elements = {element for element, _ in splits(word, counts, ["", "-e", *sorted(ends)], SHORTEST_OF_TEXT)}
        found.update(elements)
        num_words += bool(elements)
    return [element for element, number in found.most_common() if number >= LEAST_SHARE * num_words]


def by_counts(counts: Counter[str], elements: Sequence[str]) -> Callable[[str], Parts | None]:
    def split(word: str) -> Parts | None:
        found = [
            (math.sqrt(counts[first] * counts[last]), (first, last))
            for _, (first, last) in splits(word, counts, elements, SHORTEST_OF_TEXT)
        ]
        mean, parts = max(found, default=(0.0, None))
        return parts if mean > counts[word] else None

    return split


def by_package(counts: Counter[str], elements: Sequence[str]) -> Callable[[str], Parts | None]:
    from compound_split.char_split import split_compound

    def split(word: str) -> Parts | None:
        score, _, last = split_compound(word)[0]
        found = [parts for _, parts in splits(word, counts, elements) if parts[1] == last.lower()]
        return max(found, key=lambda parts: counts[parts[0]]) if score > 0 and found else None

    return split


SPLITTERS = {"counts": by_counts, "compound-split": by_package}


def translations(train: Pairs, split: Callable[[str], Parts | None], aligner: str) -> dict[str, list[str]]:
    """Return the translations of source words into words and parts, best first."""
    parts = {word: split(word) or (word,) for _, target in train for word in target}
    text = bitext_of(
        [source for source, _ in train], [[part for word in target for part in parts[word]] for _, target in train]
    )
    sources, targets = (np.ones(len(words), dtype=bool) for words in (text.source_words, text.target_words))
    table, _ = translation_table(text.bitext, sources, targets, max(TRANSLATIONS), aligner)
    return {word: [text.target_words[u] for u, _ in table.row(s)] for s, word in enumerate(text.source_words)}


def least_distance(parts: Iterable[Parts], offered: Sequence[Sequence[str]], match: Match) -> float:
    """Return how far apart the source words are whose translations are the parts of a word. ∞: there are none.

    Args:
        offered: translations of each source word.
    """
    places = {
        part: [i for i, words in enumerate(offered) if any(match(part, word) for word in words)]
        for pair in parts for part in pair
    }  # fmt: skip
    return min((abs(i - j) for first, last in parts for i in places[first] for j in places[last]), default=math.inf)


def new_strings(offered: Sequence[Sequence[str]], counts: Counter[str], elements: Sequence[str]) -> set[str]:
    """Return the unseen strings that translations of one source word, or of two adjacent ones, form."""
    near = (
        (first, last)
        for i, words in enumerate(offered) for others in offered[max(0, i - 1) : i + 2]
        for first in words for last in others
        if min(len(first), len(last)) >= SHORTEST and last.isalpha()
    )  # fmt: skip
    return {
        string for first, last in near for element in elements
        if (string := joined(first, element, last)) and not counts[string]
    }  # fmt: skip


def reach(
    pairs: Pairs, counts: Counter[str], elements: Sequence[str], of_source: dict[str, list[str]], k: int, match: Match
) -> dict[str, float]:
    """Return a row of the table.

    Args:
        of_source: translations of source words. k: number of translations. match: of a part and a translation.
    """
    found, strings, masked = Counter[str](), [], []
    for source, reference in pairs:
        offered = [of_source.get(word, [])[:k] for word in source]
        strings.append(len(new_strings(offered, counts, elements)))
        words = []
        for word in reference:
            parts = [] if counts[word] else [parts for _, parts in splits(word, counts, elements)]
            distance = least_distance(parts, offered, match)
            found.update(
                unseen=not counts[word], compounds=bool(parts), adjacent=distance < 2, anywhere=distance < math.inf
            )
            words.append("<unk>" if distance < 2 else word)
        masked.append(" ".join(words))
    bleu = sacrebleu.corpus_bleu(masked, [[" ".join(words) for _, words in pairs]], tokenize="none", force=True)
    return {**found, "strings": float(np.mean(strings)), "bleu": bleu.score}


def print_table(args: argparse.Namespace) -> None:
    train, pairs = read_pairs(args.train_source, args.train), read_pairs(args.source, args.reference)
    counts = Counter(word for _, target in train for word in target)
    elements = learned_elements(counts)
    split = SPLITTERS[args.splitter](counts, elements)
    of_source = translations(train, split, choose_aligner(args.aligner))
    print("linking elements:", ", ".join(element or "none" for element in elements))
    print(f"{'K':>3}{'unseen':>8}{'compounds':>11}{'adjacent':>10}{'anywhere':>10}{'strings':>9}{'BLEU':>8}")
    for k in TRANSLATIONS:
        row = reach(pairs, counts, elements, of_source, k, is_same_stem if args.stems else str.__eq__)
        print(
            f"{k:>3}{row['unseen']:>8.0f}{row['compounds']:>11.0f}{row['adjacent']:>10.0f}{row['anywhere']:>10.0f}"
            f"{row['strings']:>9,.0f}{row['bleu']:>8.2f}"
        )


@one_line_errors("compound_reach.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, help_text in (
        ("train-source", "training text of the source, in words"),
        ("train", "its translation"),
        ("source", "sentences"),
        ("reference", "their translations"),
    ):
        parser.add_argument(f"--{option}", required=True, help=help_text)
    parser.add_argument("--splitter", choices=SPLITTERS, default="counts")
    parser.add_argument("--aligner", choices=ALIGNERS, default="auto", help="auto: eflomal if it is installed")
    parser.add_argument("--stems", action="store_true", help="ignore the last two letters of parts")
    args = parser.parse_args()
    if args.splitter == "compound-split" and not importlib.util.find_spec("compound_split"):
        parser.error("--splitter compound-split: the package is not installed; use `pip install compound-split`")
    print_table(args)


if __name__ == "__main__":
    sys.exit(main())
