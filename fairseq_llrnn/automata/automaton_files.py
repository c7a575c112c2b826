"""Automata from files of all formats. OpenFst's binary files are read here.

    *.regex       a regular expression over words (regular.py)
    *.grammar     a context-free grammar, bounded in depth and length (grammar.py)
    *.words       words, one per line, spelled in the dictionary's symbols: characters (word_characters.py)
    OpenFst       a binary file of OpenFst, recognized by its first bytes (read through pynini, extra `[automata]`)
    anything else text as fstprint writes it (text_format.py)

Symbols of a binary file are those of its own table, by name. Without a table, labels are ids of the dictionary. Label 0
reads nothing. Weights are −log in any semiring: paths with the same words are summed, and a file with all weights 0 is
a set of strings. The head of the file is checked first: OpenFst would load a shared library for an unknown kind, and
allocate memory for as many states as the file claims.
"""

from __future__ import annotations

import math
import os
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fairseq_llrnn.automata.automaton import END, ROOT, Automaton
from fairseq_llrnn.automata.grammar import read_grammar
from fairseq_llrnn.automata.limits import InfiniteMassError
from fairseq_llrnn.automata.nondeterministic import EMPTY, Paths, to_automaton
from fairseq_llrnn.automata.regular import read_regular
from fairseq_llrnn.automata.symbols import LACKED, Symbols, log_weight
from fairseq_llrnn.automata.text_format import read_text
from fairseq_llrnn.automata.word_characters import read_words
from fairseq_llrnn.errors import DataError, from_checkout
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.reading import is_pipe, open_file, path_of_content
from fairseq_llrnn.files.text_lines import ReadCount, shown

MAGIC = (2125659606).to_bytes(4, "little")
LONGEST_NAME = 64
KINDS = (b"vector", b"const")
SEMIRINGS = (b"standard", b"log", b"log64")


