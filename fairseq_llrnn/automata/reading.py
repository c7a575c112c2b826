"""The entry point: an automaton from a file in any of the formats.

    *.regex       a regular expression over words (regular.py)
    *.grammar     a context-free grammar, bounded in depth and length (grammar.py)
    *.words       words, one a line, spelled in the dictionary's symbols: characters (characters.py)
    OpenFst       a binary file of OpenFst, known by its first bytes (openfst.py; needs pynini)
    anything else text as fstprint writes it (text_format.py)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.characters import read_words
from fairseq_llrnn.automata.grammar import read_grammar
from fairseq_llrnn.automata.mass import InfiniteMassError
from fairseq_llrnn.automata.openfst import is_openfst, read_openfst
from fairseq_llrnn.automata.regular import read_regular
from fairseq_llrnn.automata.symbols import Symbols
from fairseq_llrnn.automata.text_format import read_text
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import WordList

Reader = Callable[[Path, Symbols], Automaton]
# by the end of the file's name
READERS: dict[str, Reader] = {".grammar": read_grammar, ".regex": read_regular, ".words": read_words}


@dataclass(frozen=True)
class ReadAutomaton:
    """An automaton, and what a user should know of how it was read."""

    automaton: Automaton
    notes: Counter[str]


def read_automaton(
    path: Path | str, words: WordList, unknown: str = "error", log_weights: np.ndarray | None = None
) -> ReadAutomaton:
    """The automaton of a file, over the symbols of the dictionary; deterministic, trimmed, checked.

    Args:
        unknown: what is done about symbols that the dictionary lacks: "error", or "drop" (whatever has them).
        log_weights: log b₀ (V,), the static weights that the automaton will stand on: words without any are refused.

    Raises:
        DataError: a file that is no automaton, has unknown symbols, accepts nothing, or is too large; with the place.
        OptionError: another word for `unknown`.
    """
    path = Path(path)
    symbols = Symbols(words, unknown, log_weights)
    try:
        automaton = _reader(path)(path, symbols)
        symbols.refuse_unknown()  # where the reader has not yet done so
        automaton.check(log_weights)
    except InfiniteMassError as error:
        raise DataError(f"{path}: {error.described(symbols.names)}") from None
    except ValueError as error:
        notes = f" ({symbols.notes.total()} of its symbols were unknown and dropped)" if symbols.notes else ""
        raise DataError(f"{path}: {error}{notes}; fix the file") from None
    return ReadAutomaton(automaton, symbols.notes)


def _reader(path: Path) -> Reader:
    by_suffix = READERS.get(path.suffix)
    if by_suffix is not None:
        return by_suffix
    return read_openfst if is_openfst(path) else read_text
