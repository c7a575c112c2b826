"""The automaton of a prior: a background that knows the words before (n-grams, grammars), and what it was made with.

Sizes: V words, Q states, A arcs, F starts (of use, and of held-out folds).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairseq_llrnn.automata.automaton import END, NOTHING, ROOT, Automaton
from fairseq_llrnn.automata.characters import BETWEEN
from fairseq_llrnn.prior.arrays import read_array

KINDS = ("ngram", "automaton")
ON_ZERO = ("error", "skip", "floor")  # what becomes of training sentences to which it gives probability zero
FLOOR = 1e-6  # of b₀, what --on-zero floor gives to words that an automaton forbids
INTEGERS = ("starts", "offsets", "tokens", "nexts", "fail", "root_next")
NUMBERS = ("log_weights", "back_off")


@dataclass(frozen=True)
class PriorAutomaton:
    """An automaton over the prior's log_weights, which are its root b₀."""

    automaton: Automaton
    kind: str  # one of KINDS
    weight: float = 1.0  # as `llrnn prior --ngram-weight`
    temperature: float = 1.0
    on_zero: str = "error"
    copies: bool = False  # whether texts spelled in characters can hold the words of their source, too

    @property
    def folds(self) -> int:
        """How many folds training holds out."""
        return len(self.automaton.starts) - 1

    def arrays(self) -> dict[str, np.ndarray]:
        """For arrays.npz."""
        return {f"automaton_{name}": getattr(self.automaton, name) for name in (*INTEGERS, *NUMBERS)}

    def description(self) -> dict[str, Any]:
        """All but the arrays, for the prior's JSON."""
        return {
            "kind": self.kind,
            "weight": self.weight,
            "temperature": self.temperature,
            "on_zero": self.on_zero,
            "memory": self.automaton.memory,
            "copies": self.copies,
        }

    def counts(self) -> dict[str, int]:
        """The sizes a reader wants to see: of the model of use, not of each fold."""
        block = self.automaton.num_states // len(self.automaton.starts)
        sizes = {"automaton states": block, "automaton arcs": int(self.automaton.offsets[block])}
        return sizes | ({"held-out folds": self.folds} if self.folds else {})


def read_prior_automaton(
    arrays: Mapping[str, np.ndarray], description: Mapping[str, Any], log_weights: np.ndarray
) -> PriorAutomaton:
    """The automaton of a prior that may come from a stranger, checked.

    Raises:
        ValueError, KeyError, TypeError: it is something else, or unsound.
    """
    names = ("kind", "weight", "temperature", "on_zero", "memory")
    kind, weight, temperature, on_zero, memory = (description[name] for name in names)
    copies = description.get("copies", False)  # which the first priors of version 3 do not have
    numbers = isinstance(weight, float) and isinstance(temperature, float)
    memorised = memory is None or (isinstance(memory, int) and not isinstance(memory, bool))
    if not (kind in KINDS and on_zero in ON_ZERO and numbers and memorised and isinstance(copies, bool)):
        raise ValueError(f"the automaton is described by something else than {', '.join(names)}, copies")
    found = {name: read_array(arrays, f"automaton_{name}", np.int64) for name in INTEGERS}
    found |= {name: read_array(arrays, f"automaton_{name}", np.float64) for name in NUMBERS}
    automaton = Automaton(num_symbols=len(log_weights), memory=memory, **found)
    automaton.check(log_weights)
    if copies and (kind != "automaton" or automaton.num_states <= BETWEEN):
        raise ValueError("the automaton is none of words spelled in characters, and can hold none of a source")
    return PriorAutomaton(automaton, kind, weight, temperature, on_zero, copies)


def tempered(automaton: Automaton, temperature: float) -> Automaton:
    """The automaton of b^(1/T), over the root b₀^(1/T): log weights and costs of failing are divided by T."""
    return replace(
        automaton, log_weights=automaton.log_weights / temperature, back_off=automaton.back_off / temperature
    )


def floored(automaton: Automaton, log_weights: np.ndarray) -> Automaton:
    """The automaton that gives words which it forbids FLOOR · b₀ instead; after such a word, all is as b₀ has it.

    The state after it is a new one, the last; sentences that the automaton allows have the same weights as before.

    Args:
        log_weights: log b₀, (V,).
    """
    free = automaton.num_states
    nothing = automaton.fail == NOTHING
    root_next = automaton.root_next.copy()
    if (automaton.chain_end == NOTHING).all():  # else the root has states of its own to go on in
        root_next = np.where(np.isfinite(log_weights), free, -1).astype(np.int64)
        root_next[END] = automaton.starts[0] if np.isfinite(log_weights[END]) else -1
    return replace(
        automaton,
        offsets=np.append(automaton.offsets, automaton.offsets[-1]),
        fail=np.append(np.where(nothing, ROOT, automaton.fail), ROOT),
        back_off=np.append(np.where(nothing, np.log(FLOOR), automaton.back_off), 0.0),
        root_next=root_next,
    )
