"""Automata from files of all formats, by the end of a file's name.

    *.regex       a regular expression over words (regular.py)
    *.grammar     a context-free grammar, bounded in depth and length (grammar.py)
    *.words       words, one per line, spelled in the dictionary's symbols: characters (word_characters.py)
    anything else text as OpenFst's fstprint writes it (text_format.py)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairseq_llrnn.automata.automaton import END, ROOT, Automaton
from fairseq_llrnn.automata.grammar import read_grammar
from fairseq_llrnn.automata.limits import InfiniteMassError
from fairseq_llrnn.automata.regular import read_regular
from fairseq_llrnn.automata.symbols import Symbols
from fairseq_llrnn.automata.text_format import read_text
from fairseq_llrnn.automata.word_characters import read_words
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.reading import is_pipe
from fairseq_llrnn.files.text_lines import opened

BINARY_OPENFST = (2125659606).to_bytes(4, "little")  # first bytes of a file
Reader = Callable[[Path, Symbols], Automaton]
# by the end of the file's name
READERS: dict[str, Reader] = {".grammar": read_grammar, ".regex": read_regular, ".words": read_words}


def check_is_text(path: Path) -> None:
    """Raise DataError for a binary file of OpenFst, and for a file that cannot be read."""
    with opened(path) as (file, _):
        if file.peek(len(BINARY_OPENFST)).startswith(BINARY_OPENFST):
            raise DataError(f"{path}: expected text, found a binary file of OpenFst; write it as text with fstprint")


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
        check_is_text(path)
        automaton = READERS.get(path.suffix, read_text)(path, symbols)
        symbols.check_known_words()  # for readers that did not
        automaton.check(log_weights)
        if not (automaton.tokens != END).any() and not (automaton.chain_end == ROOT).any():
            raise ValueError("expected strings of words, found the empty string alone")
    except DataError as error:
        if not is_pipe(path):
            raise
        advice = "other formats need a file named *.regex, *.grammar or *.words, not a pipe"
        raise DataError(f"{error} (automata as text may come through a pipe; {advice})") from None
    except InfiniteMassError as error:
        raise DataError(f"{path}: {error.described(symbols.names)}") from None
    except ValueError as error:
        notes = f" ({symbols.notes.total()} of its symbols were unknown and dropped)" if symbols.notes else ""
        raise DataError(f"{path}: {error}{notes}; fix the file") from None
    return ReadAutomaton(automaton, symbols.notes)
