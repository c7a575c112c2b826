"""Automata as a part of a prior: backgrounds that know the words before (n-grams, grammars), and their settings.

Sizes: V words, n sentences, N pairs of a state and a token.

`first_impossible` finds sentences to which an automaton gives probability zero: training on one would have an
infinite loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairseq_llrnn import defaults
from fairseq_llrnn.automata.automaton import END, NOTHING, ROOT, Automaton
from fairseq_llrnn.files.numbers import is_temperature
from fairseq_llrnn.ngrams.ngrams import Sentences
from fairseq_llrnn.prior.arrays import check_log_weights
from fairseq_llrnn.prior.part import BuildContext, Facts, Part, SavedPart, register_part

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.base import Background
    from fairseq_llrnn.prior.prior import Prior


POSSIBLE = -1


def step(automaton: Automaton, log_weights: np.ndarray, states: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """The states (N,) after `tokens` (N,); −1 where the background gives a token no weight.

    Args:
        log_weights: log b₀, (V,), where failing ends in ROOT.
    """
    arcs, end, _ = automaton.look_up(states, tokens)
    after = np.full(len(states), -1, dtype=np.int64)
    after[arcs >= 0] = automaton.nexts[arcs[arcs >= 0]]
    rooted = (end == ROOT) & np.isfinite(log_weights[tokens])
    block = np.where(tokens == END, 0, states // automaton.block_size * automaton.block_size)
    after[rooted] = (automaton.root_next[tokens] + block)[rooted]
    return after


def first_impossible(automaton: Automaton, log_weights: np.ndarray, sentences: Sentences) -> np.ndarray:
    """Where each sentence meets its first word without weight: (n,) places from 0, that of </s> being its length.

    POSSIBLE for a sentence that has some probability.
    """
    places = np.full(len(sentences), POSSIBLE, dtype=np.int64)
    if (automaton.chain_end == ROOT).all() and np.isfinite(log_weights[np.append(sentences.tokens, END)]).all():
        return places
    begins = sentences.lengths.cumsum() - sentences.lengths
    going, states = np.arange(len(sentences)), np.full(len(sentences), automaton.starts[0])
    padded = np.append(sentences.tokens, END)
    for place in range(int(sentences.lengths.max(initial=0)) + 1):
        ends = sentences.lengths[going] == place
        tokens = np.where(ends, END, padded[np.minimum(begins[going] + place, len(sentences.tokens))])
        after = step(automaton, log_weights, states, tokens)
        places[going[after < 0]] = place
        on = (after >= 0) & ~ends
        going, states = going[on], after[on]
    return places


ORIGINS = ("ngram", "automaton")
ON_ZERO = defaults.ON_ZERO  # what becomes of training sentences to which it gives probability zero
ZERO_TEXTS = {"error": "an error", "skip": "left out of training", "floor": "given a little weight"}
FLOOR = defaults.AUTOMATON_FLOOR  # of b₀, what on_zero=floor gives to words that an automaton forbids
INTEGERS = ("starts", "offsets", "tokens", "nexts", "fail", "root_next")
NUMBERS = ("log_weights", "back_off")


@register_part("automaton")
@dataclass(frozen=True)
class AutomatonPart(Part):
    """An automaton over a root b₀."""

    automaton: Automaton
    made_from: str  # one of MADE_FROM
    weight: float = 1.0  # as `weight` of ngram(N, …)
    temperature: float = 1.0
    on_zero: str = "error"
    root: np.ndarray | None = None  # (V,) float64, its own log b₀; None: that of the prior

    is_base = True

    @property
    def leaves_out(self) -> bool:
        return self.on_zero == "skip"

    def impossible(self, prior: Prior, sentences: Sequence[Sequence[int]]) -> np.ndarray:
        return first_impossible(self.automaton, self.root_of(prior.log_weights), Sentences.of(sentences))

    @property
    def folds(self) -> int:
        """How many folds training is cross-fitted in."""
        return len(self.automaton.starts) - 1

    @property
    def forbids(self) -> bool:
        """Whether some state forbids what it has no arc for, as grammars do."""
        return bool((self.automaton.fail == NOTHING).any())

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {name: getattr(self.automaton, name) for name in (*INTEGERS, *NUMBERS)}
        return arrays if self.root is None else arrays | {"root": self.root}

    def description(self) -> dict[str, Any]:
        return {
            "made_from": self.made_from,
            "weight": self.weight,
            "temperature": self.temperature,
            "on_zero": self.on_zero,
            "memory": self.automaton.memory,
        }

    @property
    def identity(self) -> str:
        return ""  # the arrays say it all

    @classmethod
    def read(cls, saved: SavedPart) -> AutomatonPart:
        names = ("made_from", "weight", "temperature", "on_zero", "memory")
        origin, weight, temperature, on_zero, memory = (saved.description[name] for name in names)
        numbers = isinstance(weight, float) and 0.0 <= weight <= 1.0 and is_temperature(temperature)
        memorised = memory is None or (isinstance(memory, int) and not isinstance(memory, bool))
        if not (origin in ORIGINS and on_zero in ON_ZERO and numbers and memorised):
            raise ValueError(f"the automaton is described by something else than {', '.join(names)}")
        arrays = {name: saved.array(name, np.int64) for name in INTEGERS}
        arrays |= {name: saved.array(name, np.float64) for name in NUMBERS}
        size, root = len(saved.prior.symbols), saved.array("root", np.float64) if "root" in saved.arrays else None
        if root is not None:
            check_log_weights(root, size)
        automaton = Automaton(num_symbols=size, memory=memory, **arrays)
        part = cls(automaton, origin, weight, temperature, on_zero, root)
        automaton.check(part.root_of(saved.prior.log_weights))
        dead = (automaton.fail == NOTHING) & (np.diff(automaton.offsets) == 0)
        if dead.any():  # who reads an automaton trims it; here, all weights of a position would be zero
            raise ValueError(f"the automaton allows no word in state {int(dead.argmax())}")
        return part

    def root_of(self, log_weights: np.ndarray) -> np.ndarray:
        """log b₀ of the automaton in a prior with these log_weights: (V,)."""
        return log_weights if self.root is None else self.root

    def background(self, below: Background, context: BuildContext) -> Background:
        import torch

        from fairseq_llrnn.backgrounds.automaton import AutomatonBackground

        root = torch.from_numpy(self.root_of(context.prior.log_weights).copy())
        return AutomatonBackground(context.class_of, context.num_classes, root, self.automaton)

    def reweighed(self, change: Callable[[np.ndarray], np.ndarray]) -> AutomatonPart:
        return self if self.root is None else replace(self, root=change(self.root))

    def lines(self, prior: Prior) -> list[str]:
        lines = ["n-grams" if self.made_from == "ngram" else "an automaton"]
        if self.folds:
            lines.append(f"cross-fitted in training, {self.folds} folds")
        lines += [f"{name} {value:g}" for name in ("weight", "temperature") if (value := getattr(self, name)) != 1.0]
        if self.made_from == "automaton":
            lines.append(f"sentences it forbids are {ZERO_TEXTS[self.on_zero]}")
        return lines

    def word(self, prior: Prior, index: int) -> Facts:
        """How often it is read, and what it weighs at the beginning of a sentence."""
        arcs = int((self.automaton.tokens[: self.counts()["automaton arcs"]] == index).sum())
        start, root = self.automaton.starts[:1], self.root_of(prior.log_weights)
        (begins,) = self.automaton.log_weights_at(start, np.array([index]), root)
        return {self.made_from: [f"arcs that read it: {arcs:,}", f"log weight at the beginning: {begins:.3g}"]}

    def counts(self) -> dict[str, int]:
        """Of the model of use, not of each fold."""
        block = self.automaton.num_states // len(self.automaton.starts)
        sizes = {"automaton states": block, "automaton arcs": int(self.automaton.offsets[block])}
        return sizes | ({"cross-fitted folds": self.folds} if self.folds else {})


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
