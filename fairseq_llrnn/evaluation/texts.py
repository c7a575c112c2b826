"""Texts to evaluate: the words of their lines, systems' outputs beside a reference, and the bits that a model needs.

`words`: a line has the same words whether it is tokenised or not, so that systems of either kind are counted alike.

    L'été, 57.843 t-shirts QX-417   ->   L' | été | , | 57.843 | t-shirts | QX-417

A word is letters, digits and underscores with hyphens between them; `.`, `,`, `:` and `/` between digits belong to it,
and so does an apostrophe at its end, which in French means an elision (*l' été*, *qu' il*). A joiner, a non-joiner
(U+200D, U+200C: Persian has them within words) and a soft hyphen belong to the letters before them; other characters
without width (Unicode's Cf) to no word. `<unk>` is a word. Whatever else is visible is a word by itself. Moses' escapes
(`&apos;`) are read as what they stand for.

`Texts` are a source, a reference and the outputs of systems, line by line; `line_batches` are lines of a text in
their order, for models that score or label them.

`TextScore` says how well a model predicts a text: bits per word and per character, and where they go. The characters
of a line are those of its words, a blank between two words, and its end; so bits per character can be compared
between models of words, of pieces and of characters, if they give probabilities to the same text. Bits of a line's
end are among them.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import regex  # type: ignore[import-untyped]

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import EOS
from fairseq_llrnn.features.subwords import Convention
from fairseq_llrnn.files.text_lines import iter_lines, iter_sentences, place, sentence_of
from fairseq_llrnn.nbest import FORMATS, open_nbest, settle
from fairseq_llrnn.nbest.lists import PREFIX, without_marks

ESCAPES = {
    "&apos;": "'", "&quot;": '"', "&lt;": "<", "&gt;": ">", "&#124;": "|", "&#91;": "[", "&#93;": "]", "&amp;": "&",
}  # fmt: skip
_ESCAPE = re.compile("|".join(ESCAPES))
_LETTERS = r"[\p{L}\p{M}\p{N}_][\p{L}\p{M}\p{N}_\u00ad\u200c\u200d]*"
_WORD = regex.compile(rf"<unk>|{_LETTERS}(?:(?:-|(?<=\p{{N}})[.,:/](?=\p{{N}})){_LETTERS})*['’]?|[^\s\p{{Cf}}]")


def plain(line: str) -> str:
    """The line without Moses' escapes."""
    return _ESCAPE.sub(lambda match: ESCAPES[match[0]], line)


def spans(text: str) -> list[tuple[int, int]]:
    """Start and end of every word of a plain text."""
    return [match.span() for match in _WORD.finditer(text)]


def words(line: str) -> list[str]:
    """The words of a line."""
    return _WORD.findall(plain(line))


def has_letters(word: str) -> bool:
    """Whether it is more than punctuation."""
    return any(character.isalnum() for character in word)


def occurrences(phrase: Sequence[str], sentence: Sequence[str]) -> int:
    """How often the words of `phrase` stand in `sentence` one after the other."""
    size = len(phrase)
    return sum(list(sentence[i : i + size]) == list(phrase) for i in range(len(sentence) - size + 1)) if size else 0


def clipped(reference: Iterable[str], output: Iterable[str]) -> Counter[str]:
    """The multiset intersection: how often the output has each word of the reference, at most as often as it."""
    return Counter(reference) & Counter(output)


FAIRSEQ = FORMATS["fairseq"]
_PRIOR = re.compile(r"\| INFO \|.* prior (llrnn:\S+)$")
_RESCORED = re.compile(rf"F-[0-9]+\t{PREFIX}")


@dataclass(frozen=True)
class Texts:
    """N lines each; systems by name, in the order in which they were given."""

    source: list[str]  # without what stands behind a tab, which is required of its translation (terms)
    reference: list[str]
    systems: dict[str, list[str]]
    priors: dict[str, str] = field(default_factory=dict)  # signatures by system, of logs

    def __len__(self) -> int:
        return len(self.reference)


