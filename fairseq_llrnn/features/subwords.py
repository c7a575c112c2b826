"""Features of subword pieces: of the piece itself, and of the words that contain it.

There are two conventions. sentencepiece (Kudo & Richardson 2018) writes `▁` before a piece that begins a word, and does
not mark the end of a word. subword-nmt (Sennrich et al. 2016) writes `@@` after a piece whose word continues, and does
not mark the beginning. The features `Piece:…` contain only these marks.

A piece occurs in many words, so it has no analysis of its own. It gets the expectation of its words' features over the
training text: `POS:NOUN` is the share of its occurrences whose word can be a noun. Shares are more precise than a
majority: an ending that is Masc in every second word differs from one that always is. Shares are rounded to quarters,
so that signatures stay few, and values below an eighth are left out. A real-valued feature is its mean over the
occurrences that have it, times their share. So a piece that is always a whole word has its word's features. Words
outside the lexicon have no features.

A piece has a suffix within it if at least half of its occurrences end a word with this suffix. A majority is enough
here: the spelling belongs to the piece, only the end of the word varies, and shares would make several times as many
signatures (on Multi30k, 6,000 pieces: 591 instead of 202 for the pieces without an indicator).

Sizes: T tokens of the text, D different split words in it, V pieces of the dictionary. Time O(T + D), memory O(D + V).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tqdm import tqdm

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.features.spelling_features import suffix_features
from fairseq_llrnn.files.text_blocks import Block, map_blocks
from fairseq_llrnn.files.text_lines import place, shown
from fairseq_llrnn.lexicon.features import Lexicon

BEGINS, GOES_ON = "▁", "@@"
STEPS = 4  # shares are rounded to quarters


@dataclass(frozen=True)
class Convention:
    """The notation of a word in pieces."""

    name: str
    rule: str  # for messages: the pieces with the mark
    is_marked: Callable[[str], bool]
    strip: Callable[[str], str]  # removes the mark of a marked piece
    mark: Callable[[str], str]  # adds it
    marked: str  # the feature of marked pieces
    unmarked: str
    mark_begins: bool  # True: a marked piece begins a word; False: the word goes on after it

    def bare(self, piece: str) -> str:
        """Return the piece without its mark."""
        return self.strip(piece) if self.is_marked(piece) else piece

    def position(self, piece: str) -> str:
        """Return the feature of the piece's mark."""
        return self.marked if self.is_marked(piece) else self.unmarked

    def split_words(self, pieces: Iterable[str]) -> Iterator[list[str]]:
        """Yield the pieces of each word in a line. A line's first piece begins a word, its last one ends one."""
        word: list[str] = []
        for piece in pieces:
            marked = self.is_marked(piece)
            if self.mark_begins and marked and word:
                yield word
                word = []
            word.append(piece)
            if not self.mark_begins and not marked:
                yield word
                word = []
        if word:
            yield word

    def join(self, pieces: Iterable[str]) -> str:
        """Return the word of these pieces."""
        return "".join(map(self.bare, pieces))

    def whole(self, word: str) -> str:
        """Return a word as a single token."""
        return self.mark(word) if self.mark_begins else word

    def words_of(self, token: str) -> tuple[str, ...]:
        """Return the words of a token: one, or several, each of which may be in pieces with blanks between them."""
        words = map(self.join, self.split_words(token.split()))
        return tuple(part for word in words for part in (word.split(self.mark("")) if self.mark_begins else [word]))

    def check_dictionary(self, path: Path | str, words: WordList) -> None:
        """Raise DataError for a dictionary without any marked piece: it was made from another kind of text."""
        ordinary = words.ordinary
        if any(map(self.is_marked, ordinary)):
            return
        raise DataError(f"{path}: expected {self.rule} (--pieces {self.name}), found {_describe(ordinary, self)}")


def _describe(pieces: Sequence[str], expected: Convention) -> str:
    """Describe pieces without a mark of `expected`, with advice."""
    for convention in CONVENTIONS.values():
        marked = [piece for piece in pieces if convention.is_marked(piece)]
        if convention.name != expected.name and marked:
            return f"none, but {len(marked):,} such as {shown(marked[0])}; did you mean --pieces {convention.name}?"
    suffixed = [piece for piece in pieces if piece.endswith(BEGINS)]
    if suffixed:
        return f"{BEGINS} at the end of pieces, such as {shown(suffixed[0])}; train without treat_whitespace_as_suffix"
    examples = ", ".join(map(shown, pieces[:3])) or "no symbol"
    return f"none in {len(pieces):,}: {examples}; give a text in pieces to fairseq-preprocess, or leave --pieces out"


CONVENTIONS: Mapping[str, Convention] = {
    "sentencepiece": Convention(
        name="sentencepiece",
        rule=f"pieces that begin with {BEGINS}",
        is_marked=lambda piece: piece.startswith(BEGINS),
        strip=lambda piece: piece.removeprefix(BEGINS),
        mark=lambda bare: BEGINS + bare,
        marked="Piece:Begins",
        unmarked="Piece:Inside",
        mark_begins=True,
    ),
    "bpe": Convention(
        name="bpe",
        rule=f"pieces that end in {GOES_ON}",
        is_marked=lambda piece: piece.endswith(GOES_ON) and piece != GOES_ON,
        strip=lambda piece: piece.removesuffix(GOES_ON),
        mark=lambda bare: bare + GOES_ON,
        marked="Piece:GoesOn",
        unmarked="Piece:Ends",
        mark_begins=False,
    ),
}


