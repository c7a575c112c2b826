"""Combinations of backgrounds: temperatures and products.

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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.background import Background, BoundBackground, StaticBackground, View
from fairseq_llrnn.backgrounds.cached import cached_property
from fairseq_llrnn.backgrounds.class_weights import ExplicitWeights, side_by_side
from fairseq_llrnn.backgrounds.listed_view import ListedView
from fairseq_llrnn.backgrounds.states import JointStates, States
from fairseq_llrnn.files.numbers import is_temperature, temperature_range


def check_parts(kind: str, parts: Sequence[Background]) -> None:
    """Raise ValueError unless there are parts, all over the same words and signatures. `kind` starts the message."""
    if not parts:
        raise ValueError(f"{kind}: expected at least one background, found none")
    first = parts[0]
    for part in parts[1:]:
        same = part.num_classes == first.num_classes and len(part.class_of) == len(first.class_of)
        if same and not torch.equal(part.class_of, first.class_of):
            word = int(part.class_of.ne(first.class_of).nonzero()[0])
            raise ValueError(f"{kind}: expected backgrounds with the same signatures, found another for word {word}")
        if not same:
            raise ValueError(
                f"{kind}: expected backgrounds over the same {len(first.class_of):,} words in "
                f"{first.num_classes:,} signatures, found one over {len(part.class_of):,} in {part.num_classes:,}"
            )


class Combined(Background):
    """A background made of `parts`, over the same words and signatures."""

    parts: nn.ModuleList
    bound: ClassVar[type[BoundCombined]]

    def __init__(self, parts: Sequence[Background], root_log_weights: Tensor | None, is_exhaustive: bool) -> None:
        """parts: checked by `check_parts`. root_log_weights: (V,), or None if there is no root."""
        super().__init__(parts[0].class_of, parts[0].num_classes)
        root = root_log_weights
        self.static = None if root is None else StaticBackground(self.class_of, self.num_classes, root)
        self.parts, self.is_exhaustive = nn.ModuleList(parts), is_exhaustive

    @property
    def root(self) -> StaticBackground | None:
        return self.static

    def part_modules(self) -> list[Background]:
        """Return the parts."""
        return [part for part in self.parts if isinstance(part, Background)]

    def gates(self, hidden_size: int) -> None:
        for part in self.part_modules():
            part.gates(hidden_size)

    def bind(self, source: Tensor | None = None, text: Tensor | None = None) -> BoundBackground:
        return self.bound(self, [part.bind(source, text) for part in self.part_modules()])


class BoundCombined(BoundBackground):
    """A Combined background in one batch or search."""

    def __init__(self, module: Combined, parts: Sequence[BoundBackground]) -> None:
        """parts: of the module, bound to the batch."""
        super().__init__(module.class_of, module.num_classes)
        if any(part.num_classes != self.num_classes for part in parts):
            raise ValueError(
                f"{type(module).__name__}: a part has its own classes for this sentence; put evidence and open words "
                "around a product or mixture, not into it"
            )
        self.module, self.is_exhaustive = module, module.is_exhaustive
        # parts may depend on the source: known only after bind
        self.is_context_independent = all(part.is_context_independent for part in parts)
        self.parts = list(parts)
        self.most_steps = max(part.most_steps for part in parts)
        self.has_dead_ends = any(part.has_dead_ends for part in parts)

    @property
    def root(self) -> StaticBackground | None:
        return self.module.root

    def possible_words(self) -> Tensor:
        return torch.stack([part.possible_words() for part in self.parts]).all(0)

    # ---- states -----------------------------------------------------------------------------------------------------

    def start(self, n: int) -> JointStates:
        return JointStates([part.start(n) for part in self.parts])

    def advance(self, states: JointStates, tokens: Tensor) -> JointStates:
        return JointStates([part.advance(substates, tokens) for part, substates in self.of_parts(states)])

    def flat_states(self, previous: Tensor) -> JointStates:
        return JointStates([part.flat_states(previous) for part in self.parts])

    def of_parts(self, states: JointStates) -> list[tuple[BoundBackground, States]]:
        """Return each part with its states."""
        return list(zip(self.parts, states.parts, strict=True))

    def steps_to_end(self, states: JointStates) -> Tensor:
        return torch.stack([part.steps_to_end(substates) for part, substates in self.of_parts(states)]).amax(0)

    # ---- weights ----------------------------------------------------------------------------------------------------

    def view(self, states: JointStates, hidden: Tensor | None = None, remaining: int | None = None) -> View:
        parts = [part.view(substates, hidden) for part, substates in self.of_parts(states)]
        return self.view_by(parts, hidden, remaining)

    def view_of(self, previous: Tensor, hidden: Tensor | None = None) -> View:
        if self.is_context_independent:
            return super().view_of(previous)
        return self.view_by([part.view_of(previous, hidden) for part in self.parts], hidden)

    def view_by(self, parts: Sequence[View], hidden: Tensor | None, remaining: int | None = None) -> View:
        """Return the view of N rows, given those of the parts."""
        states = JointStates([part.states for part in parts])
        if self.root is None:
            return CombinedView(self, states, parts, hidden, remaining)
        return ListedView(self, states, self.listed(parts), remaining)

    def listed(self, parts: Sequence[View]) -> ExplicitWeights:
        """Return the weights of N rows, given the views of the parts, if there is a root."""
        raise NotImplementedError

    def combined(self, parts: Sequence[Tensor]) -> Tensor:
        """Return log weights, given those of the parts: (…,) each."""
        raise NotImplementedError


class CombinedView(View):
    """Weights that parts do not list: all words are computed."""

    bound: BoundCombined

    def __init__(
        self, bound: BoundCombined, states: States, parts: Sequence[View], hidden: Tensor | None, remaining: int | None
    ) -> None:
        super().__init__(bound, states, hidden, remaining)
        self.parts = parts

    @cached_property
    def log_weights(self) -> Tensor:
        return self.bound.combined([part.log_weights for part in self.parts]).expand(self.num_rows, -1)

    def weights_at(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        return self.bound.combined([part.weights_at(tokens, rows) for part in self.parts])


class BoundTempered(BoundCombined):
    """A Tempered background in one batch or search."""

    module: Tempered

    def listed(self, parts: Sequence[View]) -> ExplicitWeights:
        weights, by = parts[0].listed, self.module.temperature
        assert weights is not None
        return replace(weights, log_weights=weights.log_weights / by, constant=weights.constant / by)

    def combined(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0] / self.module.temperature


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
        root = bound.root
        super().__init__([part], None if root is None else root.word_log_weight / temperature, bound.is_exhaustive)
        self.temperature = temperature


class BoundProduct(BoundCombined):
    """A Product in one batch or search.

    `steps_to_end` is the maximum of the parts. It is exact if at most one part (a grammar) limits where a string ends.
    If several do, it is a lower bound, because their shortest endings may differ.
    """

    def listed(self, parts: Sequence[View]) -> ExplicitWeights:
        if self.is_exhaustive:  # the words of the first exhaustive part, weighted by all parts
            index = next(i for i, part in enumerate(self.parts) if part.is_exhaustive)
            weights = parts[index].listed
            assert weights is not None
            others = [part.weights_at(weights.tokens, weights.rows) for i, part in enumerate(parts) if i != index]
            return replace(weights, log_weights=sum(others, weights.log_weights))
        explicit, roots = explicit_of(parts)
        keys, log_weights = side_by_side(explicit, roots)
        rooted = [weights.rooted for weights in explicit if weights.rooted is not None]
        return ExplicitWeights(
            num_words=len(self.class_of),
            keys=keys,
            log_weights=torch.stack(log_weights).sum(0),
            constant=torch.stack([weights.constant for weights in explicit]).sum(0),
            rooted=torch.stack(rooted).all(0) if rooted else None,
        )

    def combined(self, parts: Sequence[Tensor]) -> Tensor:
        return sum(parts[1:], parts[0])


def explicit_of(parts: Sequence[View]) -> tuple[list[ExplicitWeights], list[Tensor]]:
    """Return the listed weights of parts with roots, and the log weights of the roots, (V,) each."""
    explicit, roots = [], []
    for part in parts:
        listed, root = part.listed, part.bound.root
        assert listed is not None and root is not None
        explicit.append(listed)
        roots.append(root.word_log_weight)
    return explicit, roots


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
        closed = [part for part in bound if part.is_exhaustive and part.root is not None]
        roots = [root.word_log_weight for part in (closed[:1] or bound) if (root := part.root) is not None]
        whole = len(roots) == len(closed[:1] or bound)
        super().__init__(parts, torch.stack(roots).sum(0) if whole else None, bool(closed))
