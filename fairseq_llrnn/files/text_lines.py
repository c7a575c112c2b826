"""Text files line by line, plain or packed by gzip, in constant memory, with errors that name the place.

Unicode has several forms of one text (UAX #15): é is one character in NFC, and an e followed by a mark in NFD. Both
look alike, but are different words to every dictionary. `--normalize FORM` converts words to the form of the text.
Without it, words that the vocabulary contains only in another form cause a note (`in_other_form`).

`ReadCount` counts the entries of a file that a reader read and left out, with reasons. Each reader fills one count for
each file, in three independent places: `entries` on input, `read` on use, and `left_out` otherwise. So
`entries == read + left_out` holds only if nothing is lost, which tests/files/test_read_counts.py checks for every
reader. A finished count is logged: `llrnn` prints it as a note, fairseq's commands in their log. Counts of texts, whose
lines are all read, have level DEBUG.
"""

from __future__ import annotations

import codecs
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.packed import Unpacked, packing_of
from fairseq_llrnn.files.packed import opened as opened

FORMS = ("nfc", "nfd")
logger = logging.getLogger(__name__)


def in_form(text: str, form: str | None) -> str:
    """Return the text in a form of FORMS; None: unchanged."""
    if form is None or text.isascii():
        return text
    return unicodedata.normalize("NFC" if form == "nfc" else "NFD", text)


def form_of(words: Iterable[str]) -> str | None:
    """Return the form of most words that differ between the two forms, or None if there are none."""
    distinctive = [word for word in words if in_form(word, "nfc") != in_form(word, "nfd")]
    composed = sum(word == in_form(word, "nfc") for word in distinctive)
    return None if not distinctive else "nfc" if 2 * composed >= len(distinctive) else "nfd"


def in_other_form(words: Iterable[str], vocabulary: Collection[str]) -> dict[str, str]:
    """Return words that the vocabulary lacks -> its word that differs only in the Unicode form."""
    word_of_form = {in_form(word, "nfc"): word for word in vocabulary if not word.isascii()}
    pairs = ((word, word_of_form.get(in_form(word, "nfc"))) for word in words if word_of_form and not word.isascii())
    return {word: other for word, other in pairs if other is not None and word not in vocabulary}


def advice_on_form(word: str, normalize: str | None, option: str) -> str:
    """Return how to make a word of the text equal to one in a file.

    normalize: value of `option`, which is `--normalize` or a key of the recipe.
    """
    text_form = next((form for form in FORMS if word == in_form(word, form)), None)
    if normalize is not None or text_form is None:
        target = (normalize or FORMS[0]).upper()
        return f"the text is not in {target} everywhere; convert it to that form (`uconv -x any-{target.lower()}`)"
    return f"the text has them in {text_form.upper()}; add {option}{text_form}"


def form_hint(word: str, vocabulary: Collection[str]) -> str:
    """Return an addition to a message about an unknown word that the vocabulary has in another form, or ""."""
    return " (only in another Unicode form: NFC and NFD look alike)" if in_other_form([word], vocabulary) else ""


def other_forms(text: str, lacking: Iterable[str], symbols: Collection[str]) -> str | None:
    """Return a note on words of a text, or of n-grams, that a dictionary has only in another form, or None if there are
    none.
    """
    variants = in_other_form(lacking, frozenset(symbols))
    if not variants:
        return None
    word, other = min(variants.items())
    form = (form_of([other]) or FORMS[0]).upper()
    return (
        f"{text}: {len(variants):,} words that the dictionary has only in another Unicode form, such as {word!r}, in "
        f"{form}: convert the file to that form (`uconv -x any-{form.lower()}`)"
    )


def warn_of_forms(text: str, lacking: Iterable[str], symbols: Collection[str]) -> None:
    """Log the note of `other_forms` as a warning."""
    if (reason := other_forms(text, lacking, symbols)) is not None:
        logger.warning(reason)


