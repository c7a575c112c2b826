"""Priors of the tiny world with a grammar, or with n-grams that a few arcs stand for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from automata import from_states

from fairseq_llrnn.automata.automaton import END, ROOT
from fairseq_llrnn.prior.parts.automaton_part import AutomatonPart
from fairseq_llrnn.prior.prior import Prior

# state -> word -> next state; "</s>" ends. A verb is not the end where an article may follow.
GRAMMAR: list[dict[str, int]] = [
    {"le": 1, "la": 2},
    {"chat": 3, "pont": 3, "petit": 1},
    {"mer": 3, "verte": 2},
    {"voit": 4, "</s>": 0},
    {"le": 1, "la": 2, "bien": 5},
    {"</s>": 0},
]


def with_grammar(prior: Prior, states: Sequence[Mapping[str, int]] = GRAMMAR, on_zero: str = "error") -> Prior:
    """The prior with a grammar in which the k-th word of a state weighs 1 / (k + 1)."""
    arcs = [
        {prior.symbols.index(word): (-math.log(k + 1), after) for k, (word, after) in enumerate(state.items())}
        for state in states
    ]
    automaton = from_states(arcs, len(prior.symbols))
    automaton.check(prior.log_weights)
    return prior.with_part(AutomatonPart(automaton, "automaton", on_zero=on_zero))


def with_bigrams(prior: Prior, after: Mapping[str, Mapping[str, float]]) -> Prior:
    """The prior with a state for each word of `after`: p of the words on its arcs, a tenth of the root for others."""
    number = {word: i + 1 for i, word in enumerate(after)}
    next_of = [0 if symbol == "</s>" else number.get(symbol, len(after) + 1) for symbol in prior.symbols]
    arcs = [
        {}, *({prior.symbols.index(x): (math.log(p), next_of[prior.symbols.index(x)]) for x, p in row.items()}
        for row in after.values()), {},
    ]  # fmt: skip
    costs = [0.0, *(math.log(0.1) for _ in after), 0.0]
    root_next = [-1 if math.isinf(w) else state for w, state in zip(prior.log_weights, next_of, strict=True)]
    root_next[END] = 0
    automaton = from_states(
        arcs, len(prior.symbols), fail=[ROOT] * len(arcs), back_off=costs, root_next=root_next, memory=1
    )
    automaton.check(prior.log_weights)
    return prior.with_part(AutomatonPart(automaton, "ngram"))


def accepted(longest: int, states: Sequence[Mapping[str, int]] = GRAMMAR) -> Iterator[list[str]]:
    """All strings of the grammar with at most so many words, without </s>."""
    open_strings: list[tuple[list[str], int]] = [([], 0)]
    while open_strings:
        words, state = open_strings.pop()
        for word, after in states[state].items():
            if word == "</s>":
                yield words
            elif len(words) < longest:
                open_strings.append(([*words, word], after))
