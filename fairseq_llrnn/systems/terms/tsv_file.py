"""Read term files: source phrases and their required target terms.

Sizes: N entries.

    source phrase, target lemma (or phrase), part of speech (optional), forms of the target (optional, separated by `|`)

The columns are separated by tabs, and an empty cell counts as absent. Phrases are tokens of the text, separated by
blanks. tbx_file.py reads TBX files.

A file may have a million terms, and a sentence needs few of them. `StoredTerms` therefore keeps the entries as lines of
an unnamed temporary file, which exists until the process ends. Forked processes share the file; each reads at its own
offsets (pread). Memory holds only offsets and hashes.

Two misplacements among the words raise an error: several words with commas (`pes,psa`), and a part of speech (`dog |
NOUN => pes`, `dog => pes|Noun`, `dog<TAB>pes (noun)`). Other text after a bar or slash or in brackets may be part of
the term: `spare|part`, `km / h`, `noun/verb`, and abbreviations such as `USB / AUX`, `adenosine diphosphate (ADP)` and
`Datenverarbeitung (ADV)`.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import unicodedata
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.rules import SOURCE_NAMES, TARGET_NAMES, is_token
from fairseq_llrnn.files.text_lines import ReadCount, check_not_blank, place, shown
from fairseq_llrnn.lexicon.features import UPOS
from fairseq_llrnn.lexicon.languages.names import CODES
from fairseq_llrnn.systems.terms.groups import MOST_FORMS


@dataclass(frozen=True)
class TermEntry:
    """A row of a term file."""

    source: tuple[str, ...]  # tokens; empty if the term is not tied to a phrase
    target: str
    upos: str | None = None
    forms: tuple[str, ...] = ()  # from the fourth column
    where: str = ""  # file and line
    kind_place: str = "in the third column"  # the place of a part of speech, for errors


class StoredTerms:
    """The first entry of each source phrase of a file, in file order."""

    def __init__(self, entries: Iterable[TermEntry], repeated: Callable[[TermEntry, TermEntry], None]) -> None:
        """
        Args:
            repeated: called after reading, with the first and each later entry of a phrase.
        """
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  it ends with this object
        ends, sources = array("Q", [0]), array("q")
        for entry in entries:
            row = entry.source, entry.target, entry.upos, entry.forms, entry.where, entry.kind_place
            ends.append(ends[-1] + self._file.write(json.dumps(row).encode()))
            sources.append(hash(entry.source))
        self._file.flush()
        self._places = np.array(ends, dtype=np.int64)
        self._rows = np.arange(len(sources))
        self._rows = np.setdiff1d(self._rows, self._later(np.array(sources, dtype=np.int64), repeated))

    def _later(self, sources: np.ndarray, repeated: Callable[[TermEntry, TermEntry], None]) -> list[int]:
        """Return the rows whose source phrase occurred before. sources: (N,) hashes."""
        _, source_number, counts = np.unique(sources, return_inverse=True, return_counts=True)
        later, first = [], dict[tuple[str, ...], TermEntry]()
        for row in np.flatnonzero(counts[source_number] > 1).tolist():
            entry = self[row]
            if first.setdefault(entry.source, entry) is not entry:
                repeated(first[entry.source], entry)
                later.append(row)
        return later

    def __getitem__(self, row: int) -> TermEntry:
        begin, end = self._places[self._rows[row] : self._rows[row] + 2].tolist()
        source, target, upos, forms, where, kind_place = json.loads(os.pread(self._file.fileno(), end - begin, begin))
        return TermEntry(tuple(source), target, upos, tuple(forms), where, kind_place)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[TermEntry]:
        return map(self.__getitem__, range(len(self)))


Entries = StoredTerms | Sequence[TermEntry]


class EntriesByKey:
    """Index from keys to row numbers, which stores hashes of the keys only."""

    def __init__(self, keys_of_rows: Iterable[Iterable[str]]) -> None:
        hashes, rows = array("q"), array("q")
        for row, keys in enumerate(keys_of_rows):
            for key in keys:
                hashes.append(hash(key))
                rows.append(row)
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._rows = np.array(hashes, dtype=np.int64)[order], np.array(rows, dtype=np.int64)[order]

    def rows(self, key: str) -> list[int]:
        """Return row numbers in ascending order, because of hash collisions perhaps also of other keys."""
        begin, end = (np.searchsorted(self._hashes, hash(key), side) for side in ("left", "right"))
        of_key: list[int] = self._rows[begin:end].tolist()
        return of_key


_TAG = "|".join(kind for kind in UPOS if kind != "X")
_NAME = r"(?!ADV\b)(?i:noun|propn|verb|adj(?:ective)?|adv(?:erb)?)"
_MISPLACED = re.compile(
    rf"(?:\| ?(?:{_TAG}|Noun|Propn|Verb|Adj|Adv)|/(?:NOUN|PROPN|VERB|ADJ)|(?<!\S)[|/] {_NAME}|\( ?{_NAME} ?\))\Z"
)


_LISTED = re.compile(r"[^\W\d_][,;]([^\W\d_]|\Z)")  # not in `1,2-dioxan`


def check_no_lists(entry: TermEntry, source: Container[str], target: Container[str]) -> None:
    """Raise DataError for several words joined by commas, unless the vocabulary has them as one word.

    Args:
        source, target: the words of both languages.
    """
    of_target = [word for phrase in (entry.target, *entry.forms) for word in phrase.split()]
    for side, words, vocabulary in (("source", entry.source, source), ("target", of_target, target)):
        wrong = next((word for word in words if _LISTED.search(word) and word not in vocabulary), None)
        if wrong is not None:
            raise DataError(
                f"{entry.where}: expected one {side}, tokenised as in the text, found {wrong!r}; write a row for each "
                "source, the forms of a target in the fourth column of a TSV, separated by |, and a comma that belongs "
                "to the phrase as a separate token"
            )


def check_kind_places(entry: TermEntry, source: Container[str], target: Container[str]) -> None:
    """Raise DataError for a phrase that ends in a part of speech, unless the vocabulary has its last words.

    Args:
        source, target: as in `check_no_lists`.
    """
    for side, words, vocabulary in (("source", entry.source, source), ("target", entry.target.split(), target)):
        phrase = " ".join(words)
        if (match := _MISPLACED.search(phrase)) is None:
            continue
        if not all(word in vocabulary for word in words[phrase.count(" ", 0, match.start()) :]):
            raise DataError(
                f"{entry.where}: the {side} {phrase!r} ends in a part of speech; write the part of speech "
                f"{entry.kind_place}"
            )


COLUMNS = "source phrase, target lemma, part of speech (optional), forms separated by | (optional)"
MOST_WORDS = 16  # of a phrase
REPEATED = "repeated"


def read_terms(path: Path | str, languages: Sequence[str] = ()) -> StoredTerms:
    """Read the rows of a TSV. Repeated rows and a header in the first row are skipped.

    Args:
        languages: of source and target, as `en` or `pt_BR`; the header may use them as column names.

    Raises:
        DataError: with file and line, for a wrong number of columns, an empty side, a phrase with too many words, a
            special symbol, a phrase with two different targets, or a file without rows.
    """
    count = ReadCount(path, later=True)

    def repeated(first: TermEntry, entry: TermEntry) -> None:
        check_same_term(first, entry)
        count.read -= 1
        count.left_out[REPEATED] += 1

    terms = StoredTerms(_entries(count, languages or ("", "")), repeated)
    if not terms:
        raise DataError(f"{path}: expected rows of {COLUMNS}, found none; is it the right file?")
    count.done()
    return terms


def _entries(count: ReadCount, languages: Sequence[str]) -> Iterator[TermEntry]:
    """Yield the checked rows."""
    codes = [language.replace("-", "_").partition("_")[0].lower() for language in languages]
    header = [
        {*names, code, *(name for name in CODES if CODES[name] == CODES.get(code))}
        for names, code in zip((SOURCE_NAMES, TARGET_NAMES), codes, strict=True)
    ]
    for number, cells in count.rows({2, 3, 4}, f"2 to 4 columns ({COLUMNS})", header=header):
        where = place(count.file, number)
        source, target, upos, forms = [*cells, "", ""][:4]
        entry = TermEntry(
            tuple(source.split()), " ".join(target.split()), upos.upper() or None,
            tuple(" ".join(form.split()) for form in forms.split("|") if form.strip()), where,
        )  # fmt: skip
        check_not_blank(" ".join(entry.source), where, "the source side")
        yield check_entry(entry)
        count.read += 1


def check_same_term(other: TermEntry, entry: TermEntry) -> None:
    """Raise DataError for two entries of the same phrase with different targets, which cannot both be required."""
    kinds = {entry_of_pair.upos for entry_of_pair in (other, entry)} - {None}
    if (other.target, other.forms) != (entry.target, entry.forms) or len(kinds) > 1:
        raise DataError(
            f"{entry.where}: {' '.join(entry.source)!r} has the target {_described(entry)} here and "
            f"{_described(other)} in {other.where}; a phrase can have one target only: remove one, or give both as "
            "forms of one row"
        )


def _described(entry: TermEntry) -> str:
    forms = f" ({', '.join(entry.forms)})" if entry.forms else ""
    return f"{entry.target!r}{forms}" + (f" as {entry.upos}" if entry.upos else "")


def check_entry(entry: TermEntry) -> TermEntry:
    """Return the entry. Raise DataError for an empty target, special symbols or phrases with too many words."""
    check_not_blank(entry.target, entry.where, "the target side")
    if entry.upos is not None and entry.upos not in UPOS:
        raise DataError(
            f"{entry.where}: expected a part of speech, one of {', '.join(UPOS)}, found {shown(entry.upos)}; fix it, "
            "or leave it out"
        )
    if len(entry.forms) > MOST_FORMS:
        raise DataError(
            f"{entry.where}: expected at most {MOST_FORMS} forms, found {len(entry.forms)}; remove the least useful "
            "ones"
        )
    for phrase in (entry.source, *(tuple(side.split()) for side in (entry.target, *entry.forms))):
        if len(phrase) > MOST_WORDS:
            raise DataError(
                f"{entry.where}: expected a phrase of at most {MOST_WORDS} words, found {len(phrase)}: "
                f"{shown(' '.join(phrase))}; shorten it: a term is not a sentence"
            )
        for word in phrase:
            if not is_token(word):
                raise DataError(f"{entry.where}: {word!r} is a special symbol, not a word; fix or remove the row")
            check_not_blank(word, entry.where, "a word")
        text = "".join(phrase)
        if not text.isprintable() and any(unicodedata.category(letter) == "Cc" for letter in text):
            raise DataError(
                f"{entry.where}: expected printable characters, found a control character in {' '.join(phrase)!r}; "
                "remove it"
            )
    return entry
