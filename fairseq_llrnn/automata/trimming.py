"""Automata that end: states without an end in reach go, and with them the arcs that lead there.

Sizes: Q states, A arcs. A state's distance is the least number of words, `</s>` included, to a complete string. A state
whose chain of failures ends in ROOT gives every word, </s> among them, and is one word from the end.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairseq_llrnn.automata.automaton import END, NOTHING, ROOT, Automaton, ranges

NO_END = np.iinfo(np.int64).max // 4  # the distance of a state from which no end is in reach


def steps_to_end(automaton: Automaton, log_weights: np.ndarray | None = None) -> np.ndarray:
    """The least number of words, </s> included, from each state to an end: (Q,) int64; NO_END where there is none.

    Args:
        log_weights: log b₀ (V,) of the root; without it the root gives </s>.
    """
    states = automaton.arc_states
    steps = np.full(automaton.num_states, NO_END, dtype=np.int64)
    if log_weights is None or np.isfinite(log_weights[END]):
        steps[automaton.chain_end == ROOT] = 1
    steps[states[automaton.tokens == END]] = 1
    going_on = automaton.tokens != END  # </s> leads into the next sentence
    arcs = np.flatnonzero(going_on)[np.argsort(automaton.nexts[going_on], kind="stable")]
    begins = np.searchsorted(automaton.nexts[arcs], np.arange(automaton.num_states + 1))
    frontier, distance = np.flatnonzero(steps == 1), 1
    while len(frontier):
        distance += 1
        before = states[arcs[ranges(begins[frontier], begins[frontier + 1] - begins[frontier])]]
        frontier = np.unique(before[steps[before] == NO_END])
        steps[frontier] = distance
    return steps


def reachable(automaton: Automaton) -> np.ndarray:
    """(Q,) bool: the states that the start leads to, by words or by failing; of an automaton with one start."""
    seen = np.zeros(automaton.num_states, dtype=bool)
    ends = automaton.chain_end
    frontier = np.unique(automaton.starts)
    root_seen = False
    while len(frontier):
        seen[frontier] = True
        many = np.diff(automaton.offsets)[frontier]
        after = [automaton.nexts[ranges(automaton.offsets[frontier], many)]]
        failing = automaton.fail[frontier]
        after.append(failing[failing >= 0])
        if not root_seen and (ends[frontier] == ROOT).any():
            root_seen = True
            after.append(automaton.root_next[automaton.root_next >= 0])
        frontier = np.unique(np.concatenate(after))
        frontier = frontier[~seen[frontier]]
    return seen


def trim(automaton: Automaton) -> Automaton:
    """The same language without states that the start leads not to, or from which no end is in reach.

    The automaton has one start; several would have their states in blocks.
    A state that gives every word cannot lose an arc: the root would give the word instead. What only such an arc leads
    to stays, and searches are told of it (`steps_to_end`).

    Raises:
        ValueError: the automaton accepts no string.
    """
    steps = steps_to_end(automaton)
    if steps[automaton.starts[0]] == NO_END:
        raise ValueError("the automaton accepts no string: no path from its start ends")
    rooted = automaton.chain_end == ROOT
    going_on = (automaton.tokens == END) | (steps[automaton.nexts] < NO_END) | rooted[automaton.arc_states]
    keep = reachable(_with_arcs(automaton, going_on))
    if keep.all() and going_on.all():
        return automaton
    new = np.where(keep, keep.cumsum() - 1, -1)
    used = _with_arcs(automaton, going_on & keep[automaton.arc_states])
    return replace(
        used,
        starts=new[automaton.starts],
        offsets=np.concatenate([[0], np.diff(used.offsets)[keep].cumsum()]).astype(np.int64),
        nexts=new[used.nexts],
        fail=np.where(automaton.fail >= 0, new[automaton.fail], automaton.fail)[keep],
        back_off=automaton.back_off[keep],
        root_next=np.where(automaton.root_next >= 0, new[automaton.root_next], NOTHING),
    )


def _with_arcs(automaton: Automaton, kept: np.ndarray) -> Automaton:
    """The automaton with some of its arcs: (A,) bool."""
    many = np.bincount(automaton.arc_states[kept], minlength=automaton.num_states)
    return replace(
        automaton,
        offsets=np.concatenate([[0], many.cumsum()]).astype(np.int64),
        tokens=automaton.tokens[kept],
        nexts=automaton.nexts[kept],
        log_weights=automaton.log_weights[kept],
    )
