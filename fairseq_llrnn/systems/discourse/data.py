"""The data folder that `llrnn discourse` writes.

    dict.txt         the words, most frequent first, as fairseq-preprocess writes them: `llrnn prior --dict` reads it
    strings.txt      the other strings of the texts, one a line; their ids go on behind those of dict.txt
    SPLIT.npz        sentences as ids, and examples as numbers of sentences
    discourse.json   the names of the relations, how many examples there are, and how they were made

Sizes: V symbols of the dictionary with its four special ones, U other strings, T words, n sentences, N examples. The
arrays are `tokens` (T,) and `ends` (n,): the words of sentence i are tokens[ends[i − 1] : ends[i]]; `order` and
`conjunction` (N, 3): two sentences and the answer; `next` (N, 9): three sentences, five candidates, the answer. The
folder is untrusted input: nothing in it is executed, and what does not fit together is refused.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, UNK, OpenWords, load_dictionary
from fairseq_llrnn.files.array_file import map_file, read_arrays, write_arrays
from fairseq_llrnn.files.reading import refuse_special
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.systems.discourse import OBJECTIVES
from fairseq_llrnn.systems.discourse.conjunctions import CANDIDATES, CONTEXT, RELATIONS

DICTIONARY, STRINGS, DESCRIPTION = "dict.txt", "strings.txt", "discourse.json"
SENTENCES = {"order": 2, "next": CONTEXT + CANDIDATES, "conjunction": 2}  # of an example
ANSWERS = {"order": 2, "next": CANDIDATES, "conjunction": len(RELATIONS)}
UNKNOWN = SPECIALS.index(UNK)  # the first id that a word may have; those before it are no words
AGAIN = "make the folder again with `llrnn discourse`"


@dataclass(frozen=True)
class Split:
    """The sentences and examples of one split."""

    tokens: np.ndarray  # (T,) int32
    ends: np.ndarray  # (n,) int64
    examples: Mapping[str, np.ndarray]  # by objective: (N, sentences + 1) int32

    def sentence(self, number: int) -> np.ndarray:
        """The ids of its words."""
        return self.tokens[self.ends[number - 1] if number else 0 : self.ends[number]]

    def lengths(self) -> np.ndarray:
        """(n,)"""
        return np.diff(self.ends, prepend=0)

    def save(self, path: Path) -> None:
        """Raises OSError."""
        with path.open("wb") as file:
            write_arrays(file, {"tokens": self.tokens, "ends": self.ends, **self.examples})

    @classmethod
    def load(cls, path: Path, num_ids: int) -> Split:
        """num_ids: V + U. Raises DataError: no such file, damaged, or numbers that are out of range."""
        try:
            refuse_special(path, may_be_pipe=False)
            arrays = read_arrays(path, map_file(path))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}; {AGAIN}", path) from None
        except (ValueError, TypeError, zipfile.BadZipFile, EOFError) as error:
            raise DataError(
                f"{path}: expected the arrays of a split, found a damaged file ({error}); {AGAIN}"
            ) from None
        problem = _problem(arrays, num_ids)
        if problem:
            raise DataError(f"{path}: expected {problem}, found something else; {AGAIN}")
        return cls(arrays["tokens"], arrays["ends"], {name: arrays[name] for name in OBJECTIVES})


def _problem(arrays: Mapping[str, np.ndarray], num_ids: int) -> str | None:
    """What the arrays of a split should be and are not."""
    shapes = {"tokens": 1, "ends": 1, **dict.fromkeys(OBJECTIVES, 2)}
    for name, dimensions in shapes.items():
        kind = np.int64 if name == "ends" else np.int32
        if name not in arrays or arrays[name].ndim != dimensions or arrays[name].dtype != kind:
            return f"an array {name!r} of {dimensions} dimensions and whole numbers"
    tokens, ends = arrays["tokens"], arrays["ends"]
    if not _within(tokens, num_ids, UNKNOWN):
        return f"ids of words from {UNKNOWN} to {num_ids - 1:,}"
    if (np.diff(ends, prepend=0) <= 0).any() or len(tokens) != (ends[-1] if len(ends) else 0):
        return "sentences of one word or more, one behind the other"
    for name in OBJECTIVES:
        examples = arrays[name]
        if examples.shape[1] != SENTENCES[name] + 1 or not _within(examples[:, :-1], len(ends)):
            return f"numbers of sentences for {name!r} from 0 to {len(ends) - 1:,}"
        if not _within(examples[:, -1], ANSWERS[name]):
            return f"answers for {name!r} from 0 to {ANSWERS[name] - 1}"
    return None


def _within(numbers: np.ndarray, end: int, begin: int = 0) -> bool:
    return numbers.size == 0 or (int(numbers.min()) >= begin and int(numbers.max()) < end)


def word_id(words: OpenWords, word: str, open_ids: bool = True) -> int:
    """The id of a word; those of <s>, <pad> and </s> are no word's.

    Args:
        open_ids: whether a word that the dictionary lacks gets an id of its own.
    """
    index = words.word_index.get(word)
    if index is None:
        return words.open(word) if open_ids else UNKNOWN
    return max(index, UNKNOWN)


def load_strings(folder: Path) -> list[str]:
    """The strings beyond the dictionary, U of them. Raises DataError."""
    return [line for _, line in iter_lines(folder / STRINGS)]


def read_description(folder: Path) -> dict[str, Any]:
    """discourse.json. Raises DataError: there is none, or it is not what this version writes."""
    path = folder / DESCRIPTION
    try:
        refuse_special(path, may_be_pipe=False)
        description = json.loads(path.read_text(encoding="utf-8"))
        if tuple(description["relations"]) != RELATIONS or not isinstance(description["lower"], bool):
            raise ValueError
    except OSError:
        raise DataError(
            f"{folder}: expected the data folder that `llrnn discourse` made, found no {DESCRIPTION} in it; check its "
            "name, or make it"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        expected = "what this version of `llrnn discourse` wrote"
        raise DataError(f"{path}: expected {expected}, found something else; {AGAIN}") from None
    return dict(description)


def load_split(folder: Path, split: str) -> Split:
    """Raises DataError: as `Split.load`, or a damaged dictionary."""
    words = len(load_dictionary(folder / DICTIONARY)) + len(load_strings(folder))
    return Split.load(folder / f"{split}.npz", words)
