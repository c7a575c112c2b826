"""Examples of the three objectives from paragraphs, and the data folder that `llrnn discourse` writes.

Sizes: V symbols of the dictionary including four special ones, U other strings, T words, n sentences, N examples.

`Conjunctions` are phrases at the beginning of a sentence that mark its relation to the previous one (Jernite 2018,
Table 5.4). A phrase counts if a comma follows it. An opening quotation mark or dash may precede it. The French list has
phrases for the same relations, with words in Moses' tokenisation (`d' ailleurs`).

The objectives are those of Jernite 2018, section 5.3:

    ORDER         two adjacent sentences, swapped in half of the examples
    NEXT          three sentences, and five candidates for the fourth: itself and four later ones of the paragraph
    CONJUNCTION   two adjacent sentences of which the second began with a conjunction, and its relation

A paragraph of 8 sentences or more gives a NEXT example from its beginning, and others from each `every`-th sentence on
while 8 are left. With 8 no examples share a sentence, and 1 gives the most. (The thesis uses only the beginning, of a
thousand times as many paragraphs.) All paragraphs give pairs, while the thesis uses only those of long ones.

The folder has these files:

    dict.txt         the words, most frequent first, in the format of fairseq-preprocess, for `llrnn prior --dict`
    strings.txt      the other strings of the texts, one a line, whose ids follow those of dict.txt
    SPLIT.npz        sentences as ids, and examples as sentence numbers
    discourse.json   the names of the relations, the numbers of examples, and the settings

A `Split` has the arrays `tokens` (T,) and `ends` (n,): the words of sentence i are tokens[ends[i − 1] : ends[i]].
`order` and `conjunction` (N, 3) are two sentences and the answer. `next` (N, 9) is three sentences, five candidates,
and the answer. The folder is untrusted input: nothing in it is executed, and inconsistent contents raise an error.
"""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, UNK, OpenWords, load_dictionary
from fairseq_llrnn.files.array_file import map_file, read_arrays, write_arrays
from fairseq_llrnn.files.reading import check_regular_file
from fairseq_llrnn.files.text_lines import iter_lines
from llrnn_research.discourse import OBJECTIVES

COMMA = ","
OPENING = frozenset(['"', "“", "«", "„", "'", "‘", "—", "–", "-", "--", "``", "''"])

ENGLISH = {
    "addition": "again; also; besides; finally; further; furthermore; moreover; in addition",
    "contrast": "anyway; however; instead; nevertheless; otherwise; contrarily; conversely; nonetheless; in contrast; "
    "rather",
    "time": "meanwhile; next; then; now; thereafter",
    "result": "accordingly; consequently; hence; thus; therefore",
    "specific": "namely; specifically; notably; that is; for example",
    "compare": "likewise; similarly",
    "strengthen": "indeed; in fact",
    "return": "still",
    "recognize": "undoubtedly; certainly",
}
FRENCH = {
    "addition": "de plus; en outre; par ailleurs; d' ailleurs; enfin; également; de surcroît; du reste; au reste; "
    "au surplus; encore",
    "contrast": "cependant; pourtant; toutefois; néanmoins; au contraire; en revanche; par contre; sinon; autrement; "
    "plutôt; inversement; malgré tout",
    "time": "pendant ce temps; en attendant; ensuite; puis; alors; maintenant; désormais; dès lors",
    "result": "ainsi; donc; aussi; par conséquent; en conséquence; c' est pourquoi",
    "specific": "c' est-à-dire; à savoir; notamment; en particulier; par exemple",
    "compare": "de même; pareillement; semblablement",
    "strengthen": "en effet; en fait; de fait; en réalité; à vrai dire; effectivement",
    "return": "tout de même; quand même",
    "recognize": "sans doute; certes; certainement; assurément; évidemment",
}
LANGUAGES = {"en": ENGLISH, "fr": FRENCH}
RELATIONS = tuple(ENGLISH)  # the classes of CONJUNCTION, the same in all languages


class Conjunctions:
    """The conjunctions of a language."""

    def __init__(self, phrases: Mapping[str, str]) -> None:
        """phrases: the phrases of each relation, separated by semicolons."""
        self._relation = {
            tuple(phrase.split()): RELATIONS.index(relation)
            for relation, listed in phrases.items()
            for phrase in listed.split(";")
        }
        self._longest = max(map(len, self._relation))

    def split(self, words: Sequence[str]) -> tuple[int | None, list[str]]:
        """Return the relation of a sentence's first phrase, and the sentence without the phrase and its comma.

        Return None and the unchanged sentence if it begins otherwise.
        """
        begin = 1 if words and words[0] in OPENING else 0
        lowered = [word.lower() for word in words[begin : begin + self._longest + 1]]
        for length in range(1, len(lowered)):
            relation = self._relation.get(tuple(lowered[:length]))
            if relation is not None and lowered[length] == COMMA:
                return relation, [*words[:begin], *words[begin + length + 1 :]]
        return None, list(words)


CONTEXT, CANDIDATES = 3, 5
LENGTH = CONTEXT + CANDIDATES
FLIPPED = 1  # label of ORDER; 0: in text order


@dataclass(frozen=True)
class Example:
    """Sentences and the answer: FLIPPED or 0, the index of the true candidate, or the number of the relation."""

    objective: str
    sentences: tuple[Sequence[str], ...]
    answer: int


def order_examples(paragraph: Sequence[Sequence[str]], rng: random.Random) -> Iterator[Example]:
    """Yield ORDER examples. Two equal sentences have no order."""
    for first, second in zip(paragraph, paragraph[1:], strict=False):
        if first == second:
            continue
        flipped = rng.random() < 0.5
        yield Example("order", (second, first) if flipped else (first, second), FLIPPED if flipped else 0)


