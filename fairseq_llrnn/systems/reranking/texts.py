"""Texts to evaluate: a source, a reference, systems' outputs, and the words of their lines.

`words` returns the same words for a tokenised line as for an untokenised one, so that systems of either kind are
comparable.

    L'été, 57.843 t-shirts QX-417   ->   L' | été | , | 57.843 | t-shirts | QX-417

A word consists of letters, digits and underscores, with hyphens between them. `.`, `,`, `:` and `/` between digits
belong to it, and so does an apostrophe at its end, as in French elision (*l' été*, *qu' il*). Joiner, non-joiner
(U+200D, U+200C: used within Persian words) and soft hyphen belong to the preceding letters. Other characters without
width (Unicode's Cf) belong to no word. `<unk>` is a word, and so is every other visible character. Moses' escapes
(`&apos;`) are decoded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import regex  # type: ignore[import-untyped]

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import iter_lines, iter_sentences, place, sentence_of
from fairseq_llrnn.systems.reranking.nbest import FORMATS, open_nbest
from fairseq_llrnn.systems.reranking.nbest.lists import PREFIX
from fairseq_llrnn.systems.reranking.nbest.marks import words_of

ESCAPES = {
    "&apos;": "'", "&quot;": '"', "&lt;": "<", "&gt;": ">", "&#124;": "|", "&#91;": "[", "&#93;": "]", "&amp;": "&",
}  # fmt: skip
_ESCAPE = re.compile("|".join(ESCAPES))
_LETTERS = r"[\p{L}\p{M}\p{N}_][\p{L}\p{M}\p{N}_\u00ad\u200c\u200d]*"
_WORD = regex.compile(rf"<unk>|{_LETTERS}(?:(?:-|(?<=\p{{N}})[.,:/](?=\p{{N}})){_LETTERS})*['’]?|[^\s\p{{Cf}}]")


def plain(line: str) -> str:
    """Return the line without Moses' escapes."""
    return _ESCAPE.sub(lambda match: ESCAPES[match[0]], line)


def spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of every word of a plain text."""
    return [match.span() for match in _WORD.finditer(text)]


def words(line: str) -> list[str]:
    """Return the words of a line."""
    return _WORD.findall(plain(line))


def has_letters(word: str) -> bool:
    """Return whether a word has a letter or digit."""
    return any(character.isalnum() for character in word)


def occurrences(phrase: Sequence[str], sentence: Sequence[str]) -> int:
    """Return how often the words of `phrase` occur contiguously in `sentence`."""
    size = len(phrase)
    return sum(list(sentence[i : i + size]) == list(phrase) for i in range(len(sentence) - size + 1)) if size else 0


def clipped(reference: Iterable[str], output: Iterable[str]) -> Counter[str]:
    """Return the multiset intersection of the words of reference and output."""
    return Counter(reference) & Counter(output)


FAIRSEQ = FORMATS["fairseq"]
_PRIOR = re.compile(r"\| INFO \|.* prior (llrnn:\S+)$")
_RESCORED = re.compile(rf"F-[0-9]+\t{PREFIX}")


@dataclass(frozen=True)
class Texts:
    """N lines each, and systems by name in the given order."""

    source: list[str]  # without terms after a tab
    reference: list[str]
    systems: dict[str, list[str]]
    priors: dict[str, str] = field(default_factory=dict)  # signatures by system, from logs

    def __len__(self) -> int:
        return len(self.reference)


def read_texts(source: str, reference: str, systems: Mapping[str, str]) -> Texts:
    """Read the files, plain or gzip. A system's file may be the output of fairseq-generate.

    Raises:
        DataError: a file cannot be read, is empty, or has another number of lines than the reference. Or the reference
            has no words. Or an output of fairseq-generate is invalid, reranked, or lacks hypotheses.
    """
    texts = Texts([sentence_of(line) for line in _read(source)], _read(reference), {})
    for name, path in systems.items():
        texts.systems[name], prior = _read_system(path)
        texts.priors.update({} if prior is None else {name: prior})
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
    """Count the words of a text, which may be large. Raises DataError."""
    counts: Counter[str] = Counter()
    for _, line in iter_sentences(path):
        counts.update(words(line))
    if not counts:
        raise DataError(f"{path}: expected the target text of the training, found no word in it")
    return counts


def _read(path: str) -> list[str]:
    lines = [line for _, line in iter_sentences(path)]
    if not lines:
        raise DataError(f"{path}: expected a sentence a line, found an empty file")
    return lines


def _read_system(path: str) -> tuple[list[str], str | None]:
    """Return the translations, and the prior's signature if fairseq's log has one."""
    if not any(line.startswith("H-") and FAIRSEQ.belongs(line) for _, line in iter_lines(path)):
        return words_of(_read(path)), None
    prior = None
    for line_number, line in iter_lines(path):
        if match := _PRIOR.search(line):
            prior = match[1]
            break
        if _RESCORED.match(line):
            raise DataError(
                f"{place(path, line_number)}: expected the output of fairseq-generate, found the reranked list of "
                "`llrnn rescore --nbest-out`; give OUT of `llrnn rescore --out OUT`, the best hypotheses"
            )
    listed = open_nbest(path, FAIRSEQ.NAME)
    best: list[str] = []
    for sentence in listed:
        if sentence.number != len(best) or not sentence.hypotheses:
            break
        best.append(max(sentence.hypotheses, key=lambda hypothesis: hypothesis.score or 0.0).output)
    if len(best) <= listed.last:
        raise DataError(
            f"{path}: expected a hypothesis of every sentence from 0 to {listed.last}, found none of {len(best)}; "
            "generate all sentences again, with --required-batch-size-multiple 1"
        )
    return best, prior
