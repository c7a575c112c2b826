"""Terms on disk: a file may have a million of them, of which a sentence needs a few. N entries.

The entries are lines of a temporary file that has no name and ends with the process; processes that are forked share
it, since each reads at places of its own (pread). In memory are where they begin, and hashes.
"""

from __future__ import annotations

import json
import os
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np


@dataclass(frozen=True)
class TermEntry:
    """What one row asks for."""

    source: tuple[str, ...]  # tokens; none where the term may stand anywhere
    target: str
    upos: str | None = None
    forms: tuple[str, ...] = ()  # as the file gives them
    where: str = ""  # file and line
    kind_place: str = "in the third column"  # where a part of speech belongs


class StoredTerms(Sequence[TermEntry]):
    """All different source phrases of a file, each with its first entry, in the order of the file."""

    def __init__(self, entries: Iterable[TermEntry], repeated: Callable[[TermEntry, TermEntry], None]) -> None:
        """
        Args:
            repeated: is called with the first entry of a phrase and each later one, after all were read.
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
        """The rows whose source phrase stood before. sources: (N,) hashes."""
        _, which, counts = np.unique(sources, return_inverse=True, return_counts=True)
        later, first = [], dict[tuple[str, ...], TermEntry]()
        for row in np.flatnonzero(counts[which] > 1).tolist():
            entry = self[row]
            if first.setdefault(entry.source, entry) is not entry:
                repeated(first[entry.source], entry)
                later.append(row)
        return later

    @overload
    def __getitem__(self, row: int) -> TermEntry: ...

    @overload
    def __getitem__(self, row: slice) -> list[TermEntry]: ...

    def __getitem__(self, row: int | slice) -> TermEntry | list[TermEntry]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        begin, end = self._places[self._rows[row] : self._rows[row] + 2].tolist()
        source, target, upos, forms, where, kind_place = json.loads(os.pread(self._file.fileno(), end - begin, begin))
        return TermEntry(tuple(source), target, upos, tuple(forms), where, kind_place)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[TermEntry]:
        return map(self.__getitem__, range(len(self)))


class EntriesByKey:
    """Entries by keys, which are found again: of each entry only its number and the hashes of its keys are kept."""

    def __init__(self) -> None:
        self._hashes, self._rows = array("q"), array("q")
        self._sorted: tuple[np.ndarray, np.ndarray] | None = None

    def add(self, row: int, keys: Iterable[str]) -> None:
        for key in keys:
            self._hashes.append(hash(key))
            self._rows.append(row)

    def rows(self, key: str) -> list[int]:
        """In ascending order; perhaps some that have another key."""
        if self._sorted is None:
            hashes = np.array(self._hashes, dtype=np.int64)
            order = np.argsort(hashes, kind="stable")
            self._sorted = hashes[order], np.array(self._rows, dtype=np.int64)[order]
            self._hashes, self._rows = array("q"), array("q")
        hashes, rows = self._sorted
        begin, end = (np.searchsorted(hashes, hash(key), side) for side in ("left", "right"))
        of_key: list[int] = rows[begin:end].tolist()
        return of_key
