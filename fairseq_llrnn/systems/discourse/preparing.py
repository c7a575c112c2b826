"""Texts with paragraphs -> the data folder (data.py): the words are counted first, then sentences become ids.

A text has paragraphs: a sentence a line, words between blanks, an empty line after each paragraph.

No paragraph of two sentences or more is in two splits: what test has is left out of valid and train, and what valid has
is left out of train. What is kept in memory is four bytes a word, some a sentence, and eight a paragraph.
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
from fairseq_llrnn.systems.discourse import OBJECTIVES
from fairseq_llrnn.systems.discourse.data import (
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
    """The paragraphs of some files, plain or gzip; what comes before the end of a file is one, too.

    Raises:
        DataError: a file that cannot be read, is not UTF-8, has no empty line, or only paragraphs of one sentence.
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
            "mark where paragraphs end"
        )
    if max(longest, len(paragraph)) < 2:
        raise DataError(
            f"{path}: expected paragraphs of several sentences, a sentence a line, found {sentences:,} lines, each in "
            "a paragraph of its own; break lines at the ends of sentences, and leave a line empty after a paragraph"
        )
    if paragraph:
        yield paragraph


SPLITS = ("test", "valid", "train")  # in the order in which paragraphs are given away
FILES = (DICTIONARY, STRINGS, DESCRIPTION, *(f"{name}.npz" for name in SPLITS))  # all that the folder may have


@dataclass(frozen=True)
class Settings:
    """How a folder is made."""

    language: str  # of LANGUAGES
    lower: bool
    num_words: int  # at most so many in the dictionary
    seed: int
    next_every: int = LENGTH  # sentences from one NEXT example of a paragraph to the next one


@dataclass(frozen=True)
class Counts:
    """What a split has."""

    paragraphs: int
    repeated: int  # paragraphs that another split has, left out
    sentences: int
    words: int
    examples: Mapping[str, int]  # by objective
    answers: Mapping[str, Sequence[int]]  # by objective: how often each answer is right


def prepare(texts: Mapping[str, Sequence[Path | str]], settings: Settings, out: Path) -> dict[str, Counts]:
    """Write the folder `out`, whole or not at all.

    Args:
        texts: the files of each split; train has some.

    Raises:
        DataError: a text without paragraphs, that cannot be read, or whose paragraphs another split has.
        OSError: the folder cannot be written.
    """
    counts = _count(texts["train"], settings)
    words = OpenWords([*SPECIALS, *counts])
    splits: dict[str, Split] = {}
    of_splits: dict[str, Counts] = {}
    others: set[bytes] = set()
    for name in SPLITS:
        if texts.get(name):
            growing = _Growing(words)
            paragraphs = _new_paragraphs(name, texts[name], settings, others, growing)
            rng, conjunctions = random.Random(f"{settings.seed} {name}"), Conjunctions(LANGUAGES[settings.language])
            for paragraph in paragraphs:
                growing.add(paragraph, all_examples(paragraph, conjunctions, settings.next_every, rng))
            splits[name], of_splits[name] = growing.split(), growing.counts()
    with whole_folder(out) as folder:
        _write(folder / DICTIONARY, (f"{word} {count}\n" for word, count in counts.items()))
        _write(folder / STRINGS, (f"{word}\n" for word in words.symbols[words.num_words :]))
        for name, split in splits.items():
            split.save(folder / f"{name}.npz")
        description = _description(settings, of_splits)
        _write(folder / DESCRIPTION, [json.dumps(description, indent=1, ensure_ascii=False), "\n"])
    return of_splits


def _count(paths: Sequence[Path | str], settings: Settings) -> dict[str, int]:
    """How frequent the words of the dictionary are, most frequent first; equal ones in the order of their letters."""
    counts = Counter(
        word for paragraph in iter_paragraphs(paths, settings.lower) for sentence in paragraph for word in sentence
    )
    for special in SPECIALS:
        del counts[special]
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: settings.num_words])


def _new_paragraphs(
    name: str, paths: Sequence[Path | str], settings: Settings, others: set[bytes], growing: _Growing
) -> Iterator[Paragraph]:
    """The paragraphs that no split before this one has. Raises DataError where none is left."""
    digests: set[bytes] = set()
    for paragraph in iter_paragraphs(paths, settings.lower):
        digest = hashlib.blake2b("\n".join(map(" ".join, paragraph)).lower().encode(), digest_size=8).digest()
        if len(paragraph) > 1 and digest in others:
            growing.repeated += 1
            continue
        digests.add(digest)
        yield paragraph
    if growing.repeated and not digests:
        raise DataError(
            f"--{name}: expected another text than of the other splits, found that they have all its "
            f"{growing.repeated:,} paragraphs; give each text to one split"
        )
    others |= digests


class _Growing:
    """A split as it is made."""

    def __init__(self, words: OpenWords) -> None:
        self.words = words
        self.tokens, self.ends = array("i"), array("q")
        self.examples = {name: array("i") for name in OBJECTIVES}
        self.paragraphs = self.repeated = 0

    def add(self, paragraph: Paragraph, examples: Iterator[Example]) -> None:
        """A sentence of a paragraph is kept once; what is left of one without its conjunction is another one."""
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

    def counts(self) -> Counts:
        split = self.split()
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
