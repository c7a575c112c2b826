"""Trimming of automata: states without an end in reach are removed, with the arcs that lead to them.

Sizes: Q states, A arcs. A state's distance is the least number of words, `</s>` included, to a complete string. A state
whose chain of failures ends in ROOT allows every word, also </s>, and is one word from the end.

`flatten` writes out chains of failure that end in NOTHING as arcs, as `Automaton.check` requires.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairseq_llrnn.automata.automaton import END, NOTHING, ROOT, Automaton
from fairseq_llrnn.features.feature_table import ranges

NO_END = np.iinfo(np.int64).max // 4  # the distance of a state from which no end is in reach


def steps_to_end(automaton: Automaton, log_weights: np.ndarray | None = None) -> np.ndarray:
    """Return the least number of words, </s> included, from each state to an end: (Q,) int64, or NO_END.

    Args:
        log_weights: log b₀ (V,) of the root. None: the root allows </s>.
    """
    states = automaton.arc_states
    steps = np.full(automaton.num_states, NO_END, dtype=np.int64)
    if log_weights is None or np.isfinite(log_weights[END]):
        steps[automaton.chain_end == ROOT] = 1
    steps[states[automaton.tokens == END]] = 1
    inner = automaton.tokens != END  # </s> leads into the next sentence
    # backwards from an extra state, Q, that leads to all states with one step
    sources = np.flatnonzero(steps == 1)
    origins = np.concatenate([np.full(len(sources), automaton.num_states), automaton.nexts[inner]])
    targets = np.concatenate([sources, states[inner]])
    order, before = _breadth_first(origins, targets, automaton.num_states)
    # depths in the tree of predecessors, by pointer doubling
    depth, ancestor = (before >= 0).astype(np.int64), np.where(before >= 0, before, np.arange(len(before)))
    while (before[ancestor] >= 0).any():
        depth, ancestor = depth + depth[ancestor], ancestor[ancestor]
    reached = order[order < automaton.num_states]
    steps[reached] = depth[reached]
    return steps


def _breadth_first(origins: np.ndarray, targets: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the states that the start, the one with the highest index, reaches, and the predecessor of each.

    −1 if there is none, as for the start.
    """
    from scipy.sparse import csr_matrix  # imported late: it takes a tenth of a second
    from scipy.sparse.csgraph import breadth_first_order

    graph = csr_matrix((np.ones(len(origins), dtype=np.int8), (origins, targets)), shape=(start + 1, start + 1))
    order, before = breadth_first_order(graph, start)
    return order, np.where(before < 0, -1, before)


def reachable(automaton: Automaton) -> np.ndarray:
    """Return whether each state is reachable from the start, by words or by failing: (Q,) bool."""
    ends, size = automaton.chain_end, automaton.num_states
    failing = np.flatnonzero(automaton.fail >= 0)
    rooted, root_next = np.flatnonzero(ends == ROOT), automaton.root_next[automaton.root_next >= 0]
    root, start = size, size + 1  # two extra states
    origins = [automaton.arc_states, failing, rooted, np.full(len(root_next), root)]
    targets = [automaton.nexts, automaton.fail[failing], np.full(len(rooted), root), root_next]
    firsts = np.unique(automaton.starts)
    origins.append(np.full(len(firsts), start))
    targets.append(firsts)
    order, _ = _breadth_first(np.concatenate(origins), np.concatenate(targets), start)
    seen = np.zeros(size + 2, dtype=bool)
    seen[order] = True
    return seen[:size]


