"""Text files line by line, plain or packed by gzip, bzip2 or xz, in constant memory, with errors that name the place.

Unicode has several forms of one text (UAX #15): é is one character in NFC, and an e with a mark behind it in NFD.
Both look alike, and are different words to every dictionary. `--normalize FORM` reads words in the form that the text
has; without it, words that the vocabulary has in another form only are worth a note (`in_other_form`).

`ReadCount` says how many entries of a file a reader read, and how many it left out, for which reasons. Each reader
fills one count for each file, in three places that are independent of each other: `entries` where they come in,
`read` where they are used, and `left_out` where they are not. So `entries == read + left_out` holds only where
nothing gets lost; tests/files/test_read_counts.py asks it of every reader. A count that is done is logged: `llrnn`
prints it as a note, fairseq's commands in their log. Those of texts, all of whose lines are read, are on level DEBUG.
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
    """The text in a form of FORMS; None: as it is."""
    if form is None or text.isascii():
        return text
    return unicodedata.normalize("NFC" if form == "nfc" else "NFD", text)


def form_of(words: Iterable[str]) -> str | None:
    """The form that most of the words have that look the same in both; None where there are none."""
    told = [word for word in words if in_form(word, "nfc") != in_form(word, "nfd")]
    composed = sum(word == in_form(word, "nfc") for word in told)
    return None if not told else "nfc" if 2 * composed >= len(told) else "nfd"


def in_other_form(words: Iterable[str], vocabulary: Collection[str]) -> dict[str, str]:
    """Words that the vocabulary lacks -> the word of it that differs in its Unicode form only."""
    by_form = {in_form(word, "nfc"): word for word in vocabulary if not word.isascii()}
    candidates = ((word, by_form.get(in_form(word, "nfc"))) for word in words if by_form and not word.isascii())
    return {word: other for word, other in candidates if other is not None and word not in vocabulary}


def advice_on_form(word: str, normalize: str | None, option: str) -> str:
    """Advice that makes a word of the text equal to one in a file. normalize: the value of `option`, `--normalize `."""
    text_form = next((form for form in FORMS if word == in_form(word, form)), None)
    if normalize is not None or text_form is None:
        wanted = (normalize or FORMS[0]).upper()
        return f"the text is not in {wanted} throughout; bring it into that form (`uconv -x any-{wanted.lower()}`)"
    return f"the text has them in {text_form.upper()}; say {option}{text_form}"


def form_hint(word: str, vocabulary: Collection[str]) -> str:
    """What a message about an unknown word adds."""
    return " (but in another Unicode form: NFC and NFD look alike)" if in_other_form([word], vocabulary) else ""


def other_forms(text: str, lacking: Iterable[str], symbols: Collection[str]) -> str | None:
    """Return which words of a text, or of n-grams, a dictionary lacks because of their form; None if there are none."""
    otherwise = in_other_form(lacking, frozenset(symbols))
    if not otherwise:
        return None
    word, other = min(otherwise.items())
    form = (form_of([other]) or FORMS[0]).upper()
    return (
        f"{text}: {len(otherwise):,} words that the dictionary has in another Unicode form only, such as {word!r}, in "
        f"{form}: bring the file into that form (`uconv -x any-{form.lower()}`)"
    )


def warn_of_forms(text: str, lacking: Iterable[str], symbols: Collection[str]) -> None:
    """Log a warning of such words."""
    if (reason := other_forms(text, lacking, symbols)) is not None:
        logger.warning(reason)


# A row of a treebank or a lexicon has some hundred bytes. Something far longer is another kind of file, and
# reading it as a "line" could fill the memory.
MAX_LINE_BYTES = 1 << 20
BYTE_ORDER_MARK = "\ufeff"
FIRST_WORD = re.compile(r"[^\W_]+")
AS_HEADER = "as header"
# What shows nothing by itself: fillers of Hangul, joiners, vowels of Khmer, variation selectors, a blank of Braille.
FILLERS = "\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u2800" + "".join(map(chr, range(0xFE00, 0xFE10)))


def place(path: Path | str, line: int) -> str:
    """How errors name a line (counted from 1)."""
    return f"{path}, line {line}"


def shown(text: str) -> str:
    """How errors quote a text, which may be as long as a line."""
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


def clean_cells(line: str) -> list[str]:
    """Return the cells between the tabs of a line, without blanks (U+00A0 too) at their ends."""
    return [cell.strip() for cell in line.split("\t")]


def cells_of(
    line: str, path: Path | str, number: int, sizes: Container[int], expected: str, advice: str = "fix the row"
) -> list[str]:
    """Return the clean cells of a line. Empty cells at its end are dropped if none of `sizes` has room for them.

    Args:
        path, number: of the line. expected: what the cells are, for the message.

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


