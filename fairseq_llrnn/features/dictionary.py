"""fairseq dictionaries read without fairseq, ids of strings outside of them, and the words of large texts as ids.

Sizes: V symbols, T words, n lines.

A file of a dictionary has one `symbol count` per line. fairseq puts <s>, <pad>, </s>, <unk> before them. `WordList`
defines the predictable symbols. Entries `madeupwordNNNN 0` only pad the size to a multiple of eight and never occur in
a text. </s> and <unk> are never labels of a text.

`OpenWords` are ids of words: those of a dictionary, then ids of other strings, in order of first use. Ids of source
tokens may carry marks in their upper half (evidence/evidence_table.py). `plain` removes them.

Words of large texts are counted, or read as ids, block by block in several processes (files/text_blocks.py). Workers
have no dictionary, which would take memory in each of them. They return the different words of a block, with their
counts, or with the index of each word among them.
"""

from __future__ import annotations

import hashlib
import logging
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.text_check import TextCheck
from fairseq_llrnn.files.numbers import LARGEST_COUNT, read_count
from fairseq_llrnn.files.reading import check_dictionary_file
from fairseq_llrnn.files.text_blocks import Block, map_blocks
from fairseq_llrnn.files.text_lines import is_blank, iter_all, opened, place, shown, warn_of_blanks
from fairseq_llrnn.lexicon.held_out import HeldOut

if TYPE_CHECKING:
    from torch import Tensor


logger = logging.getLogger(__name__)
BOS, PAD, EOS, UNK = "<s>", "<pad>", "</s>", "<unk>"
SPECIALS = (BOS, PAD, EOS, UNK)
_FLAG = "#fairseq:overwrite"
WITH_BLANK = (
    "contain a blank, at which texts are split: they never occur, but take probability",
    "replace the blank by another character, also in the text, or remove them",
)
WORDS_PER_SENTENCE = 25
PADDING_ENTRY = re.compile(r"madeupword\d{4,}")
SHIFT = 32  # bits of an id below its mark
ID_MASK = (1 << SHIFT) - 1

Ids = TypeVar("Ids", "Tensor", np.ndarray, int)


def plain(ids: Ids) -> Ids:
    """Return ids of tokens without marks."""
    return ids & ID_MASK