def trim(automaton: Automaton) -> Automaton:
    """Return the same language without states that are unreachable, or from which no end is in reach.

    The automaton has one start. Several would have their states in blocks.
    A state that allows every word keeps all arcs, because the root would allow the word instead. States after such arcs
    stay, and searches avoid them (`steps_to_end`).

    Raises:
        ValueError: the automaton accepts no string.
    """
    steps = steps_to_end(automaton)
    if steps[automaton.starts[0]] == NO_END:
        raise ValueError("the automaton accepts no string: no path from its start ends")
    rooted = automaton.chain_end == ROOT
    going_on = (automaton.tokens == END) | (steps[automaton.nexts] < NO_END) | rooted[automaton.arc_states]
    keep = reachable(with_arcs(automaton, going_on))
    if keep.all() and going_on.all():
        return automaton
    new = np.where(keep, keep.cumsum() - 1, -1)
    used = with_arcs(automaton, going_on & keep[automaton.arc_states])
    return replace(
        used,
        starts=new[automaton.starts],
        offsets=np.concatenate([[0], np.diff(used.offsets)[keep].cumsum()]).astype(np.int64),
        nexts=new[used.nexts],
        fail=np.where(automaton.fail >= 0, new[automaton.fail], automaton.fail)[keep],
        back_off=automaton.back_off[keep],
        root_next=np.where(automaton.root_next >= 0, new[automaton.root_next], NOTHING),
    )


def with_arcs(automaton: Automaton, mask: np.ndarray) -> Automaton:
    """Return the automaton with the arcs of a mask (A,) bool."""
    counts = np.bincount(automaton.arc_states[mask], minlength=automaton.num_states)
    return replace(
        automaton,
        offsets=np.concatenate([[0], counts.cumsum()]).astype(np.int64),
        tokens=automaton.tokens[mask],
        nexts=automaton.nexts[mask],
        log_weights=automaton.log_weights[mask],
    )


MOST_ARCS = 20_000_000  # about 1 GB


def flatten(automaton: Automaton, limit: int = MOST_ARCS) -> Automaton:
    """Return the same automaton, with chains of failure that end in NOTHING written out as arcs.

    Raises:
        ValueError: a cycle of failures, or more than `limit` arcs.
    """
    depth, ends = automaton.depth, automaton.chain_end
    needed = (ends == NOTHING) & (automaton.fail >= 0)
    if not needed.any():
        return automaton
    symbols = np.int64(automaton.num_symbols)
    failing, weight = np.arange(automaton.num_states), np.zeros(automaton.num_states)
    keys, nexts, weights = [automaton.keys], [automaton.nexts], [automaton.log_weights]
    total = automaton.num_arcs
    for _ in range(int(depth.max()) - 1):
        # add the arcs of the next failure state to every state that needs them
        moves = needed & (automaton.fail[failing] >= 0)
        weight = np.where(moves, weight + automaton.back_off[failing], weight)
        failing = np.where(moves, automaton.fail[failing], failing)
        needed = moves
        states = np.flatnonzero(moves)
        counts = np.diff(automaton.offsets)[failing[states]]
        total += int(counts.sum())
        if total > limit:
            raise ValueError(
                f"the automaton has more than {limit:,} arcs when its failures are written out; let fewer states "
                "fail to those with many arcs"
            )
        arcs = ranges(automaton.offsets[failing[states]], counts)
        owner = np.repeat(states, counts)
        keys.append(owner * symbols + automaton.tokens[arcs])
        nexts.append(automaton.nexts[arcs])
        weights.append(automaton.log_weights[arcs] + weight[owner])
    # the first arc of a token counts: it has the fewest failures
    distinct, first = np.unique(np.concatenate(keys), return_index=True)
    states = distinct // symbols
    ends_in_nothing = ends == NOTHING
    return replace(
        automaton,
        offsets=np.concatenate([[0], np.bincount(states, minlength=automaton.num_states).cumsum()]).astype(np.int64),
        tokens=distinct % symbols,
        nexts=np.concatenate(nexts)[first],
        log_weights=np.concatenate(weights)[first],
        fail=np.where(ends_in_nothing, NOTHING, automaton.fail),
        back_off=np.where(ends_in_nothing, 0.0, automaton.back_off),
    )
