"""Convert texts with paragraphs to the data folder (data.py): count the words, then map sentences to ids.

A text has a sentence a line, words separated by blanks, and an empty line after each paragraph.

No paragraph of two sentences or more is in two splits: paragraphs of test are removed from valid and train, and those
of valid from train. Memory holds four bytes a word, some bytes a sentence, and eight bytes a paragraph.
"""

from __future__ import annotations

import hashlib
import json
import random
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, OpenWords
from fairseq_llrnn.files.atomic_write import whole_folder
from fairseq_llrnn.files.text_lines import iter_sentences
from llrnn_research.discourse import OBJECTIVES
from llrnn_research.discourse.data import (
    DESCRIPTION,
    DICTIONARY,
    LANGUAGES,
    LENGTH,
    RELATIONS,
    SENTENCES,
    STRINGS,
    Conjunctions,
    Example,
    Split,
    all_examples,
    word_id,
)

Paragraph = list[list[str]]  # of sentences, of words


def iter_paragraphs(paths: Sequence[Path | str], lower: bool) -> Iterator[Paragraph]:
    """Yield the paragraphs of some files, plain or gzip. The last one needs no empty line.

    Raises:
        DataError: a file cannot be read, is not UTF-8, has no empty line, or only paragraphs of one sentence.
    """
    for path in paths:
        with tqdm(desc=f"reading {path}", unit=" lines", leave=False, disable=None) as bar:
            yield from _of_file(path, lower, bar)


def _of_file(path: Path | str, lower: bool, bar: tqdm) -> Iterator[Paragraph]:
    paragraph: Paragraph = []
    sentences, breaks, longest = 0, 0, 0
    for _, line in iter_sentences(path):
        bar.update()
        if words := (line.lower() if lower else line).split():
            sentences += 1
            paragraph.append(words)
            continue
        breaks += 1
        longest = max(longest, len(paragraph))
        if paragraph:
            yield paragraph
        paragraph = []
    if not breaks:
        raise DataError(
            f"{path}: expected paragraphs with an empty line after each, found {sentences:,} lines and no empty one; "
            "add an empty line after each paragraph"
        )
    if max(longest, len(paragraph)) < 2:
        raise DataError(
            f"{path}: expected paragraphs of several sentences, a sentence a line, found {sentences:,} paragraphs of "
            "one line; break lines after sentences, and leave a line empty after a paragraph"
        )
    if paragraph:
        yield paragraph


SPLITS = ("test", "valid", "train")  # earlier splits keep repeated paragraphs
FILES = (DICTIONARY, STRINGS, DESCRIPTION, *(f"{name}.npz" for name in SPLITS))  # permitted files of the folder


@dataclass(frozen=True)
class Settings:
    """Settings of a data folder."""

    language: str  # of LANGUAGES
    lower: bool
    num_words: int  # most words in the dictionary
    seed: int
    next_every: int = LENGTH  # distance of NEXT examples in a paragraph, in sentences


@dataclass(frozen=True)
class Counts:
    """The contents of a split."""

    paragraphs: int
    repeated: int  # paragraphs dropped because another split has them
    sentences: int
    words: int
    examples: Mapping[str, int]  # by objective
    answers: Mapping[str, Sequence[int]]  # by objective: counts of the answers


def prepare(texts: Mapping[str, Sequence[Path | str]], settings: Settings, out: Path) -> dict[str, Counts]:
    """Write the folder `out` atomically.

    Args:
        texts: the files of each split, at least of train.

    Raises:
        DataError: a text cannot be read, has no paragraphs, or only paragraphs of another split.
        OSError: the folder cannot be written.
    """
    counts = _count(texts["train"], settings)
    words = OpenWords([*SPECIALS, *counts])
    splits: dict[str, Split] = {}
    of_splits: dict[str, Counts] = {}
    seen: set[bytes] = set()
    for name in SPLITS:
        if texts.get(name):
            growing = _Growing(words)
            paragraphs = _new_paragraphs(name, texts[name], settings, seen, growing)
            rng, conjunctions = random.Random(f"{settings.seed} {name}"), Conjunctions(LANGUAGES[settings.language])
            for paragraph in paragraphs:
                growing.add(paragraph, all_examples(paragraph, conjunctions, settings.next_every, rng))
            splits[name] = growing.split()
            of_splits[name] = growing.counts(splits[name])
    with whole_folder(out) as folder:
        _write(folder / DICTIONARY, (f"{word} {count}\n" for word, count in counts.items()))
        _write(folder / STRINGS, (f"{word}\n" for word in words.symbols[words.num_words :]))
        for name, split in splits.items():
            split.save(folder / f"{name}.npz")
        description = _description(settings, of_splits)
        _write(folder / DESCRIPTION, [json.dumps(description, indent=1, ensure_ascii=False), "\n"])
    return of_splits