# A row of a treebank or a lexicon has some hundred bytes. A far longer line is no text, and could fill the memory.
MAX_LINE_BYTES = 1 << 20
BYTE_ORDER_MARK = "\ufeff"
FIRST_WORD = re.compile(r"[^\W_]+")
AS_HEADER = "as header"
# invisible characters: fillers of Hangul, joiners, vowels of Khmer, variation selectors, a blank of Braille
FILLERS = "\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u2800" + "".join(map(chr, range(0xFE00, 0xFE10)))


def place(path: Path | str, line: int) -> str:
    """Return the name of a line (counted from 1) in errors."""
    return f"{path}, line {line}"


def shown(text: str) -> str:
    """Return a quotation for errors, shortened if it is long."""
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


def clean_cells(line: str) -> list[str]:
    """Return the cells between the tabs of a line, without blanks (U+00A0 too) at their ends."""
    return [cell.strip() for cell in line.split("\t")]


def cells_of(
    line: str, path: Path | str, number: int, sizes: Container[int], expected: str, advice: str = "fix the row"
) -> list[str]:
    """Return the clean cells of a line. Empty cells at its end are dropped if none of `sizes` has room for them.

    Args:
        path, number: of the line.
        expected: description of the cells for the message.

    Raises:
        DataError: another number of cells.
    """
    cells = clean_cells(line)
    while len(cells) not in sizes and len(cells) > 1 and not cells[-1]:
        cells.pop()
    if len(cells) not in sizes:
        shape = f"{len(cells)} columns: {shown(line)}"
        raise DataError(f"{place(path, number)}: expected {expected}, found {shape}; {advice}")
    return cells


def is_header(cells: Sequence[str], names: Sequence[Container[str]], location: str) -> bool:
    """Return whether a row names its columns: the first word of each of the first cells is a name of that column.

    Args:
        names: the possible names of each of the first columns, in lower case.
        location: file and line.

    Raises:
        DataError: the row names these columns in another order.
    """
    words = [word[0] for cell in cells if (word := FIRST_WORD.search(cell.casefold()))][: len(names)]
    columns = [
        column if word in names[column] else next((i for i, titles in enumerate(names) if word in titles), -1)
        for column, word in enumerate(words)
    ]
    if not names or sorted(columns) != list(range(len(names))) or len(set(words)) < len(words):
        return False
    if columns != sorted(columns):
        raise DataError(
            f"{location}: expected the columns in another order, found {shown(', '.join(cells))}; write column "
            f"{columns.index(0) + 1} first"
        )
    return True


def is_blank(word: str) -> bool:
    """Return whether a word is invisible: empty, only blanks, or only characters without width."""
    return all(c.isspace() or c in FILLERS or unicodedata.category(c) in ("Cc", "Cf") for c in word)


JOINERS = "\u200c\u200d"  # within words of Persian, Hindi and others


def is_letter(character: str) -> bool:
    """Return whether a character is a letter, or a mark or joiner that belongs to one (NFD, Hindi, Persian)."""
    return character.isalpha() or character in JOINERS or unicodedata.category(character)[0] == "M"


def check_not_blank(word: str, location: str, name: str) -> None:
    """Raise DataError for an invisible word.

    Args:
        location: its file and line.
        name: its name in the format.
    """
    if not is_blank(word):
        return
    problem = f"blank ({' '.join(f'U+{ord(c):04X}' for c in word[:5])})" if word else "empty"
    raise DataError(f"{location}: {name} is {problem}; expected a word: fill it, or remove the row")


def warn_of_blanks(
    path: Path | str,
    what: str,
    lines: Sequence[int],
    problem: str = "have no visible character",
    advice: str = "clean the text",
) -> None:
    """Warn of invisible words in a text or of a dictionary, or of words with another `problem` of blanks.

    Args:
        what: the kind of entries.
        lines: their line numbers.
    """
    if lines:
        examples = ", ".join(map(str, lines[:5])) + (", …" if len(lines) > 5 else "")
        logger.warning(f"{path}: {len(lines):,} {what} {problem} (lines {examples}); {advice}")