def pieces_of_block(name: str, block: Block) -> tuple[dict[tuple[str, ...], int], tuple[int, str] | None, bool]:
    """Return the counts of split words, the first line that is not empty, and whether a piece has a mark.

    Args:
        name: of a convention.
    """
    convention, counts = CONVENTIONS[name], Counter[tuple[str, ...]]()
    first: tuple[int, str] | None = None
    any_marked = False
    for number, line in block.lines():
        pieces = line.split()
        first = (number, line.strip()) if first is None and pieces else first
        any_marked = any_marked or any(map(convention.is_marked, pieces))
        counts.update(map(tuple, convention.split_words(pieces)))
    return dict(counts), first, any_marked


@dataclass(frozen=True)
class PieceText:
    """The different split words of a text with their counts."""

    convention: Convention
    counts: Mapping[tuple[str, ...], int]  # D

    @classmethod
    def read(cls, paths: Iterable[Path | str], convention: Convention, workers: int | None = None) -> PieceText:
        """Read texts, one sentence a line, pieces between blanks.

        Args:
            workers: processes (None: one for each core).

        Raises:
            DataError: a file that cannot be read, or without one piece of the convention's mark.
        """
        counts: Counter[tuple[str, ...]] = Counter()
        for path in paths:
            first: tuple[int, str] | None = None
            any_marked = False
            blocks = map_blocks(partial(pieces_of_block, convention.name), [path], "counting words", workers)
            for splits, beginning, marked in blocks:
                first, any_marked = first or beginning, any_marked or marked
                counts.update(splits)
            if first is not None and not any_marked:
                raise DataError(
                    f"{place(path, first[0])}: expected a text in pieces, with {convention.rule} (--pieces "
                    f"{convention.name}), found none in the whole file: {shown(first[1])}; give the text that "
                    "fairseq-preprocess was given"
                )
        return cls(convention, counts)

    def words(self) -> list[str]:
        """Return the different words, in order of first occurrence."""
        return list(dict.fromkeys(map(self.convention.join, self.counts)))

    def word_counts(self) -> Counter[str]:
        """Return the different words with their counts."""
        counts: Counter[str] = Counter()
        for split, count in self.counts.items():
            counts[self.convention.join(split)] += count
        return counts

    def pieces(self) -> set[str]:
        """Return the pieces that occur."""
        return {piece for split in self.counts for piece in split}


def piece_features(
    pieces: Sequence[str], convention: Convention, text: PieceText | None, lexicon: Lexicon, floor: int | None
) -> list[dict[str, float]]:
    """Return the features of each piece: its position in a word, and those of its words. The caller adds spelling
    (shapes).

    Args:
        pieces: the dictionary without special symbols.
        text: None for no features of words.
        floor: the number of different words of the text that must share a suffix (None: no suffixes).
    """
    rows = [{convention.position(piece): 1.0} for piece in pieces]
    if text is not None:
        for row, word_features in zip(rows, expected_features(pieces, text, lexicon, floor), strict=True):
            row.update(word_features)
    return rows


def expected_features(
    pieces: Sequence[str], text: PieceText, lexicon: Lexicon, floor: int | None = None
) -> list[dict[str, float]]:
    """Return the expected features of each piece's words (module docstring), or {} for unseen pieces."""
    join, bare = text.convention.join, text.convention.bare
    words = text.words()
    suffixes = {} if floor is None else dict(zip(words, suffix_features(words, floor), strict=True))
    number = {piece: i for i, piece in enumerate(pieces)}
    occurrences = [0] * len(pieces)
    num_having: list[dict[str, int]] = [{} for _ in pieces]  # occurrences whose word has the feature
    total: list[dict[str, float]] = [{} for _ in pieces]  # the sum of its values there
    ending: list[dict[str, int]] = [{} for _ in pieces]  # occurrences that end a word with the suffix
    for split, count in tqdm(text.counts.items(), "features of words", leave=False, disable=None):
        word = join(split)
        features = lexicon.features(word)
        for piece in split:
            i = number.get(piece)
            if i is not None:
                occurrences[i] += count
                for name, value in features.items():
                    if value != 0.0:
                        num_having[i][name] = num_having[i].get(name, 0) + count
                        total[i][name] = total[i].get(name, 0.0) + value * count
        last = number.get(split[-1])
        if last is not None:
            for name in suffixes.get(word, ()):
                if bare(split[-1]).lower().endswith(name.partition(":")[2]):
                    ending[last][name] = ending[last].get(name, 0) + count
    rows: list[dict[str, float]] = []
    for i, total_count in enumerate(occurrences):
        shares = {name: _share(count, total_count) for name, count in num_having[i].items()}
        row = {name: share * (total[i][name] / num_having[i][name]) for name, share in shares.items() if share}
        rows.append(row | {name: 1.0 for name, count in ending[i].items() if 2 * count >= total_count})
    return rows


def _share(part: int, whole: int) -> float:
    """Return part / whole rounded to quarters, halves upwards, in integers, so that all machines round alike."""
    return (2 * STEPS * part + whole) // (2 * whole) / STEPS