def is_openfst(path: Path | str) -> bool:
    """Return whether a file begins like OpenFst's, or False if it cannot be read."""
    try:
        with open_file(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_openfst(path: Path | str, symbols: Symbols) -> Automaton:
    """Read the automaton of a binary file.

    Raises:
        DataError: no pynini; a file that OpenFst cannot read; a transducer; unknown symbols, with the state.
        ValueError: as `to_automaton`.
    """
    fst = _load(path)
    labels = _Labels(fst.input_symbols(), symbols)
    paths, count = Paths(num_states=0), ReadCount(path, "arcs")
    start = fst.start()
    if start < 0:
        raise ValueError("the automaton accepts no string: it has no start")
    # states are renumbered, the start first
    number = {start: 0}
    number.update((state, i) for i, state in enumerate((s for s in fst.states() if s != start), 1))
    paths.num_states = len(number)
    for state, origin in number.items():
        where = f"{path}, state {state}"
        for arc in fst.arcs(state):
            if arc.ilabel != arc.olabel:
                reads, writes = (shown(labels.name(label) or f"label {label}") for label in (arc.ilabel, arc.olabel))
                raise DataError(
                    f"{where}: expected an acceptor, found an arc that reads {reads} and writes "
                    f"{writes}; project the transducer first (fstproject)"
                )
            symbol = labels.find(arc.ilabel, where)
            count.entries += 1
            if symbol is None:
                count.left_out[LACKED] += 1
            else:
                count.read += 1
                weight = float(arc.weight)
                paths.add(origin, symbol, number[arc.nextstate], log_weight(weight, where, f"{weight:g}"))
                paths.weighted |= weight != 0.0
        final = float(fst.final(state))
        if final != math.inf:
            paths.finals[origin] = log_weight(final, where, f"{final:g}")
            paths.weighted |= final != 0.0
    symbols.check_known_words()
    count.done()
    return to_automaton(paths, len(symbols))


def _load(path: Path | str) -> Any:
    _check_head(path)
    try:
        import pywrapfst
    except ImportError:
        raise DataError(
            f"{path}: expected pynini, which reads OpenFst's binary files, found none; "
            f"{from_checkout('automata')}, or write the file as text (fstprint)"
        ) from None
    try:
        fst = pywrapfst.Fst.read(str(path_of_content(path)))
    except (pywrapfst.FstError, ValueError) as error:
        raise DataError(f"{path}: expected a whole file of OpenFst, found: {error}; write it again") from None
    if not fst.verify():
        raise DataError(f"{path}: expected arcs between its states, found others; write it again")
    return fst


def _check_head(path: Path | str) -> None:
    try:
        with path_of_content(path).open("rb") as file:
            file.read(len(MAGIC))
            kind, semiring = _name(file), _name(file)
            # version, flags, properties, start, states, arcs
            states = struct.unpack("<iiQqqq", file.read(40))[4]
            size = os.fstat(file.fileno()).st_size
    except (OSError, struct.error) as error:
        raise DataError(f"{path}: expected a whole file of OpenFst, found: {error}; write it again") from None
    if kind not in KINDS:
        raise DataError(f"{path}: expected a vector or const automaton, found {kind!r}; use fstconvert")
    if semiring not in SEMIRINGS:
        raise DataError(f"{path}: expected standard, log or log64 weights, found {semiring!r}; use fstmap")
    if not 0 <= states <= size:
        raise DataError(f"{path}: expected a whole file of OpenFst, found {states:,} states in {size:,} bytes")


def _name(file: BinaryIO) -> bytes:
    (length,) = struct.unpack("<i", file.read(4))
    if not 0 <= length <= LONGEST_NAME:
        raise struct.error(f"a name of {length} bytes")
    return file.read(length)


class _Labels:
    """Map a file's labels to symbols of the dictionary, each once."""

    def __init__(self, table: Any, symbols: Symbols) -> None:
        self.table, self.symbols = table, symbols
        self.symbol_of: dict[int, int | None] = {0: EMPTY}

    def name(self, label: int) -> str | None:
        if self.table is None:
            return self.symbols.names[label] if 0 <= label < len(self.symbols) else None
        return str(self.table.find(label)) if self.table.member(label) else None

    def find(self, label: int, where: str) -> int | None:
        if label not in self.symbol_of:
            name = self.name(label)
            if name is None:
                raise DataError(
                    f"{where}: label {label} is in no table of symbols; give the file one (fstsymbols), or labels from "
                    f"0 to {len(self.symbols) - 1}"
                )
            self.symbol_of[label] = self.symbols.find(name, where)
        return self.symbol_of[label]


Reader = Callable[[Path, Symbols], Automaton]
# by the end of the file's name
READERS: dict[str, Reader] = {".grammar": read_grammar, ".regex": read_regular, ".words": read_words}


@dataclass(frozen=True)
class ReadAutomaton:
    """An automaton, and notes about its file."""

    automaton: Automaton
    notes: Counter[str]


def read_automaton(
    path: Path | str, words: WordList, unknown: str = "error", log_weights: np.ndarray | None = None
) -> ReadAutomaton:
    """Read the automaton of a file over the symbols of the dictionary; deterministic, trimmed, checked.

    Args:
        unknown: "error", or "drop": leave out whatever needs a symbol outside the dictionary.
        log_weights: log b₀ (V,), the static weights below the automaton: words without weight are errors.

    Raises:
        DataError: with the place: a file that is no automaton, has unknown symbols, accepts nothing, or is too large.
        OptionError: another value of `unknown`.
    """
    path = Path(path)
    symbols = Symbols(words, unknown, log_weights)
    try:
        read = READERS.get(path.suffix) or (read_openfst if is_openfst(path) else read_text)
        automaton = read(path, symbols)
        symbols.check_known_words()  # for readers that did not
        automaton.check(log_weights)
        if not (automaton.tokens != END).any() and not (automaton.chain_end == ROOT).any():
            raise ValueError("expected strings of words, found the empty string alone")
    except DataError as error:
        if not is_pipe(path):
            raise
        advice = "other formats need a file named *.regex, *.grammar or *.words, not a pipe"
        raise DataError(f"{error} (automata of OpenFst may come through a pipe; {advice})") from None
    except InfiniteMassError as error:
        raise DataError(f"{path}: {error.described(symbols.names)}") from None
    except ValueError as error:
        notes = f" ({symbols.notes.total()} of its symbols were unknown and dropped)" if symbols.notes else ""
        raise DataError(f"{path}: {error}{notes}; fix the file") from None
    return ReadAutomaton(automaton, symbols.notes)