def read_texts(source: str, reference: str, systems: Mapping[str, str]) -> Texts:
    """Read the files, plain or gzip; a system's may be what fairseq-generate printed.

    Raises:
        DataError: a file that cannot be read, is empty, or has another number of lines than the reference; a reference
            without words; an output of fairseq-generate without a hypothesis for every sentence, reranked, or unsound.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder)
            texts = Texts(
                [sentence_of(line) for line in _read(source, settle(source, scratch, "source"))],
                _read(reference, settle(reference, scratch, "reference")),
                {},
            )
            for number, (name, path) in enumerate(systems.items()):
                texts.systems[name], prior = _read_system(path, scratch, number)
                texts.priors.update({} if prior is None else {name: prior})
    except OSError as error:
        raise DataError(
            f"{error.filename or 'TMPDIR'}: {error.strerror or error}; make room for temporary files, or let "
            "TMPDIR name another folder"
        ) from error
    if not any(has_letters(line) for line in texts.reference):
        raise DataError(f"{reference}: expected a sentence a line, found no word in {len(texts):,} lines")
    for path, lines in ((source, texts.source), *zip(systems.values(), texts.systems.values(), strict=True)):
        if len(lines) != len(texts):
            raise DataError(
                f"{path}: expected {len(texts):,} lines, as many as {reference} has, found "
                f"{len(lines):,}; give files of the same sentences"
            )
    return texts


def count_words(path: str) -> Counter[str]:
    """How often each word occurs in a text, which may be large. Raises DataError."""
    counts: Counter[str] = Counter()
    for _, line in iter_sentences(path):
        counts.update(words(line))
    if not counts:
        raise DataError(f"{path}: expected the target text of the training, found no word in it")
    return counts


def _read(path: str, file: Path) -> list[str]:
    lines = [line for _, line in iter_sentences(file)]
    if not lines:
        raise DataError(f"{path}: expected a sentence a line, found an empty file")
    return lines


def _read_system(path: str, scratch: Path, number: int) -> tuple[list[str], str | None]:
    """The translations, and the signature of the prior, if fairseq's log has one."""
    folder = scratch / str(number)
    folder.mkdir()
    file = settle(path, folder, "system")
    if not any(line.startswith("H-") and FAIRSEQ.belongs(line) for _, line in iter_lines(file)):
        return list(map(without_marks, _read(path, file))), None
    prior = None
    for line_number, line in iter_lines(file):
        if match := _PRIOR.search(line):
            prior = match[1]
            break
        if _RESCORED.match(line):  # without logs
            raise DataError(
                f"{place(path, line_number)}: expected what fairseq-generate printed, found the reranked list of "
                "`llrnn rescore --nbest-out`; give OUT of `llrnn rescore --out OUT`, the best hypotheses"
            )
    listed = open_nbest(file, folder, FAIRSEQ.NAME)
    best: list[str] = []
    for sentence in listed:
        if sentence.number != len(best) or not sentence.hypotheses:
            break
        best.append(max(sentence.hypotheses, key=lambda hypothesis: hypothesis.score or 0.0).output)
    if len(best) <= listed.last:
        raise DataError(
            f"{path}: expected a hypothesis of every sentence from 0 to {listed.last}, found none of {len(best)}; "
            "generate again with --required-batch-size-multiple 1, and without leaving out sentences"
        )
    return best, prior


Line = tuple[int, list[str]]  # its number, from 1, and its words
Item = TypeVar("Item")


def line_batches(lines: Iterable[str], longest: float, most: int, max_tokens: int) -> Iterator[list[Line]]:
    """Lines that are read together; one of more than `longest` words is alone.

    Args:
        most: lines of a batch. max_tokens: tokens of a batch, with padding and the ends of lines.
    """
    read = ((number, line.split()) for number, line in enumerate(lines, start=1))
    return together(read, lambda line: 1 + len(line[1]) if len(line[1]) <= longest else math.inf, most, max_tokens)


