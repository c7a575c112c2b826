"""Chains of failure that end in NOTHING, written out as arcs: what an automaton's check asks for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairseq_llrnn.automata.automaton import NOTHING, Automaton, ranges

MOST_ARCS = 20_000_000  # about 1 GB


def flatten(automaton: Automaton, limit: int = MOST_ARCS) -> Automaton:
    """The same automaton, with chains of failure that end in NOTHING written out as arcs.

    Raises:
        ValueError: a cycle of failures, or more than `limit` arcs.
    """
    depth, ends = automaton.depth, automaton.chain_end
    needed = (ends == NOTHING) & (automaton.fail >= 0)
    if not needed.any():
        return automaton
    symbols = np.int64(automaton.num_symbols)
    here, weight = np.arange(automaton.num_states), np.zeros(automaton.num_states)
    keys, nexts, weights = [automaton.keys], [automaton.nexts], [automaton.log_weights]
    total = automaton.num_arcs
    for _ in range(int(depth.max()) - 1):
        # one failure further: the arcs of the state that it leads to, for every state that needs them
        moves = needed & (automaton.fail[here] >= 0)
        weight = np.where(moves, weight + automaton.back_off[here], weight)
        here = np.where(moves, automaton.fail[here], here)
        needed = moves
        states = np.flatnonzero(moves)
        many = np.diff(automaton.offsets)[here[states]]
        total += int(many.sum())
        if total > limit:
            raise ValueError(
                f"the automaton has more than {limit:,} arcs when its failures are written out; let fewer states "
                "fail to those with many arcs"
            )
        arcs = ranges(automaton.offsets[here[states]], many)
        owner = np.repeat(states, many)
        keys.append(owner * symbols + automaton.tokens[arcs])
        nexts.append(automaton.nexts[arcs])
        weights.append(automaton.log_weights[arcs] + weight[owner])
    # of several arcs on one token the first one counts: it came with fewer failures
    once, first = np.unique(np.concatenate(keys), return_index=True)
    states = once // symbols
    gone = ends == NOTHING
    return replace(
        automaton,
        offsets=np.concatenate([[0], np.bincount(states, minlength=automaton.num_states).cumsum()]).astype(np.int64),
        tokens=once % symbols,
        nexts=np.concatenate(nexts)[first],
        log_weights=np.concatenate(weights)[first],
        fail=np.where(gone, NOTHING, automaton.fail),
        back_off=np.where(gone, 0.0, automaton.back_off),
    )
