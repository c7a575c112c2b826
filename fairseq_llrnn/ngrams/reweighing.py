"""Other weights on the same automaton: interpolation with shorter histories, temperature, normalisation.

Sizes: V symbols, Q states, A arcs. All three keep arcs and states, and are exact as automata with failure arcs. They
take automata whose failures all end in ROOT, and log b₀ (V,) with some mass.

Write b(q, x) for the weight of x in state q, β for the cost of failing, q' for the state that q fails to.

    mixed       b_λ(q, x) = λ b(q, x) + (1 − λ) b_λ(q', x)   on an arc;   (1 − λ + λ β(q)) b_λ(q', x)   elsewhere
    tempered    b_T(q, x) = b₀(x)^(1 − 1/T) b(q, x)^(1/T): log-linear interpolation with the unigram; b₀ stays as it is
    normalised  b(q, x) / Z(q),   Z(q) = Σ_arcs b(q, x) + β(q) (Z(q') − Σ_arcs b(q', x))

`mixed` is λ p(x | h) + (1 − λ) p(x) for histories of one word (bigrams), with the unigram b₀ as p(x). For longer
histories the unigram comes in through the shorter ones: mixing each directly with it would need the arcs of all shorter
histories in every state. λ = 1 changes nothing, λ = 0 is the unigram. Off the arcs it is the same rule with
β(q) b_λ(q', x) in the place of b(q, x), so that the sum over all words differs from one, by λβ times the change of the
arcs' words in q'; `normalised` fixes that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fairseq_llrnn.automata.automaton import Automaton

LITTLE = 1e-8  # a share that is summed from its words: as a difference it would have lost half of its digits


def mixed(automaton: Automaton, log_root: np.ndarray, weight: float) -> Automaton:
    """Interpolation of every state with the state it fails to (module docstring); λ = `weight`."""
    if weight == 1.0:
        return automaton
    if weight == 0.0:
        return _without_arcs(automaton)
    log_weights, back_off = automaton.log_weights.copy(), automaton.back_off.copy()
    log_weight, log_rest = np.log(weight), np.log1p(-weight)
    back_off = np.logaddexp(log_rest, log_weight + back_off)
    result = replace(automaton, log_weights=log_weights, back_off=back_off)
    for _, arcs, below in _levels(result, log_root):
        log_weights[arcs] = np.logaddexp(log_weight + log_weights[arcs], log_rest + below)
    return result


def _without_arcs(automaton: Automaton) -> Automaton:
    """The unigram: every state gives what b₀ gives, and one state is enough."""
    nothing, zero = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return replace(
        automaton,
        starts=np.zeros_like(automaton.starts),
        offsets=np.zeros(2, dtype=np.int64),
        tokens=nothing,
        nexts=nothing,
        log_weights=np.zeros(0),
        fail=automaton.fail[:1],
        back_off=np.zeros(1),
        root_next=np.where(automaton.root_next < 0, -1, zero),
        memory=0,
    )


def tempered(automaton: Automaton, log_root: np.ndarray, temperature: float) -> Automaton:
    """b₀^(1 − 1/T) b^(1/T): off the arcs, the root's part is in what the state fails to, and failing costs β^(1/T).

    Only what the histories add is flattened. The unigram's shares of the words of a class stay as they are: no network
    could correct them, because they have no gradient.
    """
    if temperature == 1.0:
        return automaton
    log_weights = (1 - 1 / temperature) * log_root[automaton.tokens] + automaton.log_weights / temperature
    return replace(automaton, log_weights=log_weights, back_off=automaton.back_off / temperature)


def normalised(automaton: Automaton, log_root: np.ndarray) -> tuple[Automaton, np.ndarray]:
    """Every state and b₀ as distributions that sum to one: the automaton and its root."""
    totals, root_total = log_totals(automaton, log_root)
    below = np.where(automaton.fail >= 0, totals[np.maximum(automaton.fail, 0)], root_total)
    result = replace(
        automaton,
        log_weights=automaton.log_weights - totals[automaton.arc_states],
        back_off=automaton.back_off + below - totals,
    )
    return result, log_root - root_total


def log_totals(automaton: Automaton, log_root: np.ndarray) -> tuple[np.ndarray, float]:
    """log Σ_x b(q, x) of every state, (Q,), and of b₀."""
    root_total = float(np.logaddexp.reduce(log_root))
    totals = np.zeros(automaton.num_states)
    owner = automaton.arc_states
    for states, arcs, below in _levels(automaton, log_root):
        failing = automaton.fail[states]
        rest = np.where(failing >= 0, totals[np.maximum(failing, 0)], root_total)
        # what is left below once the arcs' words are taken out, as a share of all of it
        place = np.searchsorted(states, owner[arcs])
        left = 1.0 - np.bincount(place, np.exp(below - rest[place]), len(states))
        log_left = np.log(np.maximum(left, LITTLE))
        for i in np.flatnonzero(left < LITTLE):
            log_left[i] = _log_left(automaton, log_root, int(states[i])) - rest[i]
        failed = automaton.back_off[states] + rest + log_left
        arc_weights = automaton.log_weights[arcs]
        top = failed.copy()
        np.maximum.at(top, place, arc_weights)
        total = np.bincount(place, np.exp(arc_weights - top[place]), len(states)) + np.exp(failed - top)
        totals[states] = top + np.log(total)
    return totals, root_total


def _log_left(automaton: Automaton, log_root: np.ndarray, state: int) -> float:
    """log Σ b(q', x) over the words x that are on no arc of the state q, summed one by one."""
    weights, cost, chain = log_root.copy(), 0.0, []
    here = int(automaton.fail[state])
    while here >= 0:
        chain.append((here, cost))
        cost += float(automaton.back_off[here])
        here = int(automaton.fail[here])
    weights += cost
    for here, cost in reversed(chain):  # what fails less comes later, and stays
        arcs = slice(automaton.offsets[here], automaton.offsets[here + 1])
        weights[automaton.tokens[arcs]] = cost + automaton.log_weights[arcs]
    weights[automaton.tokens[automaton.offsets[state] : automaton.offsets[state + 1]]] = -np.inf
    return float(np.logaddexp.reduce(weights))


def _levels(automaton: Automaton, log_root: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """States by their number of failures to ROOT, least first: the states, their arcs, and what their failures give.

    The third is log b(q', x) of each arc's word, by the weights as they are when the level's turn comes.
    """
    depth, owner, keys = automaton.depth, automaton.arc_states, automaton.keys
    for level in range(1, int(depth.max()) + 1):
        states = np.flatnonzero(depth == level)
        arcs = np.flatnonzero(depth[owner] == level)
        tokens, here = automaton.tokens[arcs], automaton.fail[owner[arcs]]
        below = np.zeros(len(arcs))
        open_ = np.arange(len(arcs))  # those whose weight is not yet found
        while len(open_):
            at_root = here[open_] < 0
            below[open_[at_root]] += log_root[tokens[open_[at_root]]]
            open_ = open_[~at_root]
            wanted = here[open_] * np.int64(automaton.num_symbols) + tokens[open_]
            places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            hit = keys[places] == wanted
            below[open_[hit]] += automaton.log_weights[places[hit]]
            open_ = open_[~hit]
            below[open_] += automaton.back_off[here[open_]]
            here[open_] = automaton.fail[here[open_]]
        yield states, arcs, below
