"""The dictionary for readers of automata: symbols by name, and unknown symbols.

Sizes: V symbols.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import EOS, UNK, WordList
from fairseq_llrnn.files.numbers import LARGEST_LOG
from fairseq_llrnn.files.text_lines import form_hint, shown

EMPTY_NAMES = ("<eps>", "<epsilon>", "@0@", "@_EPSILON_SYMBOL_@")  # an arc that reads nothing (OpenFst, foma, HFST)
UNKNOWN = ("error", "drop")  # treatments of symbols outside the dictionary
MOST_NAMED = 4  # unknown symbols in an error
LACKED = "with symbols that the dictionary lacks"  # entries of a file that are left out
DROPPED = "arcs on symbols that the dictionary lacks, dropped"


def log_weight(number: float, where: str, text: str) -> float:
    """Return the log weight of a −log weight in a file, at the place `where`. text: the number in messages.

    Raises:
        DataError: a number that is not finite, or too large.
    """
    if not math.isfinite(number):
        raise DataError(f"{where}: expected a finite −log weight, found {text}; remove entries without weight")
    if abs(number) > LARGEST_LOG:
        raise DataError(
            f"{where}: expected a −log weight between −{LARGEST_LOG:,.0f} and {LARGEST_LOG:,.0f}, found {text}; fix it"
        )
    return -number


class Symbols:
    """Ids of the symbols that may be on an arc: everything predictable except </s>."""

    def __init__(self, words: WordList, unknown: str = "error", log_weights: np.ndarray | None = None) -> None:
        """Build the index of a dictionary.

        Args:
            unknown: "error", or "drop": whatever needs symbols outside the dictionary is left out, and counted in
                `notes`.
            log_weights: log b₀ (V,), the static weights below the automaton; a word without weight can be on no arc.

        Raises:
            OptionError: another value of `unknown`.
        """
        if unknown not in UNKNOWN:
            raise OptionError(f"unknown symbols: expected one of {', '.join(UNKNOWN)}, found {unknown!r}")
        self.names = words.symbols
        self.notes: Counter[str] = Counter()
        self.drops = unknown == "drop"
        self.unknown: dict[str, str] = {}  # name -> its first place; empty if they are dropped
        self.index = {name: i for i, name in enumerate(words.symbols)}
        self.possible = words.predictable
        self.weightless = np.zeros(len(words), dtype=bool)
        if log_weights is not None:
            self.weightless = self.possible & ~np.isfinite(log_weights)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def any_word(self) -> np.ndarray:
        """The ids of `any word`, all except </s> and <unk>: (·,)."""
        words = self.possible & ~self.weightless
        words[[self.index[EOS], self.index[UNK]]] = False
        return np.flatnonzero(words)

    def find(self, name: str, where: str) -> int | None:
        """Return the id of a symbol, or None for an unknown one, which is dropped, or stored for `check_known_words`.

        Raises:
            DataError: a symbol that can be on no arc, with the place `where`.
        """
        symbol = self.index.get(name)
        if symbol is None:
            if self.drops:
                self.notes[DROPPED] += 1
            else:
                self.unknown.setdefault(name, where)
            return None
        if name == EOS:
            raise DataError(f"{where}: arcs cannot have {EOS}, which final states add; make the state final")
        if not self.possible[symbol]:
            raise DataError(f"{where}: symbol {shown(name)} is never predicted; remove it")
        if self.weightless[symbol]:
            raise DataError(
                f"{where}: symbol {shown(name)} has no weight in the static background below the automaton; choose a "
                "smoothing that gives it some, or remove the symbol"
            )
        return symbol

    def check_known_words(self) -> None:
        """Report unknown symbols after a file has been read.

        Raises:
            DataError: symbols outside the dictionary, unless they are dropped: the place of the first, some names, and
                the number.
        """
        if not self.unknown:
            return
        (first, where), *others = self.unknown.items()
        named = ", ".join(shown(name) for name, _ in others[: MOST_NAMED - 1])
        more = ", …" if len(others) >= MOST_NAMED else ""
        verb = "is" if len(others) == 1 else "are"
        nor = f", nor {verb} {named}{more} ({len(self.unknown):,} in all)" if others else ""
        it, hint = "them" if others else "it", form_hint(first, self.index)
        raise DataError(
            f"{where}: symbol {shown(first)} is not in the dictionary{hint}{nor}; write {it} as "
            f"the text has {it}, remove {it}, or use automaton(FILE, unknown_symbols=drop), which drops what needs {it}"
        )
