"""Mixtures of backgrounds, and products and temperatures that keep the type of an automaton or a static background.

Sizes: N hypotheses (or positions of a batch), K parts, V words, S signatures, H hidden width, E listed words.

The weights of a `Mixture` are fixed, learned, or chosen by the network at every position.

    b(K, x)  =  Σ_i w_i b_i(K, x),      Σ_i w_i = 1

An n-gram and a cache make Kuhn & De Mori 1990, "A Cache-Based Natural Language Model". With weights chosen by the
network, they make Grave, Joulin & Usunier 2017, "Improving Neural Language Models with a Continuous Cache".

Masses and shares are mixtures of those of the parts. If the parts share a root, it is the root of the mixture, and
masses are sparse. The best members are among the listed words of any part and the best of the root. Otherwise masses
are (N, S), and several_roots.py finds the best members. If a part has no root, all V words are compared.

`product` and `tempered` cost as much as one background, if possible. The product of a static background with an
automaton is an automaton whose arcs and root are multiplied by the static weights. A temperature T divides all log
weights of an automaton, failures included:

    arc (q, x):  log w + log s(x)      root:  log b₀(x) + log s(x)          failures keep their cost
    arc (q, x):  log w / T             root:  log b₀(x) / T                 failures: log cost / T

The product of a static background with a mixture is the mixture of its products with the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.trimming import NO_END
from fairseq_llrnn.backgrounds.algebra import (
    BoundCombined,
    Combined,
    CombinedView,
    Product,
    Tempered,
    check_parts,
    explicit_of,
)
from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, Background, BoundBackground, StaticBackground, View
from fairseq_llrnn.backgrounds.cached import cached_property
from fairseq_llrnn.backgrounds.class_weights import (
    ClassWeights,
    ExplicitWeights,
    SparseUpdates,
    log_difference,
    log_part_weights,
    log_sum,
    side_by_side,
)
from fairseq_llrnn.backgrounds.listed_view import ListedView
from fairseq_llrnn.backgrounds.several_roots import SeveralRoots
from fairseq_llrnn.backgrounds.states import JointStates

WEIGHTINGS = ("fixed", "learned", "network")


class BoundMixture(BoundCombined):
    """A Mixture in one batch or search.

    `steps_to_end` is the minimum of the parts. A string that changes from one part to another may be shorter.
    """

    module: Mixture

    def __init__(self, module: Mixture, parts: Sequence[BoundBackground]) -> None:
        super().__init__(module, parts)
        if module.weighting == "network":
            self.is_context_independent = False
        self.roots = module.roots
        # a part without dead ends reaches an end after any prefix
        self.most_steps = min([NO_END, *[part.most_steps for part in parts if not part.has_dead_ends]])
        self.has_dead_ends = all(part.has_dead_ends for part in parts)

    def possible_words(self) -> Tensor:
        return torch.stack([part.possible_words() for part in self.parts]).any(0)

    def steps_to_end(self, states: JointStates) -> Tensor:
        return torch.stack([part.steps_to_end(substates) for part, substates in self.of_parts(states)]).amin(0)

    def view_by(self, parts: Sequence[View], hidden: Tensor | None, remaining: int | None = None) -> View:
        kind = MixtureView if self.root is None else RootedMixtureView
        return kind(self, JointStates([part.states for part in parts]), parts, hidden, remaining)

    def log_part_weights(self, hidden: Tensor | None) -> Tensor:
        """Return log w: (N, K) of N hidden states, or (1, K)."""
        module = self.module
        if hidden is None or module.weighting != "network":
            logits = module.gate.bias if hasattr(module, "gate") else module.weight_logits
            return log_part_weights(logits).unsqueeze(0)
        if not hasattr(module, "gate"):
            raise ValueError("Mixture: hidden states need a gate; call `gates(hidden_size)` first")
        return log_part_weights(module.gate(hidden.to(module.gate.weight.dtype)))


class MixtureView(CombinedView):
    """A mixture whose parts share no root."""

    bound: BoundMixture

    @cached_property
    def log_w(self) -> Tensor:
        """The log weights of the parts: (N, K) or (1, K)."""
        return self.bound.log_part_weights(self.hidden)

    def _mixed(self, of_parts: Sequence[Tensor], rows: Tensor | None = None) -> Tensor:
        """Return log Σ w_i exp of the parts' terms: (N, …) each, or (M,) of rows (M,)."""
        log_w = self.log_w
        if rows is not None and len(log_w) > 1:
            log_w = log_w[rows]
        terms = torch.stack(torch.broadcast_tensors(*of_parts), dim=-1)
        return log_sum(terms + log_w.view(len(log_w), *[1] * (terms.dim() - 2), len(self.parts)).to(terms.dtype))

    @cached_property
    def log_weights(self) -> Tensor:
        return self._mixed([part.log_weights for part in self.parts])

    def weights_at(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        rows = self._rows(tokens, rows)
        return self._mixed([part.weights_at(tokens, rows) for part in self.parts], rows)

    @cached_property
    def class_mass(self) -> ClassWeights:
        return ClassWeights(self._mixed([part.class_mass.dense() for part in self.parts]), self.num_rows)

    def mass_at(self, classes: Tensor, rows: Tensor | None = None) -> Tensor:
        rows = self._rows(classes, rows)
        return self._mixed([part.mass_at(classes, rows) for part in self.parts], rows)

    def mass_without(self, words: Tensor, taken: Tensor) -> Tensor:
        return self._mixed([part.mass_without(words, taken) for part in self.parts])

    @cached_property
    def best_share(self) -> Tensor:
        roots = self.bound.roots
        if roots is None or self.remaining is not None:
            return self.best_of_all_words()
        explicit, of_roots = explicit_of(self.parts)
        keys, of_parts = side_by_side(explicit, of_roots)
        listed = self._mixed(of_parts, keys // len(self.class_of))
        best = roots.best(_constants(explicit) + self.log_w, keys, listed, self.weights_at)
        return log_difference(best, self.class_mass.dense())

    def best(self, classes: Tensor, k: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if self.bound.roots is None or self.remaining is not None:
            return super().best(classes, k, rows)
        rows = self._rows(classes, rows)
        values, tokens = self.bound.roots.heaviest(classes, k, rows, self.weights_at)
        return log_difference(values, self.mass_at(classes, rows).unsqueeze(1)), tokens


class RootedMixtureView(MixtureView):
    """A mixture whose parts share the root."""

    @cached_property
    def listed(self) -> ExplicitWeights:
        explicit, roots = explicit_of(self.parts)
        keys, of_parts = side_by_side(explicit, roots)
        constant = log_sum(_constants(explicit) + self.log_w)
        rooted = None if any(w.rooted is None for w in explicit) else ~constant.isneginf()
        return ExplicitWeights(
            num_words=len(self.class_of),
            keys=keys,
            log_weights=self._mixed(of_parts, keys // len(self.class_of)),
            constant=constant if rooted is None else constant.masked_fill(~rooted, 0.0),
            rooted=rooted,
        )

    @cached_property
    def as_listed(self) -> ListedView:
        """The same weights by the words that any part lists, for searches."""
        return ListedView(self.bound, self.states, self.listed, self.remaining)

    @cached_property
    def log_weights(self) -> Tensor:
        return self.as_listed.log_weights

    @cached_property
    def class_mass(self) -> ClassWeights:
        root = self.bound.root
        assert root is not None
        return mixed_masses([part_masses(part, root) for part in self.parts], self.log_w.to(root.word_log_weight.dtype))

    @cached_property
    def best_share(self) -> Tensor:
        return self.as_listed.best_share

    def best(self, classes: Tensor, k: int, rows: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.as_listed.best(classes, k, rows)


class Mixture(Combined):
    """Σ w_i b_i."""

    bound = BoundMixture
    weight_logits: Tensor  # (K,) a parameter if they are learned
    gate: nn.Linear  # (H) -> (K), if the network chooses

    def __init__(
        self, parts: Sequence[Background], weights: Sequence[float] | None = None, weighting: str = "fixed"
    ) -> None:
        """parts: over the same words and signatures. Products, mixtures, … are allowed.

        Args:
            weights: one above 0 for each part; they are divided by their sum. By default all are equal.
            weighting: "fixed", "learned" (parameters with these initial values) or "network" (chosen from the hidden
                state of every position, initially these weights; call `gates` once).

        Raises:
            ValueError: no parts, or parts over other words or signatures; weights that are not above 0, or of another
                number; another weighting.
        """
        check_parts("Mixture", parts)
        if weighting not in WEIGHTINGS:
            raise ValueError(f"weighting: expected one of {', '.join(WEIGHTINGS)}, found {weighting!r}")
        chosen = [1.0] * len(parts) if weights is None else list(weights)
        if len(chosen) != len(parts) or not all(0.0 < weight < float("inf") for weight in chosen):
            raise ValueError(f"weights: expected {len(parts)} numbers above 0, one for each background, found {chosen}")
        bound = [part.bind() for part in parts]
        roots = [None if part.root is None else part.root.word_log_weight for part in bound]
        first = roots[0]
        same = first is not None and all(root is not None and torch.equal(root, first) for root in roots)
        super().__init__(parts, first if same else None, all(part.is_exhaustive for part in bound))
        self.weighting = weighting
        logits = torch.tensor(chosen, dtype=torch.float64).log().log_softmax(0)
        self.learn("weight_logits", logits, weighting == "learned")
        static_roots = [root for root in roots if root is not None]
        self.roots = None  # of the parts, if they are several
        if not same and len(static_roots) == len(roots):
            self.roots = SeveralRoots(self.class_of, self.num_classes, torch.stack(static_roots))

    def gates(self, hidden_size: int) -> None:
        super().gates(hidden_size)
        if self.weighting == "network":
            self.gate = nn.Linear(hidden_size, len(self.parts)).to(self.weight_logits.device)
            nn.init.zeros_(self.gate.weight)
            with torch.no_grad():
                self.gate.bias.copy_(self.weight_logits)


def _constants(parts: Sequence[ExplicitWeights]) -> Tensor:
    """Return the log factor of each part's root in every row, −inf if it is not rooted: (N, K)."""
    logs = [w.constant if w.rooted is None else w.constant.masked_fill(~w.rooted, NEGATIVE_INFINITY) for w in parts]
    return torch.stack(logs, dim=1)


def part_masses(part: View, root: StaticBackground) -> ClassWeights:
    """Return a part's masses over the shared root, with entries."""
    mass = part.class_mass
    if mass.entries is None:
        listed = part.listed
        assert listed is not None
        mass = ListedView(root, part.states, listed).class_mass
    return mass


def mixed_masses(parts: Sequence[ClassWeights], log_w: Tensor) -> ClassWeights:
    """Return the masses Σ w_i B_i of parts with the same shared masses. log_w: (N, K) or (1, K).

    All entries of a place (row, class) are summed in the first one. The others add 0. Nothing is sorted: of a table of
    N·S places, only those with entries are written and read.
    """
    first, entries = parts[0], [part.entries for part in parts if part.entries is not None]
    num_rows, num_classes = first.num_rows, first.shared.size(1)
    rows, classes = torch.cat([part.rows for part in entries]), torch.cat([part.classes for part in entries])
    place = rows * num_classes + classes
    entry_numbers = torch.arange(len(place), device=place.device)
    table = place.new_empty(num_rows * num_classes)
    table[place] = entry_numbers
    stands = table[place]  # shape: (E,)
    log_w = log_w.expand(num_rows, -1)
    totals, constants, begin = [], [], 0
    for i, part in enumerate(entries):
        span = slice(begin, begin + len(part.rows))
        begin = span.stop
        total = part.added.new_zeros(len(place)).index_add(0, stands[span], part.added)
        constant = part.constant + log_w[:, i]
        if part.sparse_row_mask is not None:
            listed = torch.zeros_like(place, dtype=torch.bool).index_fill(0, stands[span], True)
            total = total.masked_fill(part.sparse_row_mask[rows] & ~listed, NEGATIVE_INFINITY)
        totals.append(total + constant[rows])
        constants.append(
            constant if part.sparse_row_mask is None else constant.masked_fill(part.sparse_row_mask, NEGATIVE_INFINITY)
        )
    only = [part.sparse_row_mask for part in entries if part.sparse_row_mask is not None]
    closed = torch.stack(only).all(0) if len(only) == len(parts) else None
    constant = log_sum(torch.stack(constants, dim=1))
    if closed is not None:
        constant = constant.masked_fill(closed, 0.0)
    added = log_sum(torch.stack(totals, dim=1)) - constant[rows]
    mixed = SparseUpdates(rows, classes, torch.where(stands == entry_numbers, added, 0.0), closed, constant)
    return ClassWeights(first.shared, num_rows, mixed)


def product(parts: Sequence[Background]) -> Background:
    """Return the product of backgrounds over the same words: one of the parts' types if possible, else `Product`.

    Raises:
        ValueError: as Product.
    """
    check_parts("Product", parts)
    flat = [factor for part in parts for factor in (part.part_modules() if isinstance(part, Product) else [part])]
    static = [part for part in flat if type(part) is StaticBackground]
    others = [part for part in flat if type(part) is not StaticBackground]
    if static:
        log_weights = torch.stack([part.word_log_weight for part in static]).sum(0)
        index = next((i for i, part in enumerate(others) if isinstance(part, (AutomatonBackground, Mixture))), None)
        if index is None:
            others.append(StaticBackground(parts[0].class_of, parts[0].num_classes, log_weights))
        else:
            others[index] = _reweighed(others[index], log_weights)
    return others[0] if len(others) == 1 else Product(others)


def tempered(part: Background, temperature: float) -> Background:
    """Return b^(1/T): of the part's type if possible, else `Tempered`.

    Raises:
        ValueError: as Tempered.
    """
    background = Tempered(part, temperature)
    if temperature == 1.0:
        return part
    if type(part) is StaticBackground:
        return StaticBackground(part.class_of, part.num_classes, part.word_log_weight / temperature)
    if isinstance(part, AutomatonBackground):
        return _on_root(part, part.automaton.tempered(temperature), part.root.word_log_weight / temperature)
    return background


def _reweighed(part: Background, log_weights: Tensor) -> Background:
    """Return an automaton or a mixture times static weights (V,)."""
    if isinstance(part, Mixture):
        static = StaticBackground(part.class_of, part.num_classes, log_weights)
        weights = part.weight_logits.detach().double().softmax(0).tolist()
        return Mixture([product([factor, static]) for factor in part.part_modules()], weights, part.weighting)
    assert isinstance(part, AutomatonBackground)
    automaton, factors = part.automaton, log_weights.double().cpu().numpy()
    # the arc of a forbidden word stays: it has the next state if another part, or a slot, allows the word
    changed = replace(automaton, log_weights=automaton.log_weights + factors[automaton.tokens])
    return _on_root(part, changed, part.root.word_log_weight + log_weights)


def _on_root(part: AutomatonBackground, automaton: Automaton, root: Tensor) -> AutomatonBackground:
    background = AutomatonBackground(part.class_of.cpu(), part.num_classes, root.cpu(), automaton)
    return background.to(root.device)