def next_examples(paragraph: Sequence[Sequence[str]], every: int, rng: random.Random) -> Iterator[Example]:
    """Yield NEXT examples. every: distance between their first sentences."""
    for begin in range(0, len(paragraph) - LENGTH + 1, every):
        truth = begin + CONTEXT
        candidates = [truth, *rng.sample(range(truth + 1, len(paragraph)), CANDIDATES - 1)]
        rng.shuffle(candidates)
        sentences = tuple(paragraph[i] for i in [*range(begin, truth), *candidates])
        yield Example("next", sentences, candidates.index(truth))


def conjunction_examples(paragraph: Sequence[Sequence[str]], conjunctions: Conjunctions) -> Iterator[Example]:
    """Yield CONJUNCTION examples.

    A conjunction of the first sentence is removed, too. Pairs with an empty sentence are skipped.
    """
    parted = [conjunctions.split(sentence) for sentence in paragraph]
    for (_, first), (relation, second) in zip(parted, parted[1:], strict=False):
        if relation is not None and first and second:
            yield Example("conjunction", (first, second), relation)


def all_examples(
    paragraph: Sequence[Sequence[str]], conjunctions: Conjunctions, next_every: int, rng: random.Random
) -> Iterator[Example]:
    """Yield the examples of all objectives, determined by the paragraphs and the random numbers."""
    yield from order_examples(paragraph, rng)
    yield from next_examples(paragraph, next_every, rng)
    yield from conjunction_examples(paragraph, conjunctions)


DICTIONARY, STRINGS, DESCRIPTION = "dict.txt", "strings.txt", "discourse.json"
SENTENCES = {"order": 2, "next": CONTEXT + CANDIDATES, "conjunction": 2}  # of an example
ANSWERS = {"order": 2, "next": CANDIDATES, "conjunction": len(RELATIONS)}
UNKNOWN = SPECIALS.index(UNK)  # the first id of a word
AGAIN = "make the folder again with `llrnn discourse`"


@dataclass(frozen=True)
class Split:
    """The sentences and examples of one split."""

    tokens: np.ndarray  # (T,) int32
    ends: np.ndarray  # (n,) int64
    examples: Mapping[str, np.ndarray]  # by objective: (N, sentences + 1) int32

    def sentence(self, number: int) -> np.ndarray:
        """Return the word ids of a sentence."""
        return self.tokens[self.ends[number - 1] if number else 0 : self.ends[number]]

    def lengths(self) -> np.ndarray:
        """Return the lengths of sentences, (n,)."""
        return np.diff(self.ends, prepend=0)

    def save(self, path: Path) -> None:
        """Write the split. Raises OSError."""
        with path.open("wb") as file:
            write_arrays(file, {"tokens": self.tokens, "ends": self.ends, **self.examples})

    @classmethod
    def load(cls, path: Path, num_ids: int) -> Split:
        """Read a split. num_ids: V + U. Raises DataError if it is missing, damaged or has numbers out of range."""
        try:
            check_regular_file(path, may_be_pipe=False)
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
    """Return the requirement that the arrays of a split violate, if any."""
    shapes = {"tokens": 1, "ends": 1, **dict.fromkeys(OBJECTIVES, 2)}
    for name, dimensions in shapes.items():
        kind = np.int64 if name == "ends" else np.int32
        if name not in arrays or arrays[name].ndim != dimensions or arrays[name].dtype != kind:
            return f"an array {name!r} of {dimensions} dimensions and integers"
    tokens, ends = arrays["tokens"], arrays["ends"]
    if not _within(tokens, num_ids, UNKNOWN):
        return f"ids of words from {UNKNOWN} to {num_ids - 1:,}"
    if (np.diff(ends, prepend=0) <= 0).any() or len(tokens) != (ends[-1] if len(ends) else 0):
        return "contiguous sentences of one word or more"
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
    """Return the id of a word. The ids of <s>, <pad> and </s> are replaced by <unk>'s.

    Args:
        open_ids: whether a word that the dictionary lacks gets a new id.
    """
    index = words.word_index.get(word)
    if index is None:
        return words.open(word) if open_ids else UNKNOWN
    return max(index, UNKNOWN)


def load_strings(folder: Path) -> list[str]:
    """Return the strings beyond the dictionary, U of them. Raises DataError."""
    return [line for _, line in iter_lines(folder / STRINGS)]


def read_description(folder: Path) -> dict[str, Any]:
    """Return the contents of discourse.json. Raises DataError if it is missing or not of this version."""
    path = folder / DESCRIPTION
    try:
        check_regular_file(path, may_be_pipe=False)
        description = json.loads(path.read_text(encoding="utf-8"))
        if tuple(description["relations"]) != RELATIONS or not isinstance(description["lower"], bool):
            raise ValueError
    except OSError:
        raise DataError(
            f"{folder}: expected a data folder of `llrnn discourse`, found no {DESCRIPTION} in it; check its name, or "
            "make it"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        expected = "a description by this version of `llrnn discourse`"
        raise DataError(f"{path}: expected {expected}, found something else; {AGAIN}") from None
    return dict(description)


def load_split(folder: Path, split: str) -> Split:
    """Return a split of the folder. Raises DataError as `Split.load`, and for a damaged dictionary."""
    words = len(load_dictionary(folder / DICTIONARY)) + len(load_strings(folder))
    return Split.load(folder / f"{split}.npz", words)
