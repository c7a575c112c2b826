"""Combinations of backgrounds: temperatures, products, and backgrounds that depend on the source.

Sizes: N hypotheses, B batch, T time, L source length, K parts, E words listed in all rows.

`Combined` modules hold the parts. `BoundCombined` binds them to a batch. Its states are those of the parts
(`JointStates`). By default, every part must allow a word.

`Tempered` is b(K, x)^(1/T) for a temperature T; a large T is nearer to uniform. It tempers the weight of each word, so
that masses of signatures change as well. Forbidden words stay forbidden. If the part lists words, so does this;
otherwise all words are computed.

A `Product` allows a word if every part does (grammar × statistics).

    b(K, x)  =  Π_i b_i(K, x)                                             not normalised: p(x | K) is

If a part lists all words that it allows (a grammar), the other parts compute the weights of only these E words.
Otherwise, if all parts have a root, the product of the roots is the root, and the product lists the words that any part
lists.

`BySource` depends on the source sentence. Without a source it is the background below.

    BySource(below, lambda base, source: ContextClasses(base, WordsOf(source)))
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.background import Background, BoundBackground
from fairseq_llrnn.backgrounds.class_weights import ExplicitWeights, side_by_side
from fairseq_llrnn.backgrounds.explicit_background import BoundExplicit, ExplicitBackground
from fairseq_llrnn.backgrounds.states import JointStates, States
from fairseq_llrnn.features.dictionary import plain
from fairseq_llrnn.files.numbers import is_temperature, temperature_range


def check_parts(kind: str, parts: Sequence[Background]) -> None:
    """Raise ValueError unless there are parts, all over the same words and signatures. `kind` starts the message."""
    if not parts:
        raise ValueError(f"{kind}: expected at least one background, found none")
    first = parts[0]
    for part in parts[1:]:
        if part.num_classes != first.num_classes or not torch.equal(part.class_of, first.class_of):
            raise ValueError(
                f"{kind}: expected backgrounds over the same {len(first.class_of):,} words in "
                f"{first.num_classes:,} signatures, found one over {len(part.class_of):,} in {part.num_classes:,}"
            )


class Combined(ExplicitBackground):
    """A background made of `parts`, over the same words and signatures."""

    parts: nn.ModuleList
    bound: ClassVar[type[BoundCombined]]

    def __init__(self, parts: Sequence[Background], root_log_weights: Tensor | None, is_exhaustive: bool) -> None:
        """parts: checked by `check_parts`. root_log_weights: as in ExplicitBackground."""
        super().__init__(parts[0].class_of, parts[0].num_classes, root_log_weights)
        self.parts, self.is_exhaustive = nn.ModuleList(parts), is_exhaustive

    def part_modules(self) -> list[Background]:
        """Return the parts."""
        return [part for part in self.parts if isinstance(part, Background)]

    def gates(self, hidden_size: int) -> None:
        for part in self.part_modules():
            part.gates(hidden_size)

    def bind(self, source: Tensor | None = None, text: Tensor | None = None) -> BoundBackground:
        return self.bound(self, [part.bind(source, text) for part in self.part_modules()])


class BoundCombined(BoundExplicit):
    """A Combined background in one batch or search."""

    def __init__(self, module: Combined, parts: Sequence[BoundBackground]) -> None:
        """parts: of the module, bound to the batch."""
        super().__init__(module)
        if any(part.num_classes != self.num_classes for part in parts):
            raise ValueError(
                f"{type(module).__name__}: a part has its own classes for this sentence; put evidence and open words "
                "around a product or mixture, not into it"
            )
        self.is_exhaustive = module.is_exhaustive
        # parts may depend on the source: known only after bind
        self.is_context_independent = all(part.is_context_independent for part in parts)
        self.parts = list(parts)
        self.sparse = self.root is not None and not self.is_context_independent

    def _with_parts(self, parts: list[BoundBackground]) -> Self:
        """Return this background with other parts, or itself if they are the same."""
        if all(new is old for new, old in zip(parts, self.parts, strict=True)):
            return self
        other = copy.copy(self)
        other.parts, other._last = parts, None
        return other

    def explicit_of_parts(self, state: JointStates) -> list[ExplicitWeights]:
        """Return the listed weights of all parts with a root."""
        return [
            weights for part, substate in self.of_parts(state) if (weights := part.sparse_weights(substate)) is not None
        ]

    # ---- hidden states and limits -----------------------------------------------------------------------------------

    def with_hidden(self, hidden: Tensor) -> BoundBackground:
        return self._with_parts([part.with_hidden(hidden) for part in self.parts])

    def select_rows(self, index: Tensor) -> BoundBackground:
        return self._with_parts([part.select_rows(index) for part in self.parts])

    def possible_words(self) -> Tensor:
        return torch.stack([part.possible_words() for part in self.parts]).all(0)

    def steps_to_end(self, state: JointStates) -> Tensor:
        return torch.stack([part.steps_to_end(substate) for part, substate in self.of_parts(state)]).amax(0)

    def with_max_length(self, remaining: int) -> BoundBackground:
        if self.unlimited(remaining):
            return self
        limited = copy.copy(self)
        limited.remaining = remaining
        return limited

    def unlimited(self, remaining: int) -> bool:
        """Return whether this limit changes nothing."""
        return all(part.with_max_length(remaining) is part for part in self.parts)

    @property
    def has_dead_ends(self) -> bool:
        return any(part.has_dead_ends for part in self.parts)

    # ---- states -----------------------------------------------------------------------------------------------------

    def start(self, n: int) -> JointStates:
        return JointStates([part.start(n) for part in self.parts])

    def advance(self, state: JointStates, tokens: Tensor) -> JointStates:
        return JointStates([part.advance(substate, tokens) for part, substate in self.of_parts(state)])

    def flat_states(self, previous: Tensor) -> JointStates:
        return JointStates([part.flat_states(previous) for part in self.parts])

    def of_parts(self, state: JointStates) -> list[tuple[BoundBackground, States]]:
        """Return each part with its states."""
        return list(zip(self.parts, state.parts, strict=True))


class BoundTempered(BoundCombined):
    """A Tempered background in one batch or search."""

    module: Tempered

    def sparse_weights(self, state: JointStates) -> ExplicitWeights | None:
        ((part, substate),) = self.of_parts(state)
        weights = part.sparse_weights(substate)
        if weights is None:
            return None
        by = self.module.temperature
        return replace(weights, log_weights=weights.log_weights / by, constant=weights.constant / by)

    def dense_log_weights(self, state: JointStates) -> Tensor:
        ((part, substate),) = self.of_parts(state)
        return part.log_weights(substate) / self.module.temperature

    def log_weights_at(self, state: JointStates, rows: Tensor, tokens: Tensor) -> Tensor:
        ((part, substate),) = self.of_parts(state)
        return part.log_weights_at(substate, rows, tokens) / self.module.temperature


class Tempered(Combined):
    """b^(1/T)."""

    bound = BoundTempered

    def __init__(self, part: Background, temperature: float) -> None:
        """temperature: T, one of TEMPERATURES; 1 changes nothing.

        Raises:
            ValueError: another temperature.
        """
        if not is_temperature(temperature):
            raise ValueError(f"temperature {temperature}: expected {temperature_range()}")
        bound = part.bind()
        root = bound.root_log_weights()
        super().__init__([part], None if root is None else root / temperature, bound.is_exhaustive)
        self.temperature = temperature


class BoundProduct(BoundCombined):
    """A Product in one batch or search.

    `steps_to_end` is the maximum of the parts. It is exact if at most one part (a grammar) limits where a string ends.
    If several do, it is a lower bound, because their shortest endings may differ.
    """

    # ---- weights ----------------------------------------------------------------------------------------------------

    def sparse_weights(self, state: JointStates) -> ExplicitWeights | None:
        if self.root is None:
            return None
        if self.is_exhaustive:
            return self._of_the_closed(self.of_parts(state))
        explicit = self.explicit_of_parts(state)
        roots = [root for part in self.parts if (root := part.root_log_weights()) is not None]
        keys, log_weights = side_by_side(explicit, roots)
        rooted = [weights.rooted for weights in explicit if weights.rooted is not None]
        return ExplicitWeights(
            num_words=len(self.class_of),
            keys=keys,
            log_weights=torch.stack(log_weights).sum(0),
            constant=torch.stack([weights.constant for weights in explicit]).sum(0),
            rooted=torch.stack(rooted).all(0) if rooted else None,
        )

    def _of_the_closed(self, parts: list[tuple[BoundBackground, Tensor]]) -> ExplicitWeights | None:
        """Return the words of the first exhaustive part, weighted by all parts."""
        index = next(i for i, (part, _) in enumerate(parts) if part.is_exhaustive)
        part, substate = parts[index]
        weights = part.sparse_weights(substate)
        assert weights is not None
        rows, tokens = weights.rows, weights.tokens
        others = [p.log_weights_at(s, rows, tokens) for i, (p, s) in enumerate(parts) if i != index]
        return replace(weights, log_weights=sum(others, weights.log_weights))

    def dense_log_weights(self, state: JointStates) -> Tensor:
        weights = [part.log_weights(substate) for part, substate in self.of_parts(state)]
        return sum(weights[1:], weights[0]).expand(len(state), -1)


class Product(Combined):
    """Π b_i."""

    bound = BoundProduct

    def __init__(self, parts: Sequence[Background]) -> None:
        """parts: over the same words and signatures. Products, mixtures, … are allowed.

        Raises:
            ValueError: no parts, or parts over other words or signatures.
        """
        check_parts("Product", parts)
        bound = [part.bind() for part in parts]
        closed = [part for part in bound if part.is_exhaustive and part.root_log_weights() is not None]
        roots = [part.root_log_weights() for part in (closed[:1] or bound)]
        static_roots = [root for root in roots if root is not None]
        whole = bool(static_roots) and len(static_roots) == len(roots)
        super().__init__(parts, torch.stack(static_roots).sum(0) if whole else None, bool(closed))


class BySource(Background):
    """A background that is built from another one for each batch, by default given its source."""

    def __init__(
        self,
        base: Background,
        by_source: Callable[[BoundBackground, Any], BoundBackground] | None = None,
        needs_source: bool = True,
    ) -> None:
        """by_source: makes the bound background from the bound `base` and the source (B, L), whose tokens have no
        marks.

        A subclass may override `bind`, whose source tokens may have marks.

        Args:
            needs_source: whether it is `base` without a source; if not, `by_source` gets None for the source.
        """
        super().__init__(base.class_of, base.num_classes)
        self.base, self.by_source, self.needs_source = base, by_source, needs_source

    def bind(self, source: Tensor | None = None, text: Tensor | None = None) -> BoundBackground:
        base = self.base.bind(source, text)
        if self.by_source is None or (source is None and self.needs_source):
            return base
        return self.by_source(base, None if source is None else plain(source))