@dataclass(frozen=True)
class WordList:
    """The symbols of a dictionary in fairseq's order with their counts."""

    symbols: tuple[str, ...]  # V
    counts: np.ndarray  # (V,) int64
    are_labels: bool = False  # of texts: </s> and <unk> are never predicted

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def specials(self) -> np.ndarray:
        """(V,) bool: <s>, <pad>, </s>, <unk> and the entries that only pad the dictionary's size."""
        padding = [bool(c == 0 and PADDING_ENTRY.fullmatch(s)) for s, c in zip(self.symbols, self.counts, strict=True)]
        special = np.array(padding, dtype=bool)
        special[: len(SPECIALS)] = True
        return special

    @property
    def ordinary(self) -> list[str]:
        """The words: all but the special symbols."""
        return [symbol for symbol, special in zip(self.symbols, self.specials, strict=True) if not special]

    @property
    def predictable(self) -> np.ndarray:
        """(V,) bool: the possible next tokens, all but <s>, <pad> and padding entries (module docstring)."""
        allowed = ~self.specials
        if self.are_labels:
            return allowed
        allowed[[self.symbols.index(EOS), self.symbols.index(UNK)]] = True
        return allowed

    def counts_with_ends(self) -> np.ndarray:
        """Return the dictionary's counts (V,) with an estimate for </s>, which fairseq does not write: one in 25 words.

        The count of <unk> is at least one: the text of a dictionary may contain none, yet it is possible.
        """
        counts = self.counts.copy()
        counts[self.symbols.index(UNK)] = max(1, counts[self.symbols.index(UNK)])
        counts[self.symbols.index(EOS)] = max(1, int(counts.sum()) // WORDS_PER_SENTENCE)
        return counts

    def count_text(
        self, paths: Sequence[Path | str], workers: int | None = None, check: TextCheck | None = None,
        held_out: HeldOut | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Count the symbols in tokenised texts: (V,).

        Args:
            workers: processes (None: one for each core).
            check, held_out: they collect statistics of the texts.

        Raises:
            DataError: a file that cannot be read or is not UTF-8.
        """
        check = check or TextCheck(self.ordinary)
        counts = self.counts_of(count_blocks(paths, workers, held_out), check)
        check.warn(paths)
        return counts

    def counts_of(self, parts: Iterable[tuple[Mapping[str, int], int]], check: TextCheck | None = None) -> np.ndarray:
        """Count the symbols in parts of a text: (V,). </s> counts once per line, words outside the dictionary as <unk>.

        The count of <unk> is at least one, as in `counts_with_ends`. A text without any word of the dictionary gets
        zeros: it is of another language or the wrong file.

        Args:
            parts: for each, the counts of its words and its number of lines.
            check: collects statistics of the words.
        """
        index = {s: i for i, s in enumerate(self.symbols)}
        unk, eos = index[UNK], index[EOS]
        counts = np.zeros(len(self), dtype=np.int64)
        for words, lines in parts:
            ids = np.array([index.get(word, unk) for word in words], dtype=np.int64)
            np.add.at(counts, ids, np.fromiter(words.values(), dtype=np.int64, count=len(words)))
            counts[eos] += lines
            if check is not None:
                check.add(words.items())
        counts[unk] = max(1, counts[unk])
        has_words = counts.sum() - counts[unk] - counts[eos] > 0
        return counts if has_words else np.zeros_like(counts)


def hash_symbols(symbols: Sequence[str]) -> str:
    """Return the SHA-256 of the symbols in order, which identifies a dictionary."""
    return hashlib.sha256("\n".join(symbols).encode()).hexdigest()


def check_order(symbols: Sequence[str]) -> None:
    """Raise ValueError unless the symbols are <s>, <pad>, </s>, <unk>, and then words, each once."""
    start = tuple(symbols[: len(SPECIALS)])
    if start != SPECIALS:
        raise ValueError(f"expected it to begin with {' '.join(SPECIALS)}, found {' '.join(map(repr, start))}")
    if len(symbols) == len(SPECIALS) or "" in symbols:
        raise ValueError(f"expected words after {UNK}, found {'an empty one' if '' in symbols else 'none'}")
    if len(set(symbols)) < len(symbols):
        repeated = next(symbol for symbol, count in Counter(symbols).items() if count > 1)
        raise ValueError(f"expected every symbol once, found {repeated!r} again")


def load_dictionary(path: Path | str) -> WordList:
    """Read a `dict.txt` of fairseq-preprocess.

    A warning names invisible symbols, such as a character without width, and symbols with a blank (also U+00A0), which
    fairseq's tokenizer splits, so that no text contains them.

    Raises:
        DataError: a missing or empty file, a line that is not `symbol count`, a symbol of blanks, or a symbol given
            twice, also with #fairseq:overwrite, since fairseq fails on the dict.txt that fairseq-preprocess then
            writes.
    """
    path = Path(path)
    check_dictionary_file(path, str(path))
    symbols, counts = list(SPECIALS), [0] * len(SPECIALS)
    line_of: dict[str, int] = dict.fromkeys(SPECIALS, 0)
    blank: list[int] = []
    split: list[int] = []
    with opened(path) as (source, _):
        if source.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
            raise DataError(
                f"{place(path, 1)}: expected `symbol count`, found a byte order mark, which fairseq reads as a "
                "letter of the first symbol; remove it from the file, or from the text that it was made from"
            )
    for number, line in iter_all(path):
        text = line.rstrip().removesuffix(f" {_FLAG}")
        symbol, space, count = text.rpartition(" ")
        if not symbol.strip() or "\r" in symbol or (counted := read_count(count)) is None:
            limit = f" up to {LARGEST_COUNT:,}" if count.isdecimal() and read_count(count) is None else ""
            raise DataError(
                f"{place(path, number)}: expected `symbol count`{limit}, found {shown(text)}; "
                "give the dict.txt that fairseq-preprocess wrote"
            )
        if symbol in line_of:
            hint = f", which {_FLAG} only hides from fairseq-preprocess" if line.rstrip().endswith(_FLAG) else ""
            raise DataError(
                f"{place(path, number)}: symbol {symbol!r} was already given "
                f"{'by fairseq itself' if line_of[symbol] == 0 else f'in line {line_of[symbol]}'}{hint}; remove one "
                "of them"
            )
        if is_blank(symbol):
            blank.append(number)
        elif symbol.split() != [symbol]:
            split.append(number)
        line_of[symbol] = number
        symbols.append(symbol)
        counts.append(counted)
    if len(symbols) == len(SPECIALS):
        raise DataError(f"{path}: expected at least one `symbol count` line, found none; run fairseq-preprocess first")
    warn_of_blanks(path, "symbols", blank)
    warn_of_blanks(path, "symbols", split, *WITH_BLANK)
    return WordList(tuple(symbols), np.array(counts, dtype=np.int64))


class OpenWords:
    """The words of a dictionary, and strings that got an id later."""

    def __init__(self, symbols: Sequence[str]) -> None:
        self.num_words = len(symbols)
        self.symbols = list(symbols)
        self.word_index = {symbol: i for i, symbol in enumerate(symbols)}
        self.open_index: dict[str, int] = {}

    def index(self, word: str) -> int:
        """Return the id of a word. A new word gets one."""
        index = self.word_index.get(word)
        return self.open(word) if index is None else index

    def open(self, word: str) -> int:
        """Return the id of a string beyond the dictionary, whether or not the dictionary also contains it."""
        index = self.open_index.get(word)
        if index is None:
            index = self.open_index[word] = len(self.symbols)
            self.symbols.append(word)
        return index


def counts_of_block(wanted: frozenset[str], block: Block) -> tuple[dict[str, int], int, set[str]]:
    """Return the counts of words, the number of lines, and the `wanted` lines of a block."""
    text = block.text()
    found = set(wanted.intersection(" ".join(line.split()) for line in text.splitlines()) if wanted else ())
    return dict(Counter(text.split())), block.num_lines, found


def ids_of_block(block: Block) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the different words, the index of each word among them (T,) int32, and the words per line (n,) int32."""
    places: dict[str, int] = {}
    lines = [line.split() for _, line in block.lines()]
    ids = [places.setdefault(word, len(places)) for line in lines for word in line]
    return list(places), np.array(ids, dtype=np.int32), np.array([len(line) for line in lines], dtype=np.int32)


def count_blocks(
    paths: Sequence[Path | str], workers: int | None, held_out: HeldOut | None = None
) -> Iterator[tuple[dict[str, int], int]]:
    """Yield the counts of words, and the number of lines, for each block of some files.

    Args:
        held_out: collects the sentences.

    Raises:
        DataError: as `map_blocks`.
    """
    _warn_of_marks(paths)
    held_out = held_out or HeldOut()
    found = held_out.found[f"--count-text {' '.join(map(str, paths))}"]
    for words, lines, sentences in map_blocks(
        partial(counts_of_block, held_out.sentences), paths, "counting words", workers
    ):
        found |= sentences
        yield words, lines


def count_words(
    paths: Sequence[Path | str], workers: int | None = None, held_out: HeldOut | None = None
) -> tuple[Counter[str], int]:
    """Return the counts of words in some texts, and the number of lines. Arguments and errors as in `count_blocks`."""
    counts: Counter[str] = Counter()
    lines = 0
    for block_counts, num_lines in count_blocks(paths, workers, held_out):
        counts.update(block_counts)
        lines += num_lines
    return counts, lines


def _warn_of_marks(paths: Sequence[Path | str]) -> None:
    """Warn of texts that begin with a byte order mark, which is no part of a word here, but in fairseq-preprocess."""
    for path in paths:
        with opened(path) as (source, _):
            if source.read(len(BOM_UTF8)) == BOM_UTF8:
                logger.warning(
                    f"{path}: it begins with a byte order mark, which fairseq-preprocess reads as part of the first "
                    f"word; remove the mark (`sed -i '1s/^\\xEF\\xBB\\xBF//' {path}`) before you preprocess the text"
                )


def read_ids(
    paths: Sequence[Path | str], symbols: Sequence[str], unknown: int, workers: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read texts as ids of V symbols: (T,) int32, and the numbers of words per line, (n,) int64.

    Args:
        unknown: the id of other words.

    Raises:
        DataError: a file that cannot be read or is not UTF-8.
    """
    index, check = {symbol: i for i, symbol in enumerate(symbols)}, TextCheck(set(symbols).difference(SPECIALS))
    tokens, lengths = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
    for words, ids, per_line in map_blocks(ids_of_block, paths, "reading words", workers):
        word_ids = np.array([index.get(word, unknown) for word in words], dtype=np.int32)
        check.add(zip(words, np.bincount(ids, minlength=len(words)).tolist(), strict=True))
        tokens.append(word_ids[ids])
        lengths.append(per_line.astype(np.int64))
    check.warn(paths)
    return np.concatenate(tokens), np.concatenate(lengths)
