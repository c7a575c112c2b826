"""The slow, obvious version of backgrounds/copied_words.py: one automaton with the list's words and some more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from fairseq_llrnn.automata.automaton import END, Automaton, ranges
from fairseq_llrnn.automata.characters import BETWEEN, START, Spelling

Row = dict[int, int]  # symbol -> next state


def with_words(automaton: Automaton, separators: Sequence[int], words: Iterable[Spelling]) -> Automaton:
    """The same texts with these words beside the others; a word that holds separators is the words between them."""
    pieces = {piece for word in words for piece in _split(word, separators)}
    if not pieces:
        return automaton
    overlay = _Overlay(automaton, separators)
    overlay.extend(START, pieces)
    overlay.extend(BETWEEN, pieces)
    return overlay.automaton()


def _split(word: Spelling, separators: Sequence[int]) -> list[Spelling]:
    pieces: list[list[int]] = [[]]
    for symbol in word:
        if symbol in separators:
            pieces.append([])
        else:
            pieces[-1].append(symbol)
    return [tuple(piece) for piece in pieces if piece]


class _Overlay:
    """Rows that take the place of some of an automaton's, and new ones behind them."""

    def __init__(self, base: Automaton, separators: Sequence[int]) -> None:
        self.base = base
        self.ends: Row = {END: START, **dict.fromkeys(separators, BETWEEN)}
        self.rows: dict[int, Row] = {}
        self.num_states = self.base.num_states

    def extend(self, state: int | None, words: set[Spelling]) -> int:
        """Let `state` go on with these words as well; the first two states change, of others a copy does."""
        row = {} if state is None else {symbol: after for symbol, (_, after) in self.base.row(state).items()}
        if state not in (START, BETWEEN):
            state, self.num_states = self.num_states, self.num_states + 1
        groups: dict[int, set[Spelling]] = defaultdict(set)
        for word in words:
            if word:
                groups[word[0]].add(word[1:])
            else:
                row.update(self.ends)
        for symbol, rest in groups.items():
            row[symbol] = self.extend(row.get(symbol), rest)
        self.rows[state] = row
        return state

    def automaton(self) -> Automaton:
        base = self.base
        kept = [state not in self.rows for state in (START, BETWEEN)] + [True] * (base.num_states - 2)
        states = np.flatnonzero(kept)
        arcs = ranges(base.offsets[states], np.diff(base.offsets)[states])
        new = [(state, symbol, after) for state, row in self.rows.items() for symbol, after in row.items()]
        added = np.array(new, dtype=np.int64).T
        origins = np.concatenate([base.arc_states[arcs], added[0]])
        tokens = np.concatenate([base.tokens[arcs], added[1]])
        nexts = np.concatenate([base.nexts[arcs], added[2]])
        made = Automaton.from_arcs(
            base.num_symbols, self.num_states, START, origins, tokens, nexts, np.zeros(len(tokens))
        )
        return replace(made, starts=base.starts)