def is_header(cells: Sequence[str], names: Sequence[Container[str]], where: str) -> bool:
    """Return whether a row names its columns: the first word of each of the first cells is a name of that column.

    Args:
        names: what each of the first columns may be called, in lower case.

    Raises:
        DataError: the row names these columns in another order. where: file and line.
    """
    words = [word[0] for cell in cells if (word := FIRST_WORD.search(cell.casefold()))][: len(names)]
    columns = [
        column if word in names[column] else next((other for other, some in enumerate(names) if word in some), -1)
        for column, word in enumerate(words)
    ]
    if not names or sorted(columns) != list(range(len(names))) or len(set(words)) < len(words):
        return False
    if columns != sorted(columns):
        raise DataError(
            f"{where}: expected the columns in another order, found {shown(', '.join(cells))}; write column "
            f"{columns.index(0) + 1} first"
        )
    return True


def is_blank(word: str) -> bool:
    """Whether a word shows nothing: an empty one, blanks alone, or characters without width."""
    return all(c.isspace() or c in FILLERS or unicodedata.category(c) in ("Cc", "Cf") for c in word)


JOINERS = "\u200c\u200d"  # within words, as of Persian and Hindi


def is_letter(character: str) -> bool:
    """Whether it is a letter, or a mark or joiner that belongs to one (NFD, Hindi, Persian)."""
    return character.isalpha() or character in JOINERS or unicodedata.category(character)[0] == "M"


def check_not_blank(word: str, where: str, what: str) -> None:
    """Raise DataError for a word that shows nothing.

    Args:
        where: its file and line. what: how the format calls it.
    """
    if not is_blank(word):
        return
    problem = f"blank ({' '.join(f'U+{ord(c):04X}' for c in word[:5])})" if word else "empty"
    raise DataError(f"{where}: {what} is {problem}; expected a word: fill it, or remove the row")


def warn_of_blanks(
    path: Path | str,
    what: str,
    lines: Sequence[int],
    problem: str = "have no visible character",
    advice: str = "clean the text",
) -> None:
    """Warn of words of a running text, or made of one, that show nothing, or have another `problem` with blanks.

    Args:
        what: they are. lines: where they are.
    """
    if lines:
        some = ", ".join(map(str, lines[:5])) + (", …" if len(lines) > 5 else "")
        logger.warning(f"{path}: {len(lines):,} {what} {problem} (lines {some}); {advice}")


def iter_lines(path: Path | str) -> Iterator[tuple[int, str]]:
    """Line numbers (from 1) and lines without their ends, of a UTF-8 file.

    A packed file (PACKED) is known by its first bytes, whatever it is called; a pipe will do too.
    Raises DataError for a file that cannot be read, is packed in another way or not whole, or has a line that is not
    UTF-8 or longer than MAX_LINE_BYTES.
    """
    with opened(path) as (source, _):
        yield from numbered(source, path)


def numbered(source: BinaryIO | Unpacked, path: Path | str, *encoding: str) -> Iterator[tuple[int, str]]:
    """What `iter_lines` gives, of something that is open. path: how errors name it; encoding: as of `decoded`."""
    number = 0
    while raw := source.readline(MAX_LINE_BYTES + 1):
        number += 1
        yield number, decoded(raw, path, number, *encoding)


