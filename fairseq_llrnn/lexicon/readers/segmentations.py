"""Words cut into segments, by any tool, one word a line:

    unhappiness<TAB>un happi ness       the word, and its segments with blanks between
    un happi ness                       only the segments, which spell the word
    3 un + happi + ness                 as Morfessor writes them: + between, the word's count before (or none)

A file may mix the first two. In one with a row of Morfessor's, `3 the` is a count and a word in one piece. Comments
(`# …`) may stand above the first row; blank lines are skipped.
"""

from __future__ import annotations

import re
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import ReadCount, place, refuse_blank, shown
from fairseq_llrnn.lexicon.casing import lower
from fairseq_llrnn.lexicon.morphemes import Segmentation

PLUS = " + "
REPEATED = "repeated"
COMMENT = "as comment"
COUNT = re.compile(r"\d+ (?=\S+(?: \+ \S+)*$)", re.ASCII)  # before a segmentation of Morfessor's


def read_segmentations(
    path: Path | str, *, lowercase: bool, language: str | None = None, form: str | None = None
) -> dict[str, tuple[Segmentation, ...]]:
    """The different segmentations of each word, in the file's order.

    `lowercase` lower-cases words, by the rules of `language` (casing.py); `form`: of text_lines.py.

    Raises DataError, with file and line, for segments that do not spell their word and a row of another shape, and for
    a file without rows.
    """
    segmentations: dict[str, dict[Segmentation, None]] = {}
    count = ReadCount(path, "rows", form, later=True)
    lines = list(count.lines())
    of_morfessor = any(PLUS in line for _, line in lines)
    for number, line in lines:
        if not segmentations and line.startswith("# "):
            count.left_out[COMMENT] += 1
            continue
        word, segments = _row(line, of_morfessor, place(path, number))
        if lowercase:
            word, segments = _lowered(word, segments, language)
        of_word = segmentations.setdefault(word, {})
        if segments in of_word:
            count.left_out[REPEATED] += 1
            continue
        of_word[segments] = None
        count.read += 1
    count.done()
    if not segmentations:
        raise DataError(f"{path}: expected rows of words cut into segments, found none; is it the right file?")
    return {word: tuple(several) for word, several in segmentations.items()}


def _row(line: str, of_morfessor: bool, where: str) -> tuple[str, Segmentation]:
    cells = line.split("\t")
    if len(cells) > 2:
        raise DataError(
            f"{where}: expected a word, a tab and its segments with blanks between, or the segments alone, found "
            f"{len(cells)} columns; fix the row"
        )
    text = cells[-1].strip()
    if of_morfessor:
        text = text[match.end() :] if (match := COUNT.match(text)) else text
        text = text.replace(PLUS, " ")
    segments = tuple(text.split())
    word = cells[0] if len(cells) == 2 else "".join(segments)
    if not word or "".join(segments) != word:
        raise DataError(
            f"{where}: expected segments that spell the word {shown(word)}, found {shown(' '.join(segments))}; fix the "
            "row"
        )
    refuse_blank(word, where, "the word")
    return word, segments


def _lowered(word: str, segments: Segmentation, language: str | None) -> tuple[str, Segmentation]:
    """The word in lower case, cut where its segments end: a Greek sigma's form depends on the whole word."""
    whole, parts, begin = lower(word, language), [], 0
    for length in (len(lower(segment, language)) for segment in segments):
        parts.append(whole[begin : begin + length])
        begin += length
    return (whole, tuple(parts)) if begin == len(whole) else (whole, tuple(lower(s, language) for s in segments))
