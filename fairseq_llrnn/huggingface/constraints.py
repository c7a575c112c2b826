"""Sets of texts as automata over bytes: regular expressions, grammars, words, required terms.

    regex     Python's syntax, for the whole text (regular_expressions.py)
    grammar   our format (automata/grammar_file.py): terminals are words, written with a separator between them
    words     texts of words from a list, with separators between them
    terms     texts that have one of several forms of a term somewhere

All are untrusted: `Meter` counts states, time and memory (byte_automata.py). Bytes that no set of an expression
tells apart are one symbol, so that `.` costs a few arcs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairseq_llrnn.automata.grammar import grammar_automaton
from fairseq_llrnn.automata.grammar_file import ARROW, parse_grammar
from fairseq_llrnn.automata.nondeterministic import EMPTY as NOTHING_READ
from fairseq_llrnn.automata.nondeterministic import Paths, to_automaton
from fairseq_llrnn.automata.regular import Choice, Node, Repeat, Words, add_arcs, num_arcs, with_leaves
from fairseq_llrnn.automata.regular import Sequence as Concatenation
from fairseq_llrnn.automata.symbols import Symbols
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.huggingface.byte_automata import BYTES, BYTES_PER_STEP, FIRST, ByteAutomaton, Meter, utf8_size

ANY_BYTE = Words(tuple(range(BYTES)))
EMPTY: Node = Concatenation(())


# ---- expressions over bytes -----------------------------------------------------------------------------------------


def byte_automaton(node: Node, meter: Meter) -> ByteAutomaton:
    """The automaton of an expression whose symbols are bytes.

    Raises:
        LimitError: more states, time or memory than the meter allows. DataError: it has no string.
    """
    paths = Paths()
    try:
        class_of = _classes(node)
        by_class = with_leaves(
            node, lambda leaf: Words(tuple((FIRST + np.unique(class_of[list(leaf.symbols)])).tolist()))
        )
        meter.check_memory(BYTES_PER_STEP * num_arcs(by_class))
        paths.finals[add_arcs(by_class, paths, 0)] = 0.0
        _drop_passages(paths)
    except RecursionError:
        raise DataError(f"{meter.name}: expected fewer groups inside each other; write it with fewer of them") from None
    return _determinized(paths, class_of, meter)


def _determinized(paths: Paths, class_of: np.ndarray, meter: Meter) -> ByteAutomaton:
    try:
        automaton = to_automaton(paths, FIRST + int(class_of.max(initial=0)) + 1, meter)
    except ValueError as error:
        raise DataError(f"{meter.name}: {error}") from None
    return ByteAutomaton.from_automaton(automaton, class_of, meter)


def _drop_passages(paths: Paths) -> None:
    """Lead arcs past states that only go on to one other state, so that fewer sets of states differ."""
    going_on: dict[int, list[tuple[int, int]]] = {}
    for origin, symbol, target, _ in paths.arcs:
        going_on.setdefault(origin, []).append((symbol, target))
    passages = {
        state: arcs[0][1]
        for state, arcs in going_on.items()
        if state != 0 and len(arcs) == 1 and arcs[0][0] == NOTHING_READ and state not in paths.finals
    }

    def behind(state: int) -> int:
        seen = set()
        while state in passages and state not in seen:
            seen.add(state)
            state = passages[state]
        return state

    paths.arcs = [
        (origin, symbol, behind(target), weight)
        for origin, symbol, target, weight in paths.arcs
        if origin not in passages
    ]


def _classes(node: Node) -> np.ndarray:
    """The class of each byte, (256,): bytes that every set of the expression has or has not. −1 for none."""
    sets: dict[tuple[int, ...], Words] = {}
    with_leaves(node, lambda leaf: sets.setdefault(leaf.symbols, leaf))
    codes, used = np.zeros(BYTES, dtype=np.int64), np.zeros(BYTES, dtype=bool)
    for symbols in sets:
        member = np.zeros(BYTES, dtype=np.int64)
        member[list(symbols)] = 1
        used |= member > 0
        codes = np.unique(2 * codes + member, return_inverse=True)[1]
    class_of = np.full(BYTES, -1, dtype=np.int64)
    class_of[used] = np.unique(codes[used], return_inverse=True)[1]
    return class_of


def literal(text: bytes) -> Node:
    """The text itself."""
    return Concatenation(tuple(Words((byte,)) for byte in text))


# ---- grammars, words and terms --------------------------------------------------------------------------------------


class _Terminals(Symbols):
    """The words of a grammar, numbered as they are met."""

    def __init__(self) -> None:
        self.texts = list(SPECIALS)
        self.numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.texts)

    def find(self, name: str, where: str) -> int | None:
        if name not in self.numbers:
            self.numbers[name] = len(self.texts)
            self.texts.append(name)
        return self.numbers[name]

    def check_known_words(self) -> None:
        """All are known."""


def is_our_grammar(text: str) -> bool:
    """Whether a grammar is in our format, and not in Lark's."""
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "//")))
    first = next((line for line in lines if not line.startswith("%")), "")
    return ARROW.match(first) is not None


