#!/usr/bin/env python3
"""Count the unseen compounds of a reference that translations of adjacent source words could form.

    python scripts/compound_reach.py --train-source train.en --train train.de --source val.en --reference val.de

A compound is two words of the training text with a linking element between them: 'spiel' + 'haus' = 'spielhaus',
'arbeit' + s + 'anzug' = 'arbeitsanzug'. Linking elements are learned from the training words: those of at least 1 % of
the words that have a split. Compounds of the training text are split before t(u | s) is estimated (IBM Model 1), so
that parts have translations. A word is split if the geometric mean of its parts' counts is above its own count (Koehn
& Knight 2003), or, with --splitter compound-split, where that package splits it (PyPI; German). With --stems, a
translation also counts as a part if they differ only in their last two letters.

For the tokens of the reference that the training text lacks, the table has, by the number K of translations of a source
word: how many are compounds; how many have both parts among the translations of the same or of adjacent source words;
how many have them anywhere in the sentence; the number of strings that adjacent translations form in a sentence; and
the BLEU of the reference against itself without the compounds in reach. That is what a perfect translation loses
without them. No model is needed.
"""

import argparse
import importlib.util
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import sacrebleu

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # if the package is not installed

from translated_texts import Pairs, read_pairs

from fairseq_llrnn.alignment.aligners import translation_table
from fairseq_llrnn.alignment.bitext import bitext_of
from fairseq_llrnn.errors import LLRNNError

SHORTEST = 3  # letters of a part
MOST_LETTERS = 2  # of a linking element
LEAST_SHARE = 0.01  # of the words with a split, for a linking element
TRANSLATIONS = (3, 5, 10)  # K

Parts = tuple[str, str]


def stem(word: str) -> str:
    """Return a word without its last two letters, but at least four."""
    return word[: max(4, len(word) - 2)]


def splits(word: str, counts: Counter[str], elements: Sequence[str]) -> Iterator[tuple[str, Parts]]:
    """Yield linking elements with their parts. The element '-e' means that the first part loses its final e."""
    for place in range(SHORTEST, len(word) - SHORTEST + 1):
        first, last = word[:place], word[place:]
        if not (last.isalpha() and counts[last]):
            continue
        for element in elements:
            part = first + "e" if element == "-e" else first.removesuffix(element)
            if (element == "-e" or first.endswith(element)) and len(part) >= SHORTEST and counts[part]:
                yield element, (part, last)


def learned_elements(counts: Counter[str]) -> list[str]:
    """Return the frequent linking elements of the words, '' among them."""
    ends = {word[-size:] for word in counts for size in range(1, MOST_LETTERS + 1)}
    found = Counter[str]()
    for word in counts:
        found.update({element for element, _ in splits(word, counts, ["", "-e", *sorted(ends)])})
    return [element for element, number in found.most_common() if number >= LEAST_SHARE * found.total()]


def by_counts(counts: Counter[str], elements: Sequence[str]) -> Callable[[str], Parts | None]:
    def split(word: str) -> Parts | None:
        found = [(math.sqrt(counts[a] * counts[b]), (a, b)) for _, (a, b) in splits(word, counts, elements)]
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


def translations(train: Pairs, split: Callable[[str], Parts | None]) -> dict[str, list[str]]:
    """Return the translations of source words into words and parts, best first."""
    parts = {word: split(word) or (word,) for _, target in train for word in target}
    text = bitext_of(
        [source for source, _ in train], [[part for word in target for part in parts[word]] for _, target in train]
    )
    sources, targets = (np.ones(len(words), dtype=bool) for words in (text.source_words, text.target_words))
    table, _ = translation_table(text.bitext, sources, targets, max(TRANSLATIONS), "ibm1")
    return {word: [text.target_words[u] for u, _ in table.row(s)] for s, word in enumerate(text.source_words)}


def reach(
    pairs: Pairs, counts: Counter[str], elements: Sequence[str], of_word: dict[str, list[str]], most: int,
    form: Callable[[str], str] = str,
) -> dict[str, float]:  # fmt: skip
    """Return a row of the table. most: K. form: of a part and of a translation, equal if they match."""
    found, strings, without = Counter[str](), [], []
    for source, reference in pairs:
        offered = [of_word.get(word, [])[:most] for word in source]
        places: dict[str, set[int]] = {}
        for place, words in enumerate(offered):
            for word in words:
                places.setdefault(form(word), set()).add(place)
        kept = []
        for word in reference:
            parts = [] if counts[word] else [parts for _, parts in splits(word, counts, elements)]
            distances = [abs(i - j) for a, b in parts for i in places.get(form(a), ()) for j in places.get(form(b), ())]
            is_near = min(distances, default=2) < 2
            found["unseen"] += not counts[word]
            found["compounds"] += bool(parts)
            found["adjacent"] += is_near
            found["anywhere"] += bool(distances)
            kept.append("<unk>" if is_near else word)
        near = {
            (a, b) for i, words in enumerate(offered) for a in words for other in offered[max(0, i - 1) : i + 2]
            for b in other
        }  # fmt: skip
        strings.append(len(near) * len(elements))
        without.append(" ".join(kept))
    bleu = sacrebleu.corpus_bleu(without, [[" ".join(words) for _, words in pairs]], tokenize="none", force=True)
    return {**found, "strings": float(np.mean(strings)), "bleu": bleu.score}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, what in (
        ("train-source", "training text of the source, in words"),
        ("train", "its translation"),
        ("source", "sentences"),
        ("reference", "their translations"),
    ):
        parser.add_argument(f"--{option}", required=True, help=what)
    parser.add_argument("--splitter", choices=SPLITTERS, default="counts")
    parser.add_argument("--stems", action="store_true", help="ignore the last two letters of parts")
    args = parser.parse_args()
    if args.splitter == "compound-split" and not importlib.util.find_spec("compound_split"):
        parser.error("--splitter compound-split: the package is not installed; use `pip install compound-split`")
    try:
        train, pairs = read_pairs(args.train_source, args.train), read_pairs(args.source, args.reference)
    except LLRNNError as error:
        print(f"compound_reach.py: error: {error}", file=sys.stderr)
        return 2
    counts = Counter(word for _, target in train for word in target)
    elements = learned_elements(counts)
    of_word = translations(train, SPLITTERS[args.splitter](counts, elements))
    print("linking elements:", ", ".join(element or "none" for element in elements))
    print(f"{'K':>3}{'unseen':>8}{'compounds':>11}{'adjacent':>10}{'anywhere':>10}{'strings':>9}{'BLEU without':>14}")
    for most in TRANSLATIONS:
        row = reach(pairs, counts, elements, of_word, most, stem if args.stems else str)
        print(f"{most:>3}{row['unseen']:>8.0f}{row['compounds']:>11.0f}{row['adjacent']:>10.0f}{row['anywhere']:>10.0f}"
              f"{row['strings']:>9,.0f}{row['bleu']:>14.2f}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