def iter_lines(path: Path | str) -> Iterator[tuple[int, str]]:
    """Yield line numbers (from 1) and lines without their ends, of a UTF-8 file or a pipe.

    A file packed by gzip is recognised by its first bytes, not by its name.

    Raises:
        DataError: a file that cannot be read, is packed in an unsupported way or incomplete, or has a line that is not
            UTF-8 or longer than MAX_LINE_BYTES.
    """
    with opened(path) as (source, _):
        yield from numbered(source, path)


def numbered(source: BinaryIO | Unpacked, path: Path | str, *encoding: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of an open file, as `iter_lines`. `path`: its name in errors; `encoding`: as in `decoded`."""
    number = 0
    while raw := source.readline(MAX_LINE_BYTES + 1):
        number += 1
        yield number, decoded(raw, path, number, *encoding)


def decoded(
    raw: bytes, path: Path | str, number: int, encoding: str = "UTF-8", advice: str = "convert the text to UTF-8"
) -> str:
    """Return a line without its end. Raises DataError for another encoding or a line longer than MAX_LINE_BYTES."""
    if len(raw) > MAX_LINE_BYTES:
        raise DataError(
            f"{place(path, number)}: the line has more than {MAX_LINE_BYTES:,} bytes; expected one "
            "short row per line. Is this the right file, and are its line ends those of a text file?"
        )
    if number == 1:
        raw = raw.removeprefix(codecs.BOM_UTF8)
        if encoding == "UTF-8" and (wide := _is_utf16(raw)):
            raise DataError(
                f"{path}: expected UTF-8, found bytes 0x00; give the text of binary data, or convert one in {wide} "
                f"(`iconv -f {wide} -t UTF-8`)"
            )
    try:
        line = raw.decode(encoding)
    except UnicodeDecodeError as error:
        if number == 1 and (packing := packing_of(raw)):  # standard input, or a packed file within another
            raise DataError(
                f"{path}: expected a text, found one packed by {packing[0]}; unpack it first (`{packing[1]}`)"
            ) from error
        raise DataError(
            f"{place(path, number)}, byte {error.start + 1}: expected {encoding}, found the byte "
            f"0x{raw[error.start]:02x} ({error.reason}); {advice}"
        ) from error
    return line.rstrip("\r\n")


def _is_utf16(raw: bytes) -> str:
    """Return the form of UTF-16 that a line without a byte order mark seems to have (zero bytes at one parity), or
    "".
    """
    even, odd = raw[::2].count(0), raw[1::2].count(0)
    return "" if even + odd < 3 or (even and odd) else "UTF-16BE" if even else "UTF-16LE"


TREEBANK_ROW = re.compile(r"\d+(?:[-.]\d+)?(?:\t[^\t]*){9}")  # the columns of CoNLL-U, the first one a word's number
OTHER_COLUMNS = "global.columns"  # in the first comment of CoNLL-U Plus


def text_only(lines: Iterable[tuple[int, str]], path: Path | str) -> Iterator[tuple[int, str]]:
    """Yield numbers and lines of a text. Raises DataError if the first line without a comment is of a treebank."""
    is_begun = False
    for number, line in lines:
        is_comment = line.startswith("#")
        if not is_begun and (not is_comment or OTHER_COLUMNS in line):
            is_begun = True
            if is_comment or TREEBANK_ROW.fullmatch(line.rstrip("\r\n")):
                file = "FILE" if path in ("stdin", "lines") else path
                raise DataError(
                    f"{path}: expected a tokenised text, found a treebank in CoNLL-U; write its sentences with `llrnn "
                    f"text --conllu {file}`, and give these"
                )
        yield number, line


def sentence_of(line: str) -> str:
    """Return the source sentence of a line: the text before a tab, after which its required translation may follow."""
    return line.partition("\t")[0]


def check_as_long(source: object, target: object, lines: int, target_lines: int) -> None:
    """Raise DataError unless the text `target` has as many lines, `target_lines`, as its source."""
    if target_lines != lines:
        raise DataError(
            f"{target}: expected as many lines as in {source}, {lines:,}, found {target_lines:,}; give a text and its "
            "translation, line by line"
        )


def _is_filled(line: str) -> bool:
    return bool(line.strip(" \t"))  # other blanks may be an invisible word


@dataclass
class ReadCount:
    """The entries of one file or other source, read and left out."""

    file: Path | str
    what: str = "rows"
    form: str | None = None  # the Unicode form of its lines; None: unchanged
    entries: int = 0
    read: int = 0
    later: bool = False  # whether the reader calls `done`, instead of the end of the file
    left_out: Counter[str] = field(default_factory=Counter)  # reason -> entries
    quoted: int = 0  # cells in quotes
    first_quoted: str = ""

    def lines(self, is_entry: Callable[[str], bool] = _is_filled, rest: bool = False) -> Iterator[tuple[int, str]]:
        """Yield numbers and lines of the entries.

        Args:
            rest: also yield other lines. The reader then calls `done`.

        Raises:
            DataError: as `iter_lines`.
        """
        for number, raw in iter_lines(self.file):
            line = in_form(raw, self.form)
            counts = is_entry(line)
            self.entries += counts
            if counts or rest:
                yield number, line
        if not (rest or self.later):
            self.done()

    def rows(
        self,
        sizes: Container[int],
        expected: str,
        advice: str = "fix the row",
        *,
        header: Sequence[Container[str]] = (),
        alike: bool = False,
        lines: Iterable[tuple[int, str]] | None = None,
    ) -> Iterator[tuple[int, list[str]]]:
        """Yield the numbers and cells of the rows of a table. A first row that names its columns is left out.

        Args:
            sizes, expected, advice: as in `cells_of`.
            header: as in `is_header`.
            alike: whether all rows must have as many cells as the first.
            lines: the remaining lines, if the first one was read elsewhere.

        Raises:
            DataError: as `iter_lines`, `cells_of` and `is_header`.
        """
        is_first = True
        for number, line in self.lines() if lines is None else lines:
            cells = cells_of(line, self.file, number, sizes, expected, advice)
            if alike and is_first:
                least = most = len(cells)
                while least - 1 in sizes and not cells[least - 1]:
                    least -= 1
                sizes = range(least, most + 1)
                expected = f"{most} columns, as in the rows before, separated by tabs"
            if is_first:
                is_first = False
                if is_header(cells, header, place(self.file, number)):
                    self.left_out[AS_HEADER] += 1
                    continue
            if '"' in line:
                quoted = [cell for cell in cells if len(cell) > 2 and cell[0] == cell[-1] == '"']
                self.quoted += len(quoted)
                if quoted and not self.first_quoted:
                    self.first_quoted = f"{quoted[0]} (line {number})"
            yield number, cells

    def done(self, level: int = logging.INFO) -> None:
        """Log the count, unless there are no entries, which is an error of the reader."""
        if self.entries:
            logger.log(level, "%s", self)
        if self.quoted:
            logger.warning(
                f"{self.file}: {self.quoted:,} cells in quotes, such as {self.first_quoted}: the quotes are read as "
                "part of the cell; if a spreadsheet added them, save the table without quotes"
            )

    def __str__(self) -> str:
        """`words.tsv: 1,204 of 1,210 rows read; left out: 4 without a lemma, 2 repeated`."""
        text = f"{self.file}: {self.read:,} of {self.entries:,} {self.what} read"
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.left_out.items()) if count)
        return f"{text}; left out: {reasons}" if reasons else text


def iter_sentences(path: Path | str) -> Iterator[tuple[int, str]]:
    """Yield numbers and lines of a text, as `iter_lines`. Raises DataError also for a treebank."""
    yield from text_only(iter_all(path), path)


def iter_all(path: Path | str) -> Iterator[tuple[int, str]]:
    """Yield numbers and lines of a file, as `iter_lines`. All lines are read, so the count is no note."""
    count = ReadCount(path, "lines", later=True)
    for number, line in count.lines(lambda _: True):
        yield number, line
        count.read += 1
    count.done(logging.DEBUG)
