"""Texts as paragraphs: a sentence a line, words between blanks, an empty line after each paragraph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import iter_sentences

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
