"""Texts in characters with words from a list: automata over a dictionary of characters.

Source: Goyal, Dymetman & Gaussier 2016, "Natural Language Generation through Character-based RNNs with Finite-state
Prior Knowledge": a network that generates characters produces only words of a list, and words of its input.

    %separator ▁ , .        the symbols between words (any number of them); default: ▁ or _
    # …                     a comment, if # is no symbol of the dictionary
    chat                    a word per line: each of its characters is a symbol

A text has separators between words and, optionally, at the end. A separator is in no word. The words are one minimal
automaton, so that endings are shared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.nondeterministic import Paths, untrimmed
from fairseq_llrnn.automata.shared_nodes import SharedNodes
from fairseq_llrnn.automata.symbols import LACKED, Symbols
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import ReadCount, place, shown

USUAL_SEPARATORS = ("▁", "_")
WORDS_DROPPED = "words with a character that the dictionary lacks, dropped"
REPEATED = "repeated"
LONGEST_WORD = 200  # characters; longer lines are no words
START, BETWEEN = 0, 1  # the states before the first word, and after a separator

Spelling = tuple[int, ...]  # a word's characters as symbols


def read_words(path: Path | str, symbols: Symbols) -> Automaton:
    """Read texts of the words in a file (module docstring). START and BETWEEN are states 0 and 1.

    Raises:
        DataError: with file and line: unknown characters or separators (unless unknown symbols are dropped, with their
            words), a word that contains a separator or is too long, or no word.
    """
    separators: dict[int, str] = {}
    spelled: dict[Spelling, str] = {}  # word -> its place in the file
    count = ReadCount(path, "lines")
    for number, line in count.lines(lambda line: line.strip() != "" and not _is_comment(line, symbols)):
        text, where = line.strip(), place(path, number)
        if text.startswith("%separator "):
            for name in text.split()[1:]:
                symbol = symbols.find(name, where)
                if symbol is not None:
                    separators[symbol] = name
            count.read += 1
            continue
        word = spelling(text, symbols, where)
        if word is None:
            count.left_out[LACKED] += 1
        elif word in spelled:
            count.left_out[REPEATED] += 1
        else:
            spelled[word] = f"{where}: the word {shown(text)}"
            count.read += 1
    symbols.check_known_words()
    if not separators:
        separators = {symbols.index[name]: name for name in USUAL_SEPARATORS if name in symbols.index}
    if not separators:
        raise DataError(
            f"{path}: expected a symbol between words ({' or '.join(USUAL_SEPARATORS)}), found none in the dictionary; "
            "name it in a line `%separator …`"
        )
    if not spelled:
        raise DataError(f"{path}: expected words, one a line, found none; is it the right file?")
    for word, where in spelled.items():
        inside = [separators[symbol] for symbol in word if symbol in separators]
        if inside:
            raise DataError(f"{where} contains the separator {shown(inside[0])}; list its parts, or use another one")
    return _texts(list(spelled), tuple(separators), len(symbols))


def _is_comment(line: str, symbols: Symbols) -> bool:
    return line.lstrip().startswith("#") and "#" not in symbols.index


def spelling(word: str, symbols: Symbols, where: str) -> Spelling | None:
    """Return the characters of a word as symbols, or None if the word is dropped.

    Unknown characters are left out. `Symbols.check_known_words` reports them.

    Raises:
        DataError: as `Symbols.find`; a word of more than LONGEST_WORD characters.
    """
    if len(word) > LONGEST_WORD:
        raise DataError(f"{where}: expected a word of at most {LONGEST_WORD} characters, found one of {len(word):,}")
    if symbols.drops and not all(character in symbols.index for character in word):
        symbols.notes[WORDS_DROPPED] += 1
        return None
    ids = [symbols.find(character, f"{where}: the word {shown(word)}") for character in word]
    return tuple(symbol for symbol in ids if symbol is not None)


def _texts(words: Sequence[Spelling], separators: tuple[int, ...], num_symbols: int) -> Automaton:
    """Return the automaton of words with separators between them. Its states 0 and 1 are START and BETWEEN."""
    nodes = SharedNodes(weighted=False)
    inner = nodes.automaton(_word_node(nodes, sorted(words)), num_symbols)  # its start is 0; </s> ends words
    # words begin at the start and after separators; the other states have indices one higher
    paths = Paths(num_states=inner.num_states + 1, finals={BETWEEN: 0.0})
    for state in range(inner.num_states):
        for symbol, (_, target) in inner.row(state).items():
            if symbol == END:  # a word is not empty: never the start
                paths.finals[state + 1] = 0.0
                continue
            for origin in (START, BETWEEN) if state == 0 else (state + 1,):
                paths.add(origin, symbol, target + 1)
    for origin in paths.finals:
        for mark in separators:
            paths.add(origin, mark, BETWEEN)
    return untrimmed(paths, num_symbols)


def _word_node(nodes: SharedNodes, words: list[Spelling], at: int = 0) -> int:
    """Return the node of the rests of sorted words after their first `at` characters."""
    by_symbol: dict[int, list[Spelling]] = defaultdict(list)
    ends = False
    for word in words:
        if len(word) == at:
            ends = True
        else:
            by_symbol[word[at]].append(word)
    row = {symbol: (_word_node(nodes, group, at + 1), 0.0) for symbol, group in by_symbol.items()}
    if ends:
        row[END] = nodes.end, 0.0
    return nodes.normalised(row)[0]