def decoded(
    raw: bytes, path: Path | str, number: int, encoding: str = "UTF-8", advice: str = "convert the text to UTF-8"
) -> str:
    """A line without its end. Raises DataError for one that is not in that encoding or longer than MAX_LINE_BYTES."""
    if len(raw) > MAX_LINE_BYTES:
        raise DataError(
            f"{place(path, number)}: the line has more than {MAX_LINE_BYTES:,} bytes; expected one "
            "short row a line. Is this the right file, and are its line ends those of a text file?"
        )
    if number == 1:
        raw = raw.removeprefix(codecs.BOM_UTF8)
        if encoding == "UTF-8" and (wide := _is_utf16(raw)):
            raise DataError(
                f"{path}: expected UTF-8, found bytes 0x00 as {wide} has them; convert the text "
                f"(`iconv -f {wide} -t UTF-8`)"
            )
    try:
        line = raw.decode(encoding)
    except UnicodeDecodeError as error:
        if number == 1 and (packing := packing_of(raw)):  # not unpacked: what is typed, or a file within another
            raise DataError(
                f"{path}: expected a text, found what looks packed by {packing[0]}; unpack it first (`{packing[1]}`)"
            ) from error
        raise DataError(
            f"{place(path, number)}, byte {error.start + 1}: expected {encoding}, found the byte "
            f"0x{raw[error.start]:02x} ({error.reason}); {advice}"
        ) from error
    return line.rstrip("\r\n")


def _is_utf16(raw: bytes) -> str:
    """The form of UTF-16 that a line without a byte order mark looks like: at one parity, bytes are 0; empty: none."""
    even, odd = raw[::2].count(0), raw[1::2].count(0)
    return "" if even + odd < 3 or (even and odd) else "UTF-16BE" if even else "UTF-16LE"


def sentence_of(line: str) -> str:
    """Of a line of a source, what is translated: without what stands behind a tab, which its translation must have."""
    return line.partition("\t")[0]


def check_as_long(source: object, target: object, lines: int, target_lines: int) -> None:
    """Raise DataError unless the text `target` has as many lines, `target_lines`, as the one that it translates."""
    if target_lines != lines:
        raise DataError(
            f"{target}: expected as many lines as in {source}, {lines:,}, found {target_lines:,}; give a text and its "
            "translation, line by line"
        )


def _is_filled(line: str) -> bool:
    return bool(line.strip(" \t"))  # other blanks may be a word that shows nothing


@dataclass
class ReadCount:
    """Of one file, or of what else lists entries."""

    file: Path | str
    what: str = "rows"
    form: str | None = None  # the Unicode form that its lines are read in; None: as they are
    entries: int = 0
    read: int = 0
    later: bool = False  # whether it is done only when its reader says so, and not behind the last line
    left_out: Counter[str] = field(default_factory=Counter)  # reason -> entries
    quoted: int = 0  # cells in quotes
    first_quoted: str = ""

    def lines(self, is_entry: Callable[[str], bool] = _is_filled, rest: bool = False) -> Iterator[tuple[int, str]]:
        """Numbers and lines of the entries.

        Args:
            rest: give the other lines, too; then the reader says when it is done.

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
        """Yield the numbers and cells of the rows of a table; a first row that names its columns is left out.

        Args:
            sizes, expected, advice: as of `cells_of`. header: as of `is_header`. alike: whether all rows have as many
                cells as the first. lines: those that are left, if the first one was read elsewhere.

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
        """Say it, unless there was nothing, which readers refuse."""
        if self.entries:
            logger.log(level, "%s", self)
        if self.quoted:
            logger.warning(
                f"{self.file}: {self.quoted:,} cells in quotes, such as {self.first_quoted}: the quotes are read as "
                "part of the cell; if a spreadsheet put them there, save the table without"
            )

    def __str__(self) -> str:
        """`words.tsv: 1,204 of 1,210 rows read; left out: 4 without a lemma, 2 repeated`."""
        text = f"{self.file}: {self.read:,} of {self.entries:,} {self.what} read"
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.left_out.items()) if count)
        return f"{text}; left out: {reasons}" if reasons else text


def iter_sentences(path: Path | str) -> Iterator[tuple[int, str]]:
    """What `iter_lines` gives, of a text or dictionary all of whose lines are read: nothing that is worth a note."""
    count = ReadCount(path, "lines", later=True)
    for number, line in count.lines(lambda _: True):
        yield number, line
        count.read += 1
    count.done(logging.DEBUG)
