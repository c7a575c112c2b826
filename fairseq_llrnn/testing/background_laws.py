"""The laws of a background.

Sizes: V words, S signatures, N rows (hypotheses), T time, L source length, H hidden width.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.automata.trimming import NO_END
from fairseq_llrnn.backgrounds.algebra import Product, Tempered
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, Background, BoundBackground, StaticBackground, View
from fairseq_llrnn.backgrounds.class_weights import broadcast_groups, class_log_sums, row_numbers
from fairseq_llrnn.backgrounds.mixture import Mixture
from fairseq_llrnn.backgrounds.states import States, select
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.testing.asserting import by_step, close, holds, same

ROWS, LENGTH = 5, 4
BEST = 3
LIMITS = 1, 2, 50
LOG_LITTLE = -6.9  # log of a thousandth


def check_background(
    background: Background, *, source: Tensor | None = None, hidden: Tensor | None = None, seed: int = 0,
    impossible: Sequence[int] = (),
) -> None:  # fmt: skip
    """Assert every law on random histories of words.

    Args:
        background: any, before `bind`. Its parameters' gradients do not change.
        source: (N, L) source tokens, for a background that depends on them.
        hidden: (N · 4, H) hidden states of N rows of four positions, for a background with weights chosen by the
            network.
        seed: of the histories.
        impossible: tokens that must have no weight in any state, such as 0 and 1, <s> and <pad> of a prior. A head
            generates every token with a weight.

    Raises:
        AssertionError: its first line is the law; expected and found values follow. TypeError: context classes.
    """
    _tables_stay_exact(background)
    rows = ROWS if source is None else len(source)
    generator = torch.Generator().manual_seed(seed)
    history = torch.randint(0, len(background.class_of), (rows, LENGTH), generator=generator)
    history = history.to(background.class_of.device)
    conditions = _Conditions(background, source, hidden)
    whole = conditions.bind(history)
    if isinstance(whole, ContextClasses):
        raise TypeError(
            "check_background: expected a background without context classes, found those of "
            f"{type(whole.source).__name__}; use check_context_classes(background.bind(source), history)"
        )
    _advance_keeps_its_states(conditions, whole, history)
    states, weights_of_end = by_step(whole, history), []
    with torch.no_grad():  # as in a search, with cached values of a state
        for t, state in enumerate(states):
            laws = _Laws(conditions.view(whole, state, t), history)
            laws.impossible_words_have_no_weight(impossible)
            laws.mass_is_the_sum_of_member_weights()
            laws.shares_of_a_class_sum_to_one()
            laws.answers_about_one_word_are_entries(history[:, 0])
            laws.best_members_are_best()
            laws.the_only_member_is_named()
            laws.mass_without_words_is_what_the_others_weigh(generator)
            laws.masses_are_those_of_all_classes()
            laws.no_end_is_farther_than_the_most_steps()
            weights_of_end.append(laws.weights[whole.steps_to_end(state) == 1, END])
            for remaining in LIMITS:
                limited = conditions.view(whole, state, t, remaining=remaining)
                laws.a_limit_takes_what_is_out_of_reach(limited, remaining)
    of_end = torch.cat(weights_of_end)
    law = f"</s> has weight in a state with steps_to_end 1; found −inf in all {len(of_end)} of them"
    holds(law, not len(of_end) or not bool(of_end.isneginf().all()))
    _reordering_commutes(conditions, history, states[-1])
    _positions_equal_steps(conditions, history)
    _gradients_are_finite(conditions, history)
    _combinations_keep_it(background, conditions, history)
    cross_fitted = conditions.bind(history, cross_fitted=True)
    with torch.no_grad():
        first = conditions.view(cross_fitted, cross_fitted.start(rows), 0)
        _Laws(first, history).mass_is_the_sum_of_member_weights()
    _positions_equal_steps(conditions, history, cross_fitted=True)


def _tables_stay_exact(background: Background) -> None:
    """Shares are differences of logarithms: float64 tables must stay float64 in a model of float32."""
    exact = {name for name, buffer in background.named_buffers() if buffer.dtype == torch.float64}
    short = copy.deepcopy(background).float()
    lost = {name for name, buffer in short.named_buffers() if buffer.dtype == torch.float32} & exact
    holds(f"tables in float64 stay in float64 (ExactBuffers): {', '.join(sorted(lost))}", not lost)


@dataclass(frozen=True)
class _Conditions:
    """A background, and its source and hidden states."""

    background: Background
    source: Tensor | None
    hidden: Tensor | None

    def bind(self, history: Tensor, order: Tensor | None = None, cross_fitted: bool = False) -> BoundBackground:
        """Return it bound to the sentences of `history` (N, T), or to the rows `order`."""
        source = self.source if self.source is None or order is None else self.source[order]
        return self.background.bind(source, history if cross_fitted else None)

    def view(
        self, bound: BoundBackground, states: States, t: int, order: Tensor | None = None, remaining: int | None = None
    ) -> View:
        """Return the view of step t of a search."""
        if self.hidden is None:
            return bound.view(states, None, remaining)
        hidden = self.hidden.view(-1, LENGTH, self.hidden.size(1))[:, t]
        return bound.view(states, hidden if order is None else hidden[order], remaining)


class _Laws:
    """The laws of one step: N states, results broadcast to N rows."""

    def __init__(self, view: View, history: Tensor) -> None:
        self.view, self.rows = view, len(history)
        self.class_of, self.num_classes = view.class_of, view.num_classes
        num_words = len(self.class_of)
        self.weights = self._wide(view.log_weights, num_words)
        if view.listed is not None:
            holds("the keys of listed words ascend, without repeats", bool((view.listed.keys.diff() > 0).all()))
        self.mass = self._wide(view.class_mass.dense(), self.num_classes)
        self.shares = self._wide(view.log_shares, num_words)
        words = torch.arange(num_words, device=self.mass.device).expand(self.rows, -1)
        self.pairs = words.flatten(), row_numbers(words).flatten()  # each word in each row
        after = view.bound.steps_to_end(view.bound.advance(select(view.states, self.pairs[1]), self.pairs[0]))
        holds(f"steps_to_end are (N,); found {tuple(after.shape)}", after.shape == self.pairs[0].shape)
        self.steps_after = after.view_as(words)
        self.each_class = torch.arange(self.num_classes, device=self.mass.device).expand(self.rows, -1)

    def _wide(self, x: Tensor, width: int) -> Tensor:
        is_fit = x.dim() == 2 and x.size(0) in (1, self.rows) and x.size(1) == width
        holds(f"answers have N rows or one, and {width} columns; found {tuple(x.shape)}, N = {self.rows}", is_fit)
        return x.expand(self.rows, -1)

    def _sums(self, exponentials: Tensor) -> Tensor:
        """Return sums over the members of every class: (N, V) -> (N, S)."""
        sums = exponentials.new_zeros(self.rows, self.num_classes)
        return sums.scatter_add(1, self.class_of.expand(self.rows, -1), exponentials)

    def impossible_words_have_no_weight(self, tokens: Sequence[int]) -> None:
        possible = [token for token in tokens if not bool(self.weights[:, token].isneginf().all())]
        holds(f"impossible tokens have the weight −inf in every state; found others of {possible}", not possible)

    def mass_is_the_sum_of_member_weights(self) -> None:
        law = "class_mass is the sum of the members' weights"
        close(law, self.mass, class_log_sums(self.weights.double(), self.class_of, self.num_classes))

    def shares_of_a_class_sum_to_one(self) -> None:
        sums = self._sums(self.shares.double().exp())
        close("the shares of a class with mass sum to one", sums, ~self.mass.isneginf())

    def answers_about_one_word_are_entries(self, history: Tensor) -> None:
        own, each = torch.arange(self.rows, device=history.device), self.pairs
        for tokens, rows, given in ((history, own, None), (*each, each[1]), (each[0].flip(0), *[each[1].flip(0)] * 2)):
            classes = self.class_of[tokens]
            weights = self.view.weights_at(tokens, given)
            close("weights_at are entries of log_weights", weights, self.weights[rows, tokens])
            close("mass_at is an entry of class_mass", self.view.mass_at(classes, given), self.mass[rows, classes])
            found, shares = self.view.locate(tokens, given)
            same("locate returns the class of a token", found, classes)
            same("locate returns an entry of log_shares", shares, self.shares[rows, tokens])
            same("classes are those of locate", self.view.classes(tokens, given), classes)

    def best_members_are_best(self, limited: View | None = None) -> None:
        view, shares = self.view, self.shares
        if limited is not None:
            view, shares = limited, self._wide(limited.log_shares, len(self.class_of))
        pairs = self.each_class.flatten(), row_numbers(self.each_class).flatten()
        values, tokens = (of.unflatten(0, self.each_class.shape) for of in view.best(pairs[0], BEST, pairs[1]))
        expected = torch.full_like(values, NEGATIVE_INFINITY)
        exists = torch.zeros_like(values[0], dtype=torch.bool)  # (S, BEST): whether a class has so many members
        for signature in range(self.num_classes):
            members = (self.class_of == signature).nonzero().squeeze(1)
            highest = shares[:, members].sort(dim=1, descending=True).values[:, :BEST]
            expected[:, signature, : highest.size(1)] = highest
            exists[signature, : highest.size(1)] = True
        same("best members are sorted by share", values[:, exists], expected[:, exists])
        nothing = values.isneginf()
        holds("best members that do not exist have −inf", bool(nothing[:, ~exists].all()))
        named = shares.gather(1, tokens.flatten(1)).view_as(values).masked_fill(nothing, NEGATIVE_INFINITY)
        same("best members have the shares that they are said to have", named, values)
        inside = (self.class_of[tokens] == self.each_class.unsqueeze(2)) | nothing
        holds("best members belong to their class", bool(inside.all()))
        numbers = torch.where(nothing, torch.arange(-BEST, 0, device=tokens.device), tokens).sort(dim=2).values
        holds("best members are different words", bool((numbers[:, :, 1:] != numbers[:, :, :-1]).all()))
        best = broadcast_groups(view.best_share, self.rows)
        same("best_share is that of the best member", best, values[:, :, 0])

    def the_only_member_is_named(self) -> None:
        members = [(self.class_of == c).nonzero().flatten().tolist() for c in range(self.num_classes)]
        expected = torch.tensor([m[0] if len(m) == 1 else -1 for m in members], device=self.mass.device)
        answers = self.view.only_member(self.each_class)
        same("only_member names the words that are alone in their class", answers, expected.expand(self.rows, -1))

    def mass_without_words_is_what_the_others_weigh(self, generator: torch.Generator) -> None:
        # the same words in all rows, as for hypotheses of one sentence
        words = torch.randperm(len(self.class_of), generator=generator)[:6].to(self.mass.device)
        taken = (torch.rand(len(words), generator=generator) < 0.6).to(self.mass.device)
        left = self.weights.clone()
        left[:, words[taken]] = NEGATIVE_INFINITY
        classes = self.class_of[words]
        expected = self._sums(left.double().exp()).log()[:, classes]
        repeated = words.expand(self.rows, -1), taken.expand(self.rows, -1)
        answers = self.view.mass_without(*repeated).double()
        law = "mass_without is the sum of the other members' weights"
        same(law + ": −inf where nothing is left", answers.isneginf(), expected.isneginf())
        # the rest of a class may have the absolute precision of the class' mass only
        little = expected < self.mass.double()[:, classes] + LOG_LITTLE
        close(law, answers.masked_fill(little, 0.0), expected.masked_fill(little, 0.0))
        limit = self.mass[:, classes].double() + LOG_LITTLE
        holds(law + " where little is left", bool((answers[little] < limit[little] + 1e-3).all()))

    def masses_are_those_of_all_classes(self) -> None:
        class_weights = self.view.class_mass
        repeated = class_weights.repeated(2).dense()
        close("repeated masses are those of repeated rows", repeated, self.mass.repeat_interleave(2, 0))
        by_class = torch.stack([class_weights.for_classes(c) for c in self.each_class.unbind(1)], dim=1)
        close("masses of one class are entries of class_mass", by_class, self.mass)

    def no_end_is_farther_than_the_most_steps(self) -> None:
        bound, steps = self.view.bound, self.view.bound.steps_to_end(self.view.states)
        for found in (steps[steps < NO_END], self.steps_after[self.steps_after < NO_END].unique()):
            law = f"steps_to_end are at most `most_steps`, {bound.most_steps}, or 1; found {found.tolist()}"
            holds(law, bool((found <= max(1, bound.most_steps)).all()))
        law = "no word leads to a state without an end, unless has_dead_ends"
        holds(law, bound.has_dead_ends or bool((self.steps_after < NO_END).all()))

    def a_limit_takes_what_is_out_of_reach(self, limited: View, remaining: int) -> None:
        after, bound = self._wide(limited.log_shares, len(self.class_of)), self.view.bound
        same("no limit changes a mass", limited.class_mass.dense(), self.mass)
        same("no limit changes a weight", limited.log_weights.expand_as(self.weights), self.weights)
        kept = bound.most_steps < remaining if limited.remaining is None else limited.remaining == remaining
        holds(f"a view keeps a limit of at most `most_steps`, {bound.most_steps}; found {limited.remaining}", kept)
        lost = after.isneginf()
        same("no limit changes what is left of the shares", after[~lost], self.shares[~lost])
        left = (~lost & ~self.mass.isneginf()[:, self.class_of]).any(1)
        if limited.remaining is not None:
            reachable = (bound.steps_to_end(self.view.states) <= limited.remaining) & ~self.mass.isneginf().all(1)
            law = f"a word is left where an end is in reach (limit {limited.remaining})"
            holds(law, bool((left >= reachable).all()))
            tokens = torch.arange(after.size(1), device=after.device).expand_as(after)
            share = limited.locate(tokens.flatten(), row_numbers(tokens).flatten())[1].view_as(after)
            same("locate returns an entry of log_shares, with a limit, too", share, after)
            out = (self.steps_after >= remaining) & (tokens != END)
            law = f"a limit takes the words after which no end is in reach, and no others (limit {remaining})"
            same(law, lost, out | self.shares.isneginf())
        self.best_members_are_best(limited)


def _advance_keeps_its_states(conditions: _Conditions, background: BoundBackground, history: Tensor) -> None:
    """A search and a batch use a state again after `advance`."""
    state, rows = background.start(len(history)), torch.arange(len(history), device=history.device)
    holds(f"start({len(history)}) returns {len(history)} states; found {len(state)}", len(state) == len(history))
    with torch.no_grad():
        twice = [conditions.view(background, state, 0).log_weights for _ in range(2)]
        holds("log_weights are no NaN and not +∞", bool((twice[0] < math.inf).all()))
        same("two views of a state have the same weights", *twice)
        for t, tokens in enumerate(history[:, 1:].unbind(1)):
            copied, following = select(state, rows), background.advance(state, tokens)
            weights = [conditions.view(background, of_state, t).log_weights for of_state in (state, copied)]
            same("advance returns new states, and does not change the old ones", *weights)
            state = following


def _reordering_commutes(conditions: _Conditions, history: Tensor, last: States) -> None:
    order = torch.tensor([len(history) - 2, len(history) - 2, 0, len(history) - 1], device=history.device).clamp_min(0)
    t = history.size(1) - 1
    bound, again = conditions.bind(history), conditions.bind(history[order], order)
    before = conditions.view(bound, last, t)
    answers = before.class_mass.dense()[order].detach()
    moved = conditions.view(bound, select(last, order), t, order)
    same("reordering states reorders answers", moved.class_mass.dense().detach(), answers)
    same("a view of some rows has their answers", before.select(order).class_mass.dense().detach(), answers)
    replayed = conditions.view(again, by_step(again, history[order])[-1], t, order)
    same("advance equals start and replay", replayed.class_mass.dense().detach(), answers)


def _positions_equal_steps(conditions: _Conditions, history: Tensor, cross_fitted: bool = False) -> None:
    batch, time = history.shape
    bound = conditions.bind(history, cross_fitted=cross_fitted)
    targets = history.roll(-1, dims=1)
    whole = bound.view_of(history, conditions.hidden)
    mass = whole.class_mass.dense().view(batch, time, -1).detach()
    shares = whole.log_shares.expand(batch * time, -1).view(batch, time, -1).detach()
    share = whole.locate(targets.flatten())[1].view_as(targets).detach()
    flat = bound.flat_states(history)
    # cross-fitted, each sentence of a row begins in the state of its own fold, unlike in searches
    states = _positions(flat, history) if cross_fitted else by_step(bound, history)
    for t, state in enumerate(states):
        step = conditions.view(bound, state, t)
        law = "values of all positions at once equal those of a search step by step"
        close(law, mass[:, t], step.class_mass.dense().detach())
        close(law, shares[:, t], step.log_shares.expand(batch, -1).detach())
        close(law, share[:, t], step.locate(targets[:, t])[1].detach())
    of_flat = bound.view(flat, conditions.hidden).class_mass.dense().detach()
    close("flat_states are the states of all positions", of_flat, mass.flatten(0, 1))


def _positions(states: States, history: Tensor) -> list[States]:
    """Return the states of each step, given those of all positions of histories (N, T): T times N."""
    numbers = torch.arange(history.numel(), device=history.device).view_as(history)
    return [select(states, of_step) for of_step in numbers.unbind(1)]


class _Texts:
    """States that are no tensors: the tokens of each hypothesis."""

    def __init__(self, texts: Sequence[tuple[int, ...]]) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, index: Tensor) -> _Texts:
        return _Texts([self.texts[i] for i in index.tolist()])

    def concatenate(self, others: Sequence[_Texts]) -> _Texts:
        return _Texts([text for states in (self, *others) for text in states.texts])


class _NeutralTexts(Background):
    """Weighs all words equally. Its states grow and are no tensors."""

    def start(self, n: int) -> _Texts:
        return _Texts([()] * n)

    def advance(self, state: _Texts, tokens: Tensor) -> _Texts:
        return _Texts([(*text, token) for text, token in zip(state.texts, tokens.tolist(), strict=True)])

    def log_weights(self, state: _Texts) -> Tensor:
        return torch.zeros(len(state), len(self.class_of), dtype=torch.float64, device=self.class_of.device)


def _combinations_keep_it(background: Background, conditions: _Conditions, history: Tensor) -> None:
    """Assert that a background weighs the same in combinations that do not change it, also if beams are reordered."""
    neutral = StaticBackground(background.class_of, background.num_classes, torch.zeros(len(background.class_of)))
    neutral = neutral.to(background.class_of.device)
    product = Product([neutral, background, neutral])
    texts = _NeutralTexts(background.class_of, background.num_classes)
    order = torch.arange(len(history), device=history.device).flip(0)
    last, before, hidden = history.size(1) - 1, conditions.bind(history), conditions.hidden
    with torch.no_grad():
        states = by_step(before, history)[-1]
        weights = conditions.view(before, states, last).log_weights.expand(len(history), -1)[order]
        of_positions = before.view(before.flat_states(history), hidden).log_weights.expand(history.numel(), -1)
        for name, combined in (
            ("Product", product),
            ("Product with states that grow", Product([texts, background])),
            ("Tempered", Tempered(product, 1.0)),
            ("Mixture", Mixture([background, Product([background, neutral])])),
        ):
            of_combined = replace(conditions, background=combined)
            whole, law = of_combined.bind(history), f"a background weighs the same in a {name}"
            state = select(by_step(whole, history)[-1], order)
            for remaining in (None, LIMITS[-1]):
                moved = of_combined.view(whole, state, last, order, remaining)
                close(law, moved.log_weights.expand(len(order), -1), weights)
            for flat in (whole.view_of(history, hidden), whole.view(whole.flat_states(history), hidden)):
                close(f"{law} at all positions", flat.log_weights.expand(history.numel(), -1), of_positions)


def _gradients_are_finite(conditions: _Conditions, history: Tensor) -> None:
    parameters = [p for p in conditions.background.parameters() if p.requires_grad]
    if not parameters:
        return
    view = conditions.bind(history).view_of(history, conditions.hidden)
    mass, share = view.class_mass.dense(), view.locate(history.roll(-1, dims=1).flatten())[1]
    answers = mass[~mass.isneginf()].sum() + share[~share.isneginf()].sum()
    if answers.requires_grad:
        gradients = torch.autograd.grad(answers, parameters, allow_unused=True)
        holds("gradients are finite", all(bool(g.isfinite().all()) for g in gradients if g is not None))
