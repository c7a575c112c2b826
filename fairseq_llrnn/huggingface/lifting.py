"""From automata over bytes to automata over the tokens of a tokenizer.

Sizes: K tokens, Q states, A arcs.

Special tokens match no text (token_texts.py), and the end-of-sequence token ends the text. `lift` follows the bytes of
all tokens from each state. The result allows all tokenisations of each string of the automaton. `lift_canonical` allows
only the tokenisation that the tokenizer itself makes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.shared_nodes import SharedNodes
from fairseq_llrnn.automata.trimming import trim
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import shown
from fairseq_llrnn.huggingface.byte_automata import FIRST, ByteAutomaton, Meter
from fairseq_llrnn.huggingface.token_texts import TokenTexts, Trie

BYTES_PER_ARC = 120  # memory of one arc of an automaton over tokens while it is made, about
CHUNK = 4_000_000  # pairs of a state and a piece of a token that are followed at once


def _spread(begins: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """begins[i] … begins[i] + lengths[i] − 1 of all i, and the i of each."""
    owner = np.repeat(np.arange(len(begins)), lengths)
    return np.arange(len(owner)) + (begins - (lengths.cumsum() - lengths))[owner], owner


@dataclass
class _Arcs:
    """Arcs over tokens, as they are found."""

    states: list[np.ndarray]
    tokens: list[np.ndarray]
    nexts: list[np.ndarray]
    weights: list[np.ndarray]


def _follow(automaton: ByteAutomaton, trie: Trie, starts: np.ndarray, meter: Meter, arcs: _Arcs) -> None:
    """Add the arcs of all tokens of a trie from some states."""
    origin, here = starts, starts
    node, weight = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts))
    while len(node):
        low, high = trie.own[node].T
        places, owner = _spread(low, high - low)
        arcs.states.append(origin[owner])
        arcs.tokens.append(trie.tokens[places])
        arcs.nexts.append(here[owner])
        arcs.weights.append(weight[owner])
        meter.check_memory(BYTES_PER_ARC * sum(map(len, arcs.tokens)))
        meter.check_time()
        begin = trie.children[node]
        child, owner = _spread(begin, trie.children[node + 1] - begin)
        after = automaton.nexts[here[owner], trie.bytes[child]]
        alive = after >= 0
        child, owner, byte = child[alive], owner[alive], trie.bytes[child[alive]]
        if automaton.log_weights is not None:
            weight = weight[owner] + automaton.log_weights[here[owner], byte]
        else:
            weight = weight[owner]
        origin, node, here = origin[owner], child, after[alive].astype(np.int64)


def lift(automaton: ByteAutomaton, texts: TokenTexts, meter: Meter) -> Automaton:
    """All tokenisations of the strings: an automaton over FIRST + K symbols, in which token k is FIRST + k.

    State 0 is the start. It has arcs of first tokens, and nothing leads back to it.

    Raises:
        LimitError: more time or memory than the meter allows. DataError: no string can be written in tokens.
    """
    first, later = texts.tries
    arcs = _Arcs([], [], [], [])
    _follow(automaton, first, np.zeros(1, dtype=np.int64), meter, arcs)
    states = len(automaton.nexts)
    # the start over first tokens is a state of its own, 0
    begun = len(arcs.states)
    step = max(1, CHUNK // max(1, len(later.bytes)))
    for low in range(0, states, step):
        _follow(automaton, later, np.arange(low, min(low + step, states)), meter, arcs)
    starts = [np.zeros_like(part) if at < begun else part + 1 for at, part in enumerate(arcs.states)]
    finals = np.flatnonzero(np.isfinite(automaton.finals))
    ending = np.append(finals[finals == 0], finals)  # the first state of all is also that of the start
    ends = np.append(finals[finals == 0], finals + 1)
    origins, weights = np.concatenate([*starts, ends]), np.concatenate([*arcs.weights, automaton.finals[ending]])
    tokens = np.concatenate([*arcs.tokens, np.full(len(ends), END - FIRST)]) + FIRST
    nexts = np.concatenate([*arcs.nexts, np.full(len(ends), -1)]) + 1  # </s> leads to the start, by convention
    return _trimmed(Automaton.from_arcs(FIRST + texts.size, states + 1, 0, origins, tokens, nexts, weights), meter)


def lift_canonical(automaton: ByteAutomaton, texts: TokenTexts, meter: Meter) -> Automaton:
    """As `lift`, with the tokenizer's own tokenisation of each string alone. The set of strings is finite.

    Raises:
        LimitError: too many strings. DataError: a string that the tokenizer cannot write, or changes.
    """
    nodes = SharedNodes(weighted=automaton.log_weights is not None, budget=meter)
    parts = []
    for text, weight in automaton.strings(meter).items():
        tokens = texts.canonical(text.decode(errors="replace"), meter.name)
        if texts.text(tokens) != text:
            raise DataError(
                f"{meter.name}: expected texts as the tokenizer writes them, found {shown(text.decode())}, which it "
                f"changes to {shown(texts.comparable(text.decode(), meter.name))}; change the text"
            )
        rest = (nodes.end, weight)
        for token in reversed(tokens):
            rest = nodes.after(FIRST + token, rest)
        parts.append(rest)
    node, _ = nodes.union(parts)
    return _trimmed(nodes.automaton(node, FIRST + texts.size), meter)


def _trimmed(automaton: Automaton, meter: Meter) -> Automaton:
    try:
        return trim(automaton)
    except ValueError:
        raise DataError(
            f"{meter.name}: expected a string that the tokenizer's tokens can write, found none; use characters that "
            "it has, as its decoder writes them (some tokenizers have lower case alone)"
        ) from None
