"""Strings as input and output of a network of characters, with the character n-grams at every position.

Sizes: m strings, P positions of all of them together (a string of n characters has n + 1, including its end), A symbols
(open_vocabulary/alphabet.py). Symbol BEGIN, which is never written, stands for all unknown characters in the output. In
the input they are symbol A.

At each position there is b(c | prefix), the n-grams of all classes together (open_vocabulary/characters.py), mixed with
the lexicon if there is one (lexicon_background.py), with no end

* after the empty prefix, because no string is empty;
* after a word of the dictionary, because an open class has no such string.

An alias (a word of the dictionary treated as unknown) may end, and its n-grams exclude it (open_vocabulary/classes.py).
n-grams depend on the last symbols only, so there are no more distinct rows than grams. Rows are cached, and dropped
when they exceed KEPT_CELLS numbers or KEPT_STRINGS strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.alignment.translation_table import is_word
from fairseq_llrnn.features.dictionary import OpenWords
from fairseq_llrnn.open_vocabulary.alphabet import BEGIN, END, OTHER
from fairseq_llrnn.open_vocabulary.characters import CELLS, CharacterNGrams
from fairseq_llrnn.open_vocabulary.classes import FOLDS, fold_of
from fairseq_llrnn.open_vocabulary.lexicon_background import Blend, LexiconBackground
from fairseq_llrnn.open_vocabulary.vocabulary import OpenVocabulary

KEPT_CELLS = 1 << 26  # 256 MiB
KEPT_STRINGS = 1 << 17  # 180 MiB
WHOLE = FOLDS  # the fold number of n-grams of all rare words


@dataclass(frozen=True)
class Spelled:
    """Some strings, concatenated (module docstring)."""

    lengths: Tensor  # (m,) int64, positions of each; Σ = P
    read: Tensor  # (P,) int64, the symbol before each position: BEGIN first, A for an unknown character
    write: Tensor  # (P,) int64, the symbol at each position: END last, BEGIN for an unknown character
    log_base: Tensor  # (P, A) float32, log b; −inf for a forbidden end
    log_unknown: Tensor  # (m,) float32, log probability of the unknown characters given that they are unknown

    def of(self, strings: slice) -> Spelled:
        """Return some adjacent strings."""
        ends = starts_of(self.lengths)
        first, last = int(ends[strings.start]), int(ends[strings.stop])
        rows = slice(first, last)
        lengths, unknown = self.lengths[strings], self.log_unknown[strings]
        return Spelled(lengths, self.read[rows], self.write[rows], self.log_base[rows], unknown)


def starts_of(lengths: Tensor) -> Tensor:
    """Return the first position of each string, and the end of the last one: (m + 1,)."""
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


@dataclass(frozen=True)
class _String:
    read: np.ndarray  # (n + 1,)
    write: np.ndarray  # (n + 1,)
    rows: np.ndarray  # (n + 1,) int64, indices of its log b among all rows
    no_end: np.ndarray  # (n + 1,) bool
    unknown: int  # unknown characters
    blend: Blend | None  # with a lexicon


class SpelledStrings:
    """A cache of strings and of n-gram rows."""

    def __init__(self, vocabulary: OpenVocabulary, words: OpenWords) -> None:
        if vocabulary.class_words is None:
            raise ValueError("the open vocabulary is not spelled by a network")
        self.vocabulary, self.words, self.rare = vocabulary, words, vocabulary.class_words
        self.alphabet = vocabulary.strings.characters.alphabet
        lexicon = LexiconBackground(vocabulary)
        self.lexicon = lexicon if lexicon.parts else None
        symbols = list(words.word_index)
        self.vocabulary_words = frozenset(s for s, is_one in zip(symbols, is_word(symbols), strict=True) if is_one)
        self._longest_word = max(map(len, self.vocabulary_words), default=0)
        self._rows = np.zeros((0, self.alphabet.size), dtype=np.float32)
        self._places: dict[int, int] = {}  # key of a context -> its row
        self._strings: dict[int, _String] = {}  # by id

    def __deepcopy__(self, memo: object) -> SpelledStrings:
        return self  # a copy of a model belongs to the same dictionary

    def of(self, ids: np.ndarray) -> Spelled:
        """Return the strings with some ids beyond the dictionary, (m,). Words of the dictionary among them are aliases.
        """
        self._make_room()
        new = [i for i in dict.fromkeys(ids.tolist()) if i not in self._strings]
        strings = [self.words.symbols[i] for i in new]
        self._strings.update(zip(new, self._spell(strings, [s in self.vocabulary_words for s in strings]), strict=True))
        return self._concatenate([self._strings[i] for i in ids.tolist()])

    def of_strings(self, strings: Sequence[str]) -> Spelled:
        """Return strings outside the dictionary, without giving them ids."""
        self._make_room()
        return self._concatenate(self._spell(strings, [False] * len(strings)))

    def model(self, fold: int) -> CharacterNGrams:
        """Return the n-grams without a fold of the rare words, or with all of them (WHOLE)."""
        strings = self.vocabulary.strings
        return (strings if fold == WHOLE else self.rare.without(strings, fold)).characters

    def log_base(self, tails: np.ndarray) -> np.ndarray:
        """Return log b in some contexts (m, n), with ends allowed: (m, A) float32."""
        rows = self._rows_of(tails, WHOLE)  # may replace self._rows
        return self._rows[rows]

    # ---- one string, one context ------------------------------------------------------------------------------------

    def _spell(self, strings: Sequence[str], alias: Sequence[bool]) -> list[_String]:
        if not strings:
            return []
        rows = self.alphabet.rows(strings)
        ends = np.cumsum(np.array([len(string) for string in strings]) + 2)
        symbols = np.split(rows.symbols, ends[:-1])
        places = [np.zeros(len(string) + 1, dtype=np.int64) for string in strings]
        folds = np.array([fold_of(s) if is_alias else WHOLE for s, is_alias in zip(strings, alias, strict=True)])
        for fold in np.unique(folds).tolist():
            unfinished, model = np.flatnonzero(folds == fold), self.model(fold)
            tails = model.beginnings(len(unfinished))
            depth = 0
            while len(unfinished):
                numbers = self._rows_of(tails, fold)
                for i, place in zip(unfinished.tolist(), numbers.tolist(), strict=True):
                    places[i][depth] = place
                depth += 1
                longer = np.array([len(strings[i]) >= depth for i in unfinished.tolist()])
                unfinished, tails = unfinished[longer], tails[longer]
                tails = model.tails_after(
                    tails, np.array([symbols[i][depth] for i in unfinished.tolist()], dtype=np.int64)
                )
        spelled_strings = []
        for string, of_string, place, is_alias in zip(strings, symbols, places, alias, strict=True):
            no_end = np.zeros(len(string) + 1, dtype=bool)
            no_end[: self._longest_word + 1] = [
                n == 0 or string[:n] in self.vocabulary_words for n in range(min(len(string), self._longest_word) + 1)
            ]
            no_end[-1] &= not is_alias
            unknown = of_string == OTHER
            read, write = np.where(unknown, self.alphabet.size, of_string), np.where(unknown, BEGIN, of_string)
            blend = None
            if self.lexicon is not None:
                steps = self._rows[place[:-1], write[1:-1]].astype(np.float64)
                log_ngrams = np.concatenate([[0.0], np.cumsum(steps)])
                blend = self.lexicon.blend([string[:n] for n in range(len(string) + 1)], log_ngrams)
            spelled_strings.append(_String(read[:-1], write[1:], place, no_end, int(unknown.sum()), blend))
        return spelled_strings

    def _rows_of(self, tails: np.ndarray, fold: int) -> np.ndarray:
        """Return the row indices of contexts (m, n), which are identified by their longest gram and its length."""
        depth = tails.shape[1] - 1 - (tails[:, ::-1] >= 0).argmax(1)
        gram = tails[np.arange(len(tails)), depth]
        keys = ((gram * tails.shape[1] + depth) * (FOLDS + 1) + fold).tolist()
        first = {key: i for i, key in enumerate(keys) if key not in self._places}
        if first:
            missing = tails[list(first.values())]
            at_once = max(1, CELLS // self.alphabet.size)
            model = self.model(fold)
            with np.errstate(divide="ignore"):
                parts = [
                    np.log(model.next_symbols(missing[start : start + at_once])).astype(np.float32)
                    for start in range(0, len(missing), at_once)
                ]
            have = len(self._places)
            self._places.update((key, have + i) for i, key in enumerate(first))
            self._reserve(len(self._places))
            self._rows[have : len(self._places)] = np.concatenate(parts)
        return np.array([self._places[key] for key in keys], dtype=np.int64)

    def _make_room(self) -> None:
        """Clear caches that are too large. Earlier results do not change."""
        if self._rows.size > KEPT_CELLS:
            self._rows = self._rows[:0].copy()
            self._places.clear()
            self._strings.clear()
        if len(self._strings) > KEPT_STRINGS:  # perhaps with few contexts
            self._strings.clear()

    def _reserve(self, num_rows: int) -> None:
        if num_rows > len(self._rows):
            grown = np.empty((max(num_rows, 2 * len(self._rows)), self.alphabet.size), dtype=np.float32)
            grown[: len(self._rows)] = self._rows
            self._rows = grown

    def _concatenate(self, strings: Sequence[_String]) -> Spelled:
        def joined(name: str) -> np.ndarray:
            return np.concatenate([getattr(string, name) for string in strings])

        log_base = self._rows[joined("rows")]
        starts = np.cumsum([0, *(len(string.read) for string in strings)])
        for string, start in zip(strings, starts.tolist(), strict=False):
            if string.blend is not None:
                string.blend.apply(log_base[start : start + len(string.read)])
        log_base[joined("no_end"), END] = -np.inf
        unknown = np.array([string.unknown for string in strings], dtype=np.float32)
        return Spelled(
            torch.tensor([len(string.read) for string in strings]),
            torch.from_numpy(joined("read")),
            torch.from_numpy(joined("write")),
            torch.from_numpy(log_base),
            torch.from_numpy(-unknown * np.float32(np.log(max(1, self.alphabet.num_unknown)))),
        )
