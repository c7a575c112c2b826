"""The data of the example: texts with labels, from ../shared/data, in three splits.

glosses     a WordNet definition -> the words that it defines (140,000 labels)
clinc150    a question -> its intent (150 labels)   banking77   the same for a bank (77)
next-word   four words of an English novel -> the next one
"""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fairseq_llrnn.systems.classification.label_hits import LabelHits

SPLITS = ("train", "valid", "test")
CONTEXT = 4  # words of a novel that come before a label
EXAMPLES_OF_NOVELS = {"train": 300_000, "valid": 10_000, "test": 20_000}


@dataclass(frozen=True)
class Texts:
    """The words of each text, and its labels."""

    words: list[list[str]]
    labels: list[list[str]]

    def __len__(self) -> int:
        return len(self.words)


def read(name: str, folder: Path) -> dict[str, Texts]:
    """Return the splits of a data set."""
    return {split: Texts(*map(list, zip(*pairs, strict=True))) for split, pairs in READERS[name](folder).items()}


Pairs = list[tuple[list[str], list[str]]]


def glosses(folder: Path) -> dict[str, Pairs]:
    found: dict[str, Pairs] = {}
    for split in SPLITS:
        with gzip.open(folder / "wordnet-glosses" / f"{split}.tsv.gz", "rt", encoding="utf-8") as file:
            rows = (line.rstrip("\n").split("\t") for line in file)
            found[split] = [(text.split(), labels.split()) for text, labels in rows]
    return found


def clinc150(folder: Path) -> dict[str, Pairs]:
    with gzip.open(folder / "labels" / "clinc150.json.gz", "rt", encoding="utf-8") as file:
        rows = json.load(file)
    return {
        split: [(text.split(), [label]) for text, label in rows["val" if split == "valid" else split]]
        for split in SPLITS
    }


def banking77(folder: Path) -> dict[str, Pairs]:
    """Read the set, with a tenth of the training texts for validation."""

    def pairs(name: str) -> Pairs:
        with gzip.open(folder / "labels" / f"banking77.{name}.csv.gz", "rt", encoding="utf-8") as file:
            words = str.maketrans({mark: f" {mark} " for mark in "?!.,'"})
            rows = islice(csv.reader(file), 1, None)
            return [(text.lower().translate(words).split(), [label]) for text, label in rows]

    train = pairs("train")
    random.Random(1).shuffle(train)
    return {"train": train[len(train) // 10 :], "valid": train[: len(train) // 10], "test": pairs("test")}


def next_word(folder: Path) -> dict[str, Pairs]:
    """Return contexts in the order of the novels, those of the first sentences. Each word of a context has its
    distance.
    """
    found = {}
    for split, many in EXAMPLES_OF_NOVELS.items():
        with gzip.open(folder / "eltec-eng" / f"{split}.txt.gz", "rt", encoding="utf-8") as file:
            found[split] = list(islice(_contexts(file), many))
    known = {label for _, labels in found["train"] for label in labels}
    for split in SPLITS[1:]:
        found[split] = [(words, labels) for words, labels in found[split] if labels[0] in known]
    return found


def _contexts(lines: Iterator[str]) -> Iterator[tuple[list[str], list[str]]]:
    for line in lines:
        words = ["</s>"] * CONTEXT + line.split()
        for i in range(CONTEXT, len(words)):
            yield [f"{distance}:{words[i - distance]}" for distance in range(1, CONTEXT + 1)], [words[i]]


READERS = {"glosses": glosses, "clinc150": clinc150, "banking77": banking77, "next-word": next_word}


def dictionary(lists: list[list[str]]) -> Counter[str]:
    """Count the items, and return them by falling frequency."""
    counts = Counter(word for words in lists for word in words)
    return Counter(dict(counts.most_common()))


def hits_of(answers: list[list[str]], texts: Texts, known: set[str]) -> LabelHits:
    """Return which of the answers to texts are right. known: the labels of training."""
    hits = LabelHits()
    for best, gold in zip(answers, texts.labels, strict=True):
        hits.add(best, set(gold) & known, len(set(gold) - known))
    return hits
