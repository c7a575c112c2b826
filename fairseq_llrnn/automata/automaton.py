"""A deterministic weighted automaton with failure arcs over the dictionary's symbols, as arrays.

Sizes: V symbols, Q states, A arcs, F starts. Weights are natural logarithms in float64. Source: failure arcs as in
Allauzen, Mohri & Roark 2003, "Generalized Algorithms for Constructing Statistical Language Models", §4.

    log b(q, x)  =  the weight of q's arc for x, if it has one
                    back_off[q] + log b(fail[q], x)  otherwise
    log b(ROOT, x) = log b₀(x), the static weights of the prior;   log b(NOTHING, x) = −inf

`</s>` is a symbol like others: a state is final if it has weight for it. After it a new sentence begins, in starts[0].
A chain of failures that ends in NOTHING has one step only: trimming.py writes longer ones out as arcs. So a state
either has arcs for all of its words, or allows every word that b₀ allows.

An automaton may contain the same model F times, as estimated from all of a text and without each of its folds
(ngrams/folds.py). Then its states are F blocks of Q / F, block k has starts[k], `root_next` has indices in a block, and
only arcs for </s> leave their block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairseq_llrnn.features.dictionary import EOS, SPECIALS
from fairseq_llrnn.features.feature_table import are_rows
from fairseq_llrnn.files.numbers import LARGEST_STORED_LOG

NOTHING, ROOT = -1, -2  # values of `fail` other than states
END = SPECIALS.index(EOS)  # the id of </s> in fairseq's dictionaries
LONGEST_CHAIN = 64  # failures in a row; an n-gram of order n has n


@dataclass(frozen=True)
class Automaton:
    """Arrays of a deterministic automaton with failure arcs (module docstring). `check` validates them."""

    num_symbols: int  # V
    starts: np.ndarray  # (F,) int64; starts[0] is for searches, the others are for folds (cross-fitting)
    offsets: np.ndarray  # (Q + 1,) int64, the arcs of state q are offsets[q] … offsets[q + 1] − 1
    tokens: np.ndarray  # (A,) int64, ascending inside a state
    nexts: np.ndarray  # (A,) int64
    log_weights: np.ndarray  # (A,) float64, finite; −inf only in a product (backgrounds/mixture.py)
    fail: np.ndarray  # (Q,) int64, a state, NOTHING or ROOT
    back_off: np.ndarray  # (Q,) float64, log weight of failing; 0 for NOTHING
    root_next: np.ndarray  # (V,) int64, state of the block after a word of the root; −1 if it is never needed
    memory: int | None = None  # number of last words that determine the state (n-gram order − 1); None: all

    @property
    def num_states(self) -> int:
        return len(self.fail)

    @property
    def block_size(self) -> int:
        """The number of states of one of the F models."""
        return self.num_states // len(self.starts)

    @property
    def num_arcs(self) -> int:
        return len(self.tokens)

    @property
    def arc_states(self) -> np.ndarray:
        """The source state of each arc: (A,)."""
        return np.repeat(np.arange(self.num_states), np.diff(self.offsets))

    @property
    def keys(self) -> np.ndarray:
        """The strictly ascending keys of the arcs, state · V + token: (A,) int64."""
        return self.arc_states * np.int64(self.num_symbols) + self.tokens

    @property
    def depth(self) -> np.ndarray:
        """The number of failures from a state to ROOT or NOTHING, at least 1: (Q,).

        Raises:
            ValueError: a chain of more than LONGEST_CHAIN failures, or a cycle.
        """
        depth = np.ones(self.num_states, dtype=np.int64)
        states = self.fail
        while (states >= 0).any():
            if depth.max() > LONGEST_CHAIN:
                state = int(np.flatnonzero(states >= 0)[0])
                raise ValueError(
                    f"expected chains of at most {LONGEST_CHAIN} failures, found a longer one from state {state}: "
                    "a cycle, or an automaton that should be written out"
                )
            depth += states >= 0
            states = np.where(states >= 0, self.fail[states], states)
        return depth

    @property
    def chain_end(self) -> np.ndarray:
        """The end of each state's chain of failures, ROOT or NOTHING: (Q,). Raises as `depth`."""
        states = self.fail
        for _ in range(int(self.depth.max(initial=1)) - 1):
            states = np.where(states >= 0, self.fail[states], states)
        return states

    @property
    def in_use(self) -> Automaton:
        """The first block alone: the model that was estimated from all of the text."""
        size, arcs = self.block_size, int(self.offsets[self.block_size])
        if size == self.num_states:
            return self
        return replace(
            self,
            starts=self.starts[:1],
            offsets=self.offsets[: size + 1],
            tokens=self.tokens[:arcs],
            nexts=self.nexts[:arcs],
            log_weights=self.log_weights[:arcs],
            fail=self.fail[:size],
            back_off=self.back_off[:size],
        )

    def look_up(self, states: np.ndarray, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find the arcs of tokens in states: (N,), (N,) -> (N,) each.

        Returns:
            The arc, or −1 if no state of the chain has one; its state, or the end of the chain, ROOT or NOTHING; and
                the log cost of failing to it.
        """
        keys = np.append(self.keys, np.iinfo(np.int64).max)  # one after all, for missing keys
        states_now, arcs, cost = states.copy(), np.full(len(states), -1, dtype=np.int64), np.zeros(len(states))
        open_ = np.flatnonzero(states_now >= 0)
        while len(open_):
            wanted = states_now[open_] * np.int64(self.num_symbols) + tokens[open_]
            places = np.searchsorted(keys, wanted)
            has_arc = keys[places] == wanted
            arcs[open_[has_arc]] = places[has_arc]
            open_ = open_[~has_arc]
            cost[open_] += self.back_off[states_now[open_]]
            states_now[open_] = self.fail[states_now[open_]]
            open_ = open_[states_now[open_] >= 0]
        return arcs, states_now, cost

    def log_weights_at(self, states: np.ndarray, tokens: np.ndarray, root: np.ndarray) -> np.ndarray:
        """Return log b(q, x) of states and tokens: (N,), (N,) -> (N,). root: log b₀, (V,)."""
        arcs, end, cost = self.look_up(states, tokens)
        weights = np.where(end == ROOT, root[tokens], -np.inf)
        weights[arcs >= 0] = self.log_weights[arcs[arcs >= 0]]
        return cost + weights

    def row(self, state: int) -> dict[int, tuple[float, int]]:
        """Return the arcs of one state: token -> log weight and next state."""
        span = slice(self.offsets[state], self.offsets[state + 1])
        values = zip(self.log_weights[span].tolist(), self.nexts[span].tolist(), strict=True)
        return dict(zip(self.tokens[span].tolist(), values, strict=True))

    def tempered(self, temperature: float) -> Automaton:
        """Return the automaton of b^(1/T), over the root b₀^(1/T)."""
        return replace(self, log_weights=self.log_weights / temperature, back_off=self.back_off / temperature)

    @classmethod
    def from_arcs(
        cls,
        num_symbols: int,
        num_states: int,
        start: int,
        states: np.ndarray,
        tokens: np.ndarray,
        nexts: np.ndarray,
        log_weights: np.ndarray,
    ) -> Automaton:
        """Build an automaton from arcs in any order, one per state and token. All states fail to NOTHING.

        Args:
            states, tokens, nexts: (A,) int64. log_weights: (A,).
        """
        order = np.lexsort((tokens, states))
        return cls(
            num_symbols=num_symbols,
            starts=np.array([start], dtype=np.int64),
            offsets=np.concatenate([[0], np.bincount(states, minlength=num_states).cumsum()]).astype(np.int64),
            tokens=tokens[order].astype(np.int64),
            nexts=nexts[order].astype(np.int64),
            log_weights=log_weights[order].astype(np.float64),
            fail=np.full(num_states, NOTHING, dtype=np.int64),
            back_off=np.zeros(num_states),
            root_next=np.full(num_symbols, -1, dtype=np.int64),
        )

    # ---- checks ---------------------------------------------------------------------------------------------------

    def check(self, log_weights: np.ndarray | None = None) -> None:
        """Raise ValueError if the arrays are no automaton. They may be untrusted input.

        Args:
            log_weights: log b₀ (V,), the static weights below the automaton: no arc may have a word that they forbid.
        """
        self._check_kinds()
        states, arcs, symbols = self.num_states, self.num_arcs, self.num_symbols
        if states == 0 or len(self.starts) == 0:
            raise ValueError("the automaton has no state to start in")
        if symbols <= END or states >= np.iinfo(np.int64).max // symbols:
            raise ValueError(f"the automaton has {symbols} symbols and {states} states, too few or too many")
        if len(self.offsets) != states + 1 or not are_rows(self.offsets, self.tokens, symbols):
            raise ValueError("the automaton's arcs lie outside its states or its symbols")
        if not (len(self.nexts) == len(self.log_weights) == arcs):
            raise ValueError("the automaton's arcs have other numbers of tokens, next states and weights")
        if len(self.back_off) != states or len(self.root_next) != symbols:
            raise ValueError("the automaton's failures or root have another size than its states or symbols")
        for name, pointers, least in (("starts", self.starts, 0), ("nexts", self.nexts, 0), ("fail", self.fail, ROOT)):
            if len(pointers) and not (pointers.min() >= least and pointers.max() < states):
                raise ValueError(f"the automaton's {name} name a state outside 0 … {states - 1}")
        block = states // len(self.starts)
        if states % len(self.starts) or (self.starts // block != np.arange(len(self.starts))).any():
            raise ValueError(f"the automaton's {states} states are no blocks for each of {len(self.starts)} starts")
        if not (self.root_next.min() >= -1 and self.root_next.max() < block):
            raise ValueError(f"the automaton's root_next name a state outside 0 … {block - 1}")
        leaves = (self.nexts // block != self.arc_states // block) & (self.tokens != END)
        fails_out = (self.fail >= 0) & (self.fail // block != np.arange(states) // block)
        if leaves.any() or fails_out.any():
            raise ValueError("the automaton has an arc or a failure from one of its models into another")
        if not (np.isfinite(self.log_weights).all() and np.isfinite(self.back_off).all()):
            raise ValueError("the automaton has a weight that is not finite")
        if max(np.abs(self.log_weights).max(initial=0), np.abs(self.back_off).max(initial=0)) > LARGEST_STORED_LOG:
            raise ValueError(f"the automaton has a weight whose logarithm is above {LARGEST_STORED_LOG:,.0f}")
        if arcs and (np.diff(self.keys) <= 0).any():
            raise ValueError("the automaton has a state whose tokens do not rise: two arcs on one token, or no order")
        self._check_failures()
        if (self.nexts[self.tokens == END] != self.starts[0]).any():
            raise ValueError("the automaton has an arc on </s> that does not lead to the start of the next sentence")
        if log_weights is not None:
            self._check_root(log_weights)

    def _check_kinds(self) -> None:
        kinds = dict.fromkeys(("starts", "offsets", "tokens", "nexts", "fail", "root_next"), "int64")
        for name, kind in (kinds | dict.fromkeys(("log_weights", "back_off"), "float64")).items():
            array = getattr(self, name)
            if array.dtype != kind or array.ndim != 1:
                raise ValueError(f"the automaton's {name} are {array.dtype} of shape {array.shape}, no row of {kind}")

    def _check_failures(self) -> None:
        ends = self.chain_end  # raises for a cycle
        if (ends[self.fail >= 0] == NOTHING).any():
            raise ValueError("the automaton has a chain of failures that ends in nothing and is not written out")
        if (self.back_off[self.fail == NOTHING] != 0).any():
            raise ValueError("the automaton has a weight for failing in a state that cannot fail")
        if self.memory is not None and not 0 <= self.memory <= LONGEST_CHAIN:
            raise ValueError(f"the automaton claims a memory of {self.memory} words, not of 0 to {LONGEST_CHAIN}")
        if self.memory is not None and not (ends == ROOT).all():
            raise ValueError(f"the automaton claims a memory of {self.memory} words, and has states that forbid words")

    def _check_root(self, log_weights: np.ndarray) -> None:
        if log_weights.shape != (self.num_symbols,):
            raise ValueError(f"the automaton has {self.num_symbols} symbols, the root {log_weights.shape}")
        forbidden = ~np.isfinite(log_weights)
        on_forbidden = forbidden[self.tokens]
        if on_forbidden.any():
            arc = int(on_forbidden.argmax())
            raise ValueError(
                f"the automaton has an arc on token {self.tokens[arc]} in state {self.arc_states[arc]}, "
                "which the static background forbids"
            )
        if (self.chain_end == ROOT).any() and (self.root_next[~forbidden] < 0).any():
            token = int(np.flatnonzero((self.root_next < 0) & ~forbidden)[0])
            raise ValueError(f"the automaton has no state for what follows token {token} when the root gave it")
        if (self.chain_end == ROOT).any() and self.root_next[END] not in (-1, self.starts[0]):
            raise ValueError("the automaton has a </s> from the root that does not lead to the start")