def _count(paths: Sequence[Path | str], settings: Settings) -> dict[str, int]:
    """Return the counts of the dictionary's words, most frequent first, ties alphabetically."""
    counts = Counter(
        word for paragraph in iter_paragraphs(paths, settings.lower) for sentence in paragraph for word in sentence
    )
    for special in SPECIALS:
        del counts[special]
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: settings.num_words])


def _new_paragraphs(
    name: str, paths: Sequence[Path | str], settings: Settings, seen: set[bytes], growing: _Growing
) -> Iterator[Paragraph]:
    """Yield the paragraphs that no earlier split has. Raises DataError if there are none."""
    digests: set[bytes] = set()
    for paragraph in iter_paragraphs(paths, settings.lower):
        digest = hashlib.blake2b("\n".join(map(" ".join, paragraph)).lower().encode(), digest_size=8).digest()
        if len(paragraph) > 1 and digest in seen:
            growing.repeated += 1
            continue
        digests.add(digest)
        yield paragraph
    if growing.repeated and not digests:
        raise DataError(
            f"--{name}: all its {growing.repeated:,} paragraphs are in other splits; give each text to one split"
        )
    seen |= digests


class _Growing:
    """A split under construction."""

    def __init__(self, words: OpenWords) -> None:
        self.words = words
        self.tokens, self.ends = array("i"), array("q")
        self.examples = {name: array("i") for name in OBJECTIVES}
        self.paragraphs = self.repeated = 0

    def add(self, paragraph: Paragraph, examples: Iterator[Example]) -> None:
        """Add a paragraph and its examples. Equal sentences of a paragraph are stored once."""
        self.paragraphs += 1
        number: dict[tuple[str, ...], int] = {}
        for sentence in paragraph:
            self._number(sentence, number)
        for example in examples:
            row = [self._number(sentence, number) for sentence in example.sentences]
            self.examples[example.objective].extend([*row, example.answer])

    def _number(self, sentence: Sequence[str], numbers: dict[tuple[str, ...], int]) -> int:
        words = tuple(sentence)
        if words not in numbers:
            numbers[words] = len(self.ends)
            self.tokens.extend([word_id(self.words, word) for word in words])
            self.ends.append(len(self.tokens))
        return numbers[words]

    def split(self) -> Split:
        examples = {
            name: np.array(rows, dtype=np.int32).reshape(-1, SENTENCES[name] + 1)
            for name, rows in self.examples.items()
        }
        return Split(np.array(self.tokens, dtype=np.int32), np.array(self.ends, dtype=np.int64), examples)

    def counts(self, split: Split) -> Counts:
        answers = {name: np.bincount(rows[:, -1]).tolist() for name, rows in split.examples.items()}
        examples = {name: len(rows) for name, rows in split.examples.items()}
        return Counts(self.paragraphs, self.repeated, len(split.ends), len(split.tokens), examples, answers)


def _description(settings: Settings, of_splits: Mapping[str, Counts]) -> dict[str, Any]:
    return {
        "version": 1,
        "relations": RELATIONS,
        "language": settings.language,
        "lower": settings.lower,
        "seed": settings.seed,
        "next_every": settings.next_every,
        "splits": {name: vars(counts) for name, counts in of_splits.items()},
    }


def _write(path: Path, parts: Iterator[str] | Sequence[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(parts)