def grammar_bytes(text: str, separator: str, name: str, meter: Meter) -> ByteAutomaton:
    """The texts of a grammar in our format, with the separator between words.

    Raises:
        DataError: a bad rule. LimitError: it costs too much.
    """
    words = _Terminals()
    grammar = parse_grammar(name, words, text.splitlines())
    try:
        automaton = grammar_automaton(grammar, len(words), meter)
    except ValueError as error:
        raise DataError(f"{name}: {error}") from None
    meter.check_states(automaton.num_states)
    class_of = np.arange(BYTES)
    paths = Paths(num_states=automaton.num_states, weighted=grammar.weighted)
    # the weight of a word is that of its first byte
    for state in range(automaton.num_states):
        for symbol, (weight, target) in automaton.row(state).items():
            if symbol == 2:
                paths.finals[state] = weight
                continue
            string = words.texts[symbol] if state == 0 else separator + words.texts[symbol]
            if not utf8_size(string):
                raise DataError(f"{name}: expected words in UTF-8, found {string!r:.60}; change it")
            written = string.encode()
            here = state
            for at, byte in enumerate(written):
                there = target if at == len(written) - 1 else paths.new_state()
                paths.add(here, FIRST + byte, there, weight if at == 0 else 0.0)
                here = there
            meter.spend(len(written))
    return _determinized(paths, class_of, meter)


def words_automaton(words: Sequence[str], separators: Sequence[str], meter: Meter) -> ByteAutomaton:
    """Texts of words with separators between them. Without separators, one of the words.

    Raises:
        DataError: no words, or an empty one. LimitError: they cost too much.
    """
    if isinstance(words, str):
        raise DataError(f"{meter.name}: expected a list of words, found the text {words!r:.60}; put it into a list")
    words = [*words]
    wrong = [each for each in words if not utf8_size(each)]
    if not words or wrong:
        found = "none" if not words else "an empty one" if wrong[0] == "" else f"{wrong[0]!r:.60}"
        raise DataError(f"{meter.name}: expected words, found {found}; give at least one")
    if separators and (isinstance(separators, str) or not all(map(utf8_size, filter(None, separators)))):
        raise DataError(f"{meter.name}: separators: expected a list of strings, found {separators!r:.60}; give one")
    word = Choice(tuple(literal(each.encode()) for each in dict.fromkeys(words)))
    if not separators:
        return byte_automaton(word, meter)
    between = Choice(tuple(literal(each.encode()) for each in separators))
    return byte_automaton(Concatenation((word, Repeat(Concatenation((between, word)), 0, None, "words"))), meter)


def term_automaton(forms: Sequence[str], meter: Meter) -> ByteAutomaton:
    """Texts that hold one of the forms, as words of their own.

    A form that begins or ends with a letter or digit has none of ASCII's and no other letter beside it there, unless
    its script writes no spaces (Thai, Chinese, …).
    """
    inside = Words(tuple(byte for byte in range(BYTES) if byte >= 0x80 or chr(byte).isalnum()))
    outside = Words(tuple(sorted({*range(BYTES)} - {*inside.symbols})))
    anything: Node = Repeat(ANY_BYTE, 0, None, "any bytes")
    apart_before: Node = Choice((EMPTY, Concatenation((anything, outside))))
    apart_after: Node = Choice((EMPTY, Concatenation((outside, anything))))
    ways = []
    for form in forms:
        before = apart_before if _is_spaced(form[0]) else anything
        after = apart_after if _is_spaced(form[-1]) else anything
        ways.append(Concatenation((before, literal(form.encode()), after)))
    return byte_automaton(Choice(tuple(ways)), meter)


def _is_spaced(character: str) -> bool:
    return character.isalnum() and ord(character) < 0x0E00
