"""Limits of an automaton: work and memory, and whether its weights have a finite sum.

Determinising can make a file of a few lines exponentially large. The work is counted in steps: one arc of a state, or
one member of a set of states (two with weights, whose sums take longer). Every stored item costs a step first, so
steps also bound the memory. Steps do not depend on the machine: a file is rejected everywhere or nowhere.

Sizes: Q states, A arcs. A step of a log-linear model sums over the vocabulary, and is finite with any automaton. But
the weights of an automaton are probabilities of strings only if they have a finite sum. The rule:

* An automaton with all weights 1 is a set of strings (a regular expression, a dictionary): there is no sum.
* States that fail to ROOT have the probabilities of the prior, which sum to one at every step (an n-gram).
* Otherwise the sum over all strings is Σ_n Mⁿ from the start, M the matrix of weights between states. It is finite if
  and only if the spectral radius of M is below 1 in every strongly connected part (after trimming). A cycle of weight
  ≥ 1 makes it infinite; so do two cycles of weight 0.6 through one state.

The radius is bounded by (M v)_q / v_q from both sides for every positive vector v (Collatz–Wielandt). v comes from the
power iteration of M + I, which does not oscillate. If that converges too slowly, (I − M) v = 1 is solved: if the
radius is below 1 then v = Σ Mⁿ 1 is positive, and if v is positive then M v = v − 1 implies that the radius is below 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairseq_llrnn.automata.automaton import END, ROOT, Automaton

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


MOST_STEPS = 4_000_000  # some seconds, and less than 2 GB; GeoQuery's grammar takes 1,311,000


class TooMuchWorkError(ValueError):
    """An automaton that needs more steps than its budget."""


class Budget:
    """The steps that remain."""

    def __init__(self, steps: int | None = None) -> None:
        """Start with `steps` steps, by default MOST_STEPS."""
        self.steps = MOST_STEPS if steps is None else steps
        self.spent = 0

    def spend(self, steps: int) -> None:
        """Record steps before the work is done. Raises TooMuchWorkError if the budget is exceeded."""
        self.spent += steps
        if self.spent > self.steps:
            raise TooMuchWorkError(f"the automaton takes more than {self.steps:,} steps to be made deterministic")

    def check_states(self, states: int) -> None:
        """Check the number of new states: no limit here, since steps bound it."""


MOST_ITERATIONS = 200
NEARLY_ONE = 1e-9  # a radius closer to 1 counts as 1
LONGEST_SHOWN = 12  # words of a cycle in an error


class InfiniteMassError(ValueError):
    """The strings of an automaton have no finite sum. `cycle` is a cycle with a part in it, as tokens."""

    def __init__(self, cycle: list[int], log_weight: float) -> None:
        super().__init__(f"the strings of the automaton have an infinite sum: the cycle of the tokens {cycle}")
        self.cycle, self.log_weight = cycle, log_weight

    def described(self, symbols: tuple[str, ...]) -> str:
        """Return the message with words of the dictionary."""
        words = " ".join(symbols[token] for token in self.cycle[:LONGEST_SHOWN])
        more = " …" if len(self.cycle) > LONGEST_SHOWN else ""
        return (
            f"expected weights whose sum over all strings is finite, found the cycle `{words}{more}` of weight "
            f"{np.exp(self.log_weight):.4g}, which strings can repeat without end; make its weights smaller, or "
            "leave all weights out: then the automaton is a set of strings"
        )


def check_mass(automaton: Automaton) -> None:
    """Raise InfiniteMassError if a trimmed automaton has no finite sum (module docstring)."""
    states = automaton.arc_states
    inner = (automaton.tokens != END) & (automaton.chain_end != ROOT)[states]
    if not automaton.log_weights.any():
        return
    from scipy.sparse import csr_matrix  # imported late: it takes a tenth of a second
    from scipy.sparse.csgraph import connected_components

    origins, targets, arcs = states[inner], automaton.nexts[inner], np.flatnonzero(inner)
    size = automaton.num_states
    graph = csr_matrix((np.ones(len(arcs)), (origins, targets)), shape=(size, size))
    _, part = connected_components(graph, connection="strong")
    inside = part[origins] == part[targets]  # arcs that are on some cycle
    origins, targets, arcs = origins[inside], targets[inside], arcs[inside]
    # the parts are independent: one matrix contains all of them
    with np.errstate(over="ignore"):
        weights = np.exp(automaton.log_weights[arcs])
    if len(arcs) and not np.isfinite(weights).all():
        weights = np.minimum(weights, 1e100)
    matrix = csr_matrix((weights, (origins, targets)), shape=(size, size))
    on_cycle = np.unique(origins)
    vector = np.ones(size)
    high = np.full(size, np.inf)
    for _ in range(MOST_ITERATIONS if len(arcs) else 0):
        image = matrix @ vector
        ratio = image[on_cycle] / vector[on_cycle]
        low, high = np.full(size, np.inf), np.zeros(size)
        np.minimum.at(low, part[on_cycle], ratio)
        np.maximum.at(high, part[on_cycle], ratio)
        too_heavy = low[part[on_cycle]] >= 1 - NEARLY_ONE
        if too_heavy.any():
            raise _infinite(automaton, vector, int(on_cycle[too_heavy.argmax()]), origins, targets, arcs)
        if (high[part[on_cycle]] < 1 - NEARLY_ONE).all():
            return
        vector = image + vector
        top = np.zeros(size)
        np.maximum.at(top, part[on_cycle], vector[on_cycle])
        vector[on_cycle] /= top[part[on_cycle]]
        vector = np.maximum(vector, 1e-250)
    undecided = high[part[on_cycle]] >= 1 - NEARLY_ONE
    if undecided.any() and not _is_finite(matrix, on_cycle):
        raise _infinite(automaton, vector, int(on_cycle[undecided.argmax()]), origins, targets, arcs)


def _is_finite(matrix: csr_matrix, on_cycle: np.ndarray) -> bool:
    """Return whether (I − M) v = 1 has a positive solution. on_cycle: the states with rows of M."""
    from scipy.sparse import identity
    from scipy.sparse.linalg import splu

    inner = matrix[on_cycle][:, on_cycle]
    try:
        solution = splu((identity(len(on_cycle)) - inner).tocsc()).solve(np.ones(len(on_cycle)))
    except RuntimeError:  # singular: the radius is 1
        return False
    return bool(np.isfinite(solution).all() and (solution > 0).all() and (inner @ solution < solution).all())


def _infinite(
    automaton: Automaton, vector: np.ndarray, state: int, origins: np.ndarray, targets: np.ndarray, arcs: np.ndarray
) -> InfiniteMassError:
    """Return the error with the cycle on the heaviest path from a state."""
    value = automaton.log_weights[arcs] + np.log(vector[targets])
    path: list[int] = []
    seen: dict[int, int] = {}
    while state not in seen:
        seen[state] = len(path)
        choices = np.flatnonzero(origins == state)
        best = choices[value[choices].argmax()]
        path.append(int(arcs[best]))
        state = int(targets[best])
    cycle = path[seen[state] :]
    return InfiniteMassError(automaton.tokens[cycle].tolist(), float(automaton.log_weights[cycle].sum()))