def together(
    items: Iterable[Item], tokens: Callable[[Item], float], most: float, max_tokens: float
) -> Iterator[list[Item]]:
    """What is read together, in its order.

    Args:
        tokens: of an item. most: items of a batch. max_tokens: tokens of a batch, with padding, where it has several.
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
    """Characters of a line with its blanks and its end."""
    return sum(map(len, words)) + max(1, len(words))


NATS = {"bits": math.log(2), "nats": 1.0}  # of a unit of surprisals


@dataclass(frozen=True)
class LineScore:
    """A line, scored word by word."""

    number: int  # of the line, from 1
    words: Sequence[str]  # T
    unknown: Sequence[bool] = ()  # (T,) which of them the dictionary lacks
    log_probs: Sequence[float] = ()  # (T + 1,) in nats, of every word, or of <unk> in its place, and of the end
    spelt: Sequence[float] = ()  # (T,) in nats, log Σ_o r_o P_o(w) of unknown words, and 0 of others
    too_long_for: int | None = None  # the most words that the model takes, where the line has more: it has no score

    @property
    def impossible(self) -> int | None:
        """The place of the first word without probability, from 0, the end being that after the last one; or None."""
        ends = zip(self.log_probs, (*self.spelt, 0.0), strict=True)
        return next((place for place, values in enumerate(ends) if not all(map(math.isfinite, values))), None)

    @property
    def log_prob(self) -> float:
        """Of the line and its end, in nats; −inf where it has no probability, NaN where it is too long a line."""
        if self.too_long_for is not None:
            return math.nan
        return -math.inf if self.impossible is not None else math.fsum(self.log_probs) + math.fsum(self.spelt)

    def word(self, place: int) -> str:
        """That at a place from 0, or the end."""
        return self.words[place] if place < len(self.words) else EOS

    def per_word(self, convention: Convention | None = None) -> Iterator[tuple[str, float]]:
        """Yield each word and the end (`</s>`) with log p in nats, or −inf.

        Args:
            convention: of a line in subword pieces. Their log-probabilities are summed for each word.
        """
        each = [a + b for a, b in zip(self.log_probs, (*self.spelt, 0.0), strict=True)]
        begin = 0
        for tokens in [[word] for word in self.words] if convention is None else convention.split_words(self.words):
            end = begin + len(tokens)
            yield tokens[0] if convention is None else convention.join(tokens), math.fsum(each[begin:end])
            begin = end
        yield EOS, each[-1]


@dataclass
class TextScore:
    """Sums over a text; bits are −log₂ p."""

    sentences: int = 0
    empty_lines: int = 0  # of the sentences: without words; their ends count
    words: int = 0
    characters: int = 0
    unknown_words: int = 0  # outside the dictionary
    unknown_characters: int = 0  # of these words, without blanks
    known_bits: float = 0.0  # of words of the dictionary
    unknown_bits: float = 0.0  # of <unk> in the place of unknown words
    spelling_bits: float = 0.0  # of the spelling of unknown words; 0 where a model has <unk> for all of them
    end_bits: float = 0.0

    def add(self, line: LineScore) -> None:
        """A line that has some probability."""
        words, unknown = line.words, line.unknown
        bits = [-x / math.log(2) for x in line.log_probs]
        self.sentences += 1
        self.empty_lines += not words
        self.words += len(words)
        self.characters += characters_of(words)
        self.unknown_words += sum(unknown)
        self.unknown_characters += sum(len(w) for w, u in zip(words, unknown, strict=True) if u)
        self.unknown_bits += math.fsum(b for b, u in zip(bits[:-1], unknown, strict=True) if u)
        self.known_bits += math.fsum(b for b, u in zip(bits[:-1], unknown, strict=True) if not u)
        self.spelling_bits -= math.fsum(line.spelt) / math.log(2)
        self.end_bits += bits[-1]

    @property
    def bits(self) -> float:
        """Of the whole text."""
        return self.known_bits + self.unknown_bits + self.spelling_bits + self.end_bits

    def facts(self) -> dict[str, Any]:
        """The sums, and what they are per word, per character, and per token, ends being tokens; None where none is."""
        numbers = {"word": self.words, "character": self.characters, "token": self.words + self.sentences}
        per = {f"bits_per_{unit}": self.bits / number if number else None for unit, number in numbers.items()}
        return {**asdict(self), "bits": self.bits, **per}


def sum_of(lines: Iterable[LineScore]) -> TextScore:
    """The sums over the lines of a text.

    Raises:
        DataError: a line that is longer than the model allows, or to which it gives no probability.
    """
    total = TextScore()
    for line in lines:
        if line.too_long_for is not None:
            raise DataError(
                f"line {line.number}: expected at most {line.too_long_for:,} words, which is what the model was "
                f"made for, found {len(line.words):,}; break the line, or score others by `llrnn score --per-sentence`"
            )
        if line.impossible is not None:
            raise DataError(
                f"line {line.number}: expected words that the model allows, found {line.word(line.impossible)!r} "
                f"(word {line.impossible + 1}), to which it gives no probability; build its prior with a "
                "background that covers it, or score the other lines by `llrnn score --per-sentence`"
            )
        total.add(line)
    return total
