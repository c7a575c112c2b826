"""The bits that a model needs for a text, and batches of lines.

`line_batches` yields the lines of a text in order, for models that score or label them.

`TextScore` has bits per word and per character, and their parts. The characters of a line are those of its words, a
blank between two words, and its end. So bits per character can be compared between models of words, of pieces and of
characters, if they give probabilities to the same text. The bits of a line's end are included.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import EOS
from fairseq_llrnn.features.subwords import Convention

Line = tuple[int, list[str]]  # number, from 1, and words
Item = TypeVar("Item")


def line_batches(lines: Iterable[str], longest: float, most: int, max_tokens: int) -> Iterator[list[Line]]:
    """Yield batches of lines. A line of more than `longest` words is alone.

    Args:
        most: lines of a batch. max_tokens: tokens of a batch, with padding and the ends of lines.
    """
    read = ((number, line.split()) for number, line in enumerate(lines, start=1))
    return together(read, lambda line: 1 + len(line[1]) if len(line[1]) <= longest else math.inf, most, max_tokens)


def together(
    items: Iterable[Item], tokens: Callable[[Item], float], most: float, max_tokens: float
) -> Iterator[list[Item]]:
    """Yield batches of items, in order.

    Args:
        tokens: of an item. most: items of a batch. max_tokens: tokens of a batch of several items, with padding.
    """
    batch, widest = list[Item](), 0.0
    for item in items:
        width = tokens(item)
        if batch and (len(batch) == most or max(width, widest) * (len(batch) + 1) > max_tokens):
            yield batch
            batch, widest = [], 0.0
        batch.append(item)
        widest = max(width, widest)
    if batch:
        yield batch


def characters_of(words: Sequence[str]) -> int:
    """Return the number of characters of a line with its blanks and its end."""
    return sum(map(len, words)) + max(1, len(words))


NATS = {"bits": math.log(2), "nats": 1.0}  # of a unit of surprisals


class WordScore(NamedTuple):
    """A word, or the end of a sentence (`</s>`)."""

    word: str
    log_prob: float  # in nats, or −inf
    num_tokens: int
    is_unknown: bool  # whether the dictionary lacks one of its tokens


@dataclass(frozen=True)
class LineScore:
    """A line, scored word by word."""

    number: int  # of the line, from 1
    words: Sequence[str]  # T
    unknown: Sequence[bool] = ()  # (T,) whether the dictionary lacks the word
    log_probs: Sequence[float] = ()  # (T + 1,) in nats, of every word (unknown ones as <unk>), and of the end
    spelt: Sequence[float] = ()  # (T,) in nats, log Σ_o r_o P_o(w) of unknown words, and 0 of others
    num_tokens: Sequence[int] = ()  # (T,) of each word, if a word may be several tokens
    too_long_for: int | None = None  # the largest number of words of the model, if the line has more and no score

    @property
    def impossible(self) -> int | None:
        """The index of the first word without probability, from 0. The end is after the last one. None if there
        is none.
        """
        ends = zip(self.log_probs, (*self.spelt, 0.0), strict=True)
        return next((place for place, values in enumerate(ends) if not all(map(math.isfinite, values))), None)

    @property
    def log_prob(self) -> float:
        """The log-probability of the line and its end, in nats, or −inf if it is impossible, NaN if it is too long."""
        if self.too_long_for is not None:
            return math.nan
        return -math.inf if self.impossible is not None else math.fsum(self.log_probs) + math.fsum(self.spelt)

    def word(self, place: int) -> str:
        """Return the word at an index from 0, or the end."""
        return self.words[place] if place < len(self.words) else EOS

    def per_word(self, convention: Convention | None = None) -> Iterator[WordScore]:
        """Yield the score of each word, and of the end.

        Args:
            convention: of a line in subword pieces. Their log-probabilities are summed for each word.
        """
        values = [a + b for a, b in zip(self.log_probs, (*self.spelt, 0.0), strict=True)]
        num_tokens = self.num_tokens or [1] * len(self.words)
        begin = 0
        for tokens in [[word] for word in self.words] if convention is None else convention.split_words(self.words):
            end = begin + len(tokens)
            word = tokens[0] if convention is None else convention.join(tokens)
            log_prob, size = math.fsum(values[begin:end]), sum(num_tokens[begin:end])
            yield WordScore(word, log_prob, size, any(self.unknown[begin:end]))
            begin = end
        yield WordScore(EOS, values[-1], 1, False)


def perplexity(bits: float) -> float:
    """Return 2^bits, or inf if it is no float."""
    return 2.0**bits if bits < sys.float_info.max_exp else math.inf


@dataclass
class TextScore:
    """Sums over a text. Bits are −log₂ p."""

    sentences: int = 0
    empty_lines: int = 0  # sentences without words; their ends count
    words: int = 0
    characters: int = 0
    unknown_words: int = 0  # outside the dictionary
    unknown_characters: int = 0  # of these words, without blanks
    known_bits: float = 0.0  # of words of the dictionary
    unknown_bits: float = 0.0  # of <unk> for unknown words
    spelling_bits: float = 0.0  # of the spelling of unknown words; 0 if a model has <unk> for all of them
    end_bits: float = 0.0
    further_tokens: int = 0  # tokens of words after their first

    def add(self, line: LineScore, convention: Convention | None = None) -> None:
        """Add a line with a probability. convention: of a text in subword pieces, whose words are counted."""
        *words, _ = line.per_word(convention)
        unknown = line.unknown
        bits = [-x / math.log(2) for x in line.log_probs]
        self.sentences += 1
        self.empty_lines += not words
        self.words += len(words)
        self.further_tokens += sum(word.num_tokens for word in words) - len(words)
        self.characters += characters_of([word.word for word in words])
        self.unknown_words += sum(word.is_unknown for word in words)
        self.unknown_characters += sum(len(word.word) for word in words if word.is_unknown)
        self.unknown_bits += math.fsum(b for b, u in zip(bits[:-1], unknown, strict=True) if u)
        self.known_bits += math.fsum(b for b, u in zip(bits[:-1], unknown, strict=True) if not u)
        self.spelling_bits -= math.fsum(line.spelt) / math.log(2)
        self.end_bits += bits[-1]

    @property
    def bits(self) -> float:
        """The bits of the whole text."""
        return self.known_bits + self.unknown_bits + self.spelling_bits + self.end_bits

    def facts(self) -> dict[str, Any]:
        """Return the sums, and bits per word, per character, and per token (ends included), or None for empty ones."""
        tokens = self.words + self.further_tokens + self.sentences
        numbers = {"word": self.words, "character": self.characters, "token": tokens}
        per = {f"bits_per_{unit}": self.bits / number if number else None for unit, number in numbers.items()}
        return {**asdict(self), "bits": self.bits, **per}


def sum_of(lines: Iterable[LineScore], convention: Convention | None = None) -> TextScore:
    """Return the sums over the lines of a text. convention: of a text in subword pieces.

    Raises:
        DataError: a line that is too long for the model, or impossible.
    """
    total = TextScore()
    for line in lines:
        if line.too_long_for is not None:
            raise DataError(
                f"line {line.number}: expected at most {line.too_long_for:,} words, the limit of the model, found "
                f"{len(line.words):,}; break the line, or score the other lines with `llrnn score --per-sentence`"
            )
        if line.impossible is not None:
            raise DataError(
                f"line {line.number}: expected words that the model allows, found {line.word(line.impossible)!r} "
                f"(word {line.impossible + 1}), which has no probability; build its prior with a background that "
                "covers it, or score the other lines with `llrnn score --per-sentence`"
            )
        total.add(line, convention)
    return total
