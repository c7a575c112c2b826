"""The laws of all backgrounds, fast or slow, for tests of this package and of users' own backgrounds.


    class NoRepetition(Background):
        '''Forbids the last word, a smaller number for each row.'''
        …

    def test_it_obeys_the_laws():
        check_background(NoRepetition(class_of, num_classes))

Sizes: V words, S signatures, N rows (hypotheses), T time, L source length, H hidden width. The slow defaults of
`Background` are the definition; a faster override must return the same. Values are compared in the background's own
precision: use float64 weights for a sharp test. `check_context_classes` has the laws of sources of context classes,
compared with an oracle that loops over words, in float64. `check_class_features` has the laws of the rows of such
classes in a head.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.automata.trimming import NO_END
from fairseq_llrnn.backgrounds.algebra import Product, Tempered
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, Background, BoundBackground, StaticBackground, View
from fairseq_llrnn.backgrounds.class_weights import broadcast_groups, class_log_sums, row_numbers
from fairseq_llrnn.backgrounds.mixture import Mixture
from fairseq_llrnn.backgrounds.states import States, select
from fairseq_llrnn.output.context_classes import ContextClasses, ContextView, layers_of
from fairseq_llrnn.output.context_source import NO_WORD, ContextClassSource

if TYPE_CHECKING:
    from fairseq_llrnn.head.head import LogLinearHead

ROWS, LENGTH = 5, 4
BEST = 3
LIMITS = 1, 2, 50
CLOSE = 1e-6
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
    states = _by_step(whole, history)
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
            for remaining in LIMITS:
                limited = conditions.view(whole, state, t, remaining=remaining)
                laws.a_limit_takes_what_is_out_of_reach(limited, remaining)
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
    _holds(f"tables in float64 stay in float64 (ExactBuffers): {', '.join(sorted(lost))}", not lost)


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


def _same(law: str, actual: Tensor, expected: Tensor) -> None:
    """Assert equality within rounding."""
    if (actual.dtype, actual.device) == (expected.dtype, expected.device) and torch.equal(actual, expected):
        return  # at once: torch's own function takes much longer
    torch.testing.assert_close(actual, expected, msg=lambda text: f"law broken: {law}\n{text}")


def _close(law: str, actual: Tensor, expected: Tensor, within: float = 1e-5) -> None:
    """Assert equality up to the order of sums."""
    torch.testing.assert_close(
        actual.double(), expected.double(), atol=within, rtol=within, msg=lambda text: f"law broken: {law}\n{text}"
    )


def _holds(law: str, condition: bool) -> None:
    if not condition:
        raise AssertionError(f"law broken: {law}")


class _Laws:
    """The laws of one step: N states, results broadcast to N rows."""

    def __init__(self, view: View, history: Tensor) -> None:
        self.view, self.rows = view, len(history)
        self.class_of, self.num_classes = view.class_of, view.num_classes
        num_words = len(self.class_of)
        self.weights = self._wide(view.log_weights, num_words)
        if view.listed is not None:
            _holds("the keys of listed words ascend, without repeats", bool((view.listed.keys.diff() > 0).all()))
        self.mass = self._wide(view.class_mass.dense(), self.num_classes)
        self.shares = self._wide(view.log_shares, num_words)
        words = torch.arange(num_words, device=self.mass.device).expand(self.rows, -1)
        self.pairs = words.flatten(), row_numbers(words).flatten()  # each word in each row
        after = view.bound.steps_to_end(view.bound.advance(select(view.states, self.pairs[1]), self.pairs[0]))
        _holds(f"steps_to_end are (N,); found {tuple(after.shape)}", after.shape == self.pairs[0].shape)
        self.steps_after = after.view_as(words)
        self.each_class = torch.arange(self.num_classes, device=self.mass.device).expand(self.rows, -1)

    def _wide(self, x: Tensor, width: int) -> Tensor:
        is_fit = x.dim() == 2 and x.size(0) in (1, self.rows) and x.size(1) == width
        _holds(f"answers have N rows or one, and {width} columns; found {tuple(x.shape)}, N = {self.rows}", is_fit)
        return x.expand(self.rows, -1)

    def _sums(self, exponentials: Tensor) -> Tensor:
        """Return sums over the members of every class: (N, V) -> (N, S)."""
        sums = exponentials.new_zeros(self.rows, self.num_classes)
        return sums.scatter_add(1, self.class_of.expand(self.rows, -1), exponentials)

    def impossible_words_have_no_weight(self, tokens: Sequence[int]) -> None:
        possible = [token for token in tokens if not bool(self.weights[:, token].isneginf().all())]
        _holds(f"impossible tokens have the weight −inf in every state; found others of {possible}", not possible)

    def mass_is_the_sum_of_member_weights(self) -> None:
        law = "class_mass is the sum of the members' weights"
        _close(law, self.mass, class_log_sums(self.weights.double(), self.class_of, self.num_classes))

    def shares_of_a_class_sum_to_one(self) -> None:
        sums = self._sums(self.shares.double().exp())
        _close("the shares of a class with mass sum to one", sums, ~self.mass.isneginf())

    def answers_about_one_word_are_entries(self, history: Tensor) -> None:
        own, each = torch.arange(self.rows, device=history.device), self.pairs
        for tokens, rows, given in ((history, own, None), (*each, each[1]), (each[0].flip(0), *[each[1].flip(0)] * 2)):
            classes = self.class_of[tokens]
            weights = self.view.weights_at(tokens, given)
            _close("weights_at are entries of log_weights", weights, self.weights[rows, tokens])
            _close("mass_at is an entry of class_mass", self.view.mass_at(classes, given), self.mass[rows, classes])
            found, shares = self.view.locate(tokens, given)
            _same("locate returns the class of a token", found, classes)
            _same("locate returns an entry of log_shares", shares, self.shares[rows, tokens])
            _same("classes are those of locate", self.view.classes(tokens, given), classes)

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
        _same("best members are sorted by share", values[:, exists], expected[:, exists])
        nothing = values.isneginf()
        _holds("best members that do not exist have −inf", bool(nothing[:, ~exists].all()))
        named = shares.gather(1, tokens.flatten(1)).view_as(values).masked_fill(nothing, NEGATIVE_INFINITY)
        _same("best members have the shares that they are said to have", named, values)
        inside = (self.class_of[tokens] == self.each_class.unsqueeze(2)) | nothing
        _holds("best members belong to their class", bool(inside.all()))
        numbers = torch.where(nothing, torch.arange(-BEST, 0, device=tokens.device), tokens).sort(dim=2).values
        _holds("best members are different words", bool((numbers[:, :, 1:] != numbers[:, :, :-1]).all()))
        best = broadcast_groups(view.best_share, self.rows)
        _same("best_share is that of the best member", best, values[:, :, 0])

    def the_only_member_is_named(self) -> None:
        members = [(self.class_of == c).nonzero().flatten().tolist() for c in range(self.num_classes)]
        expected = torch.tensor([m[0] if len(m) == 1 else -1 for m in members], device=self.mass.device)
        answers = self.view.only_member(self.each_class)
        _same("only_member names the words that are alone in their class", answers, expected.expand(self.rows, -1))

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
        _same(law + ": −inf where nothing is left", answers.isneginf(), expected.isneginf())
        # the rest of a class may have the absolute precision of the class' mass only
        little = expected < self.mass.double()[:, classes] + LOG_LITTLE
        _close(law, answers.masked_fill(little, 0.0), expected.masked_fill(little, 0.0))
        limit = self.mass[:, classes].double() + LOG_LITTLE
        _holds(law + " where little is left", bool((answers[little] < limit[little] + 1e-3).all()))

    def masses_are_those_of_all_classes(self) -> None:
        class_weights = self.view.class_mass
        repeated = class_weights.repeated(2).dense()
        _close("repeated masses are those of repeated rows", repeated, self.mass.repeat_interleave(2, 0))
        by_class = torch.stack([class_weights.for_classes(c) for c in self.each_class.unbind(1)], dim=1)
        _close("masses of one class are entries of class_mass", by_class, self.mass)

    def no_end_is_farther_than_the_most_steps(self) -> None:
        bound, steps = self.view.bound, self.view.bound.steps_to_end(self.view.states)
        for found in (steps[steps < NO_END], self.steps_after[self.steps_after < NO_END].unique()):
            law = f"steps_to_end are at most `most_steps`, {bound.most_steps}, or 1; found {found.tolist()}"
            _holds(law, bool((found <= max(1, bound.most_steps)).all()))
        law = "no word leads to a state without an end, unless has_dead_ends"
        _holds(law, bound.has_dead_ends or bool((self.steps_after < NO_END).all()))

    def a_limit_takes_what_is_out_of_reach(self, limited: View, remaining: int) -> None:
        after, bound = self._wide(limited.log_shares, len(self.class_of)), self.view.bound
        _same("no limit changes a mass", limited.class_mass.dense(), self.mass)
        _same("no limit changes a weight", limited.log_weights.expand_as(self.weights), self.weights)
        kept = bound.most_steps < remaining if limited.remaining is None else limited.remaining == remaining
        _holds(f"a view keeps a limit of at most `most_steps`, {bound.most_steps}; found {limited.remaining}", kept)
        lost = after.isneginf()
        _same("no limit changes what is left of the shares", after[~lost], self.shares[~lost])
        left = (~lost & ~self.mass.isneginf()[:, self.class_of]).any(1)
        if limited.remaining is not None:
            reachable = (bound.steps_to_end(self.view.states) <= limited.remaining) & ~self.mass.isneginf().all(1)
            law = f"a word is left where an end is in reach (limit {limited.remaining})"
            _holds(law, bool((left >= reachable).all()))
            tokens = torch.arange(after.size(1), device=after.device).expand_as(after)
            share = limited.locate(tokens.flatten(), row_numbers(tokens).flatten())[1].view_as(after)
            _same("locate returns an entry of log_shares, with a limit, too", share, after)
            out = (self.steps_after >= remaining) & (tokens != END)
            law = f"a limit takes the words after which no end is in reach, and no others (limit {remaining})"
            _same(law, lost, out | self.shares.isneginf())
        self.best_members_are_best(limited)


def _advance_keeps_its_states(conditions: _Conditions, background: BoundBackground, history: Tensor) -> None:
    """A search and a batch use a state again after `advance`."""
    state, rows = background.start(len(history)), torch.arange(len(history), device=history.device)
    with torch.no_grad():
        twice = [conditions.view(background, state, 0).log_weights for _ in range(2)]
        _holds("log_weights are no NaN and not +∞", bool((twice[0] < math.inf).all()))
        _same("two views of a state have the same weights", *twice)
        for t, tokens in enumerate(history[:, 1:].unbind(1)):
            copied, following = select(state, rows), background.advance(state, tokens)
            weights = [conditions.view(background, of_state, t).log_weights for of_state in (state, copied)]
            _same("advance returns new states, and does not change the old ones", *weights)
            state = following


def _reordering_commutes(conditions: _Conditions, history: Tensor, last: States) -> None:
    order = torch.tensor([len(history) - 2, len(history) - 2, 0, len(history) - 1], device=history.device).clamp_min(0)
    t = history.size(1) - 1
    bound, again = conditions.bind(history), conditions.bind(history[order], order)
    before = conditions.view(bound, last, t)
    answers = before.class_mass.dense()[order].detach()
    moved = conditions.view(bound, select(last, order), t, order)
    _same("reordering states reorders answers", moved.class_mass.dense().detach(), answers)
    _same("a view of some rows has their answers", before.select(order).class_mass.dense().detach(), answers)
    replayed = conditions.view(again, _by_step(again, history[order])[-1], t, order)
    _same("advance equals start and replay", replayed.class_mass.dense().detach(), answers)


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
    states = _positions(flat, history) if cross_fitted else _by_step(bound, history)
    for t, state in enumerate(states):
        step = conditions.view(bound, state, t)
        law = "values of all positions at once equal those of a search step by step"
        _close(law, mass[:, t], step.class_mass.dense().detach())
        _close(law, shares[:, t], step.log_shares.expand(batch, -1).detach())
        _close(law, share[:, t], step.locate(targets[:, t])[1].detach())
    of_flat = bound.view(flat, conditions.hidden).class_mass.dense().detach()
    _close("flat_states are the states of all positions", of_flat, mass.flatten(0, 1))


def _by_step(background: BoundBackground, history: Tensor) -> list[States]:
    """Return the states before each word of histories (N, T): T times those of N hypotheses."""
    states = [background.start(len(history))]
    for tokens in history[:, 1:].unbind(1):  # the first is the start symbol, which state machines do not read
        states.append(background.advance(states[-1], tokens))
    return states


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
        states = _by_step(before, history)[-1]
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
            state = select(_by_step(whole, history)[-1], order)
            for remaining in (None, LIMITS[-1]):
                moved = of_combined.view(whole, state, last, order, remaining)
                _close(law, moved.log_weights.expand(len(order), -1), weights)
            for flat in (whole.view_of(history, hidden), whole.view(whole.flat_states(history), hidden)):
                _close(f"{law} at all positions", flat.log_weights.expand(history.numel(), -1), of_positions)


def _gradients_are_finite(conditions: _Conditions, history: Tensor) -> None:
    parameters = [p for p in conditions.background.parameters() if p.requires_grad]
    if not parameters:
        return
    view = conditions.bind(history).view_of(history, conditions.hidden)
    mass, share = view.class_mass.dense(), view.locate(history.roll(-1, dims=1).flatten())[1]
    answers = mass[~mass.isneginf()].sum() + share[~share.isneginf()].sum()
    if answers.requires_grad:
        gradients = torch.autograd.grad(answers, parameters, allow_unused=True)
        _holds("gradients are finite", all(bool(g.isfinite().all()) for g in gradients if g is not None))


# ---- context classes ------------------------------------------------------------------------------------------------

Weights = list[dict[int, Tensor]]  # log b(K, x) of each hypothesis, by token
Changes = Callable[[ContextView, Weights], None]  # a subclass's changes to the weights of its source
NONE = torch.tensor(-math.inf, dtype=torch.float64)


def weights_of(view: View, changes: Changes | None = None) -> Weights:
    """Return the weights by definition, word by word: the weights below, with <unk>'s factor and the source's
    additions.
    """
    if not isinstance(view, ContextView):
        return [dict(enumerate(row)) for row in view.log_weights.expand(view.num_rows, -1).double()]
    result, source = weights_of(view.below, changes), view.source
    if source.unk is not None:
        contexts = view.contexts
        ids, added = source.words(contexts), source.log_added(contexts).double()
        known = (ids >= 0) & view.below.in_vocabulary(ids)
        own = source.log_weights_below(view.below, contexts, ids.masked_fill(~known, source.unk))
        words = ids.tolist()
        for row, factor, weights in zip(range(view.num_rows), source.log_unk_factor(contexts), result, strict=True):
            weights[source.unk] = weights[source.unk] + factor
            for column, (word, more) in enumerate(zip(words[row], added[row], strict=True)):
                if word >= 0:
                    before = weights.get(word, NONE)
                    if own is not None and word in weights:
                        before = own[row, column].double()
                    weights[word] = torch.logaddexp(before, more)
    if changes is not None:
        changes(view, result)
    return result


def class_of(view: View, row: int, token: int) -> int:
    """Return the class of a word with weight: that of the last source that has the word."""
    if not isinstance(view, ContextView):
        return int(view.class_of[token])
    words = view.source.words(view.contexts)[row].tolist()
    return view.num_below + words.index(token) if token in words else class_of(view.below, row, token)


def masses_of(view: View, weights: Weights) -> Tensor:
    """Return the mass of every class, as the sum over its words: (N, C + J) float64."""
    rows = []
    for row, by_word in enumerate(weights):
        members: dict[int, list[Tensor]] = {}
        for token, weight in by_word.items():
            members.setdefault(class_of(view, row, token), []).append(weight)
        of_classes = [members.get(c, []) for c in range(view.num_classes)]
        empty = [all(weight.isneginf() for weight in members_of_class) for members_of_class in of_classes]
        sums = [NONE if e else torch.stack(w).exp().sum().log() for e, w in zip(empty, of_classes, strict=True)]
        rows.append(torch.stack(sums))
    return torch.stack(rows)


def check_context_classes(background: ContextClasses, history: Tensor, changes: Changes | None = None) -> None:
    """Assert the law of a source of context classes: mass before + mass added = mass after, each word in one class.

    Args:
        background: bound to as many sentences as `history` (N, T) has; the law is tested after each of their prefixes.
        changes: changes weights as the background does, if it is a subclass that changes its source's weights.

    Raises:
        AssertionError: its first line is the broken law; laws of the source itself come first.
    """
    _check_words(background.source, background.source.start(len(history)), "at the beginning")
    targets = history.roll(-1, 1)
    states, whole = _by_step(background, history), background.view_of(history)
    class_weights = whole.class_mass.dense().view(*history.shape, -1)
    of_targets, shares = (values.view_as(targets) for values in whole.locate(targets.flatten()))
    for t, state in enumerate(states):
        _check_words(background.source, background.contexts_of(state), f"before word {t}")
        view = background.view(state)
        mass = view.class_mass.dense()
        _close("masses of training are those of a search", class_weights[:, t], mass, CLOSE)
        classes, share = view.locate(targets[:, t])
        _close("shares of training are those of a search", shares[:, t], share, CLOSE)
        _holds("classes of training are those of a search", torch.equal(of_targets[:, t], classes))
        _check_context_state(view, changes)
        order = torch.tensor([len(state) - 1, *range(len(state) - 1)])
        moved = background.view(select(state, order)).class_mass.dense()
        _same("reordering states reorders masses", moved, mass[order])


def _check_words(source: ContextClassSource, contexts: Tensor, when: str) -> None:
    """Assert the laws of the source itself, before anything is computed from it."""
    if when == "at the beginning":
        inside = bool(((contexts >= 0) & (contexts < source.rows)).all())
        _holds(f"start(n) are indices below `rows`, {source.rows}; found {contexts.tolist()}", inside)
        every = source.start(source.rows)
        counted = source.changes or not source.width or every.tolist() == list(range(source.rows))
        _holds(f"start(rows) counts the contexts, unless they change; found {every.tolist()}", counted)
        advances = type(source).advance is not ContextClassSource.advance
        _holds("a source that defines advance sets `changes`", source.changes or not advances)
    words = source.words(contexts)
    shape = len(contexts), source.width
    _holds(f"words have the shape (N, width), {shape}; found {tuple(words.shape)}", tuple(words.shape) == shape)
    for context, row in zip(contexts.tolist(), words.tolist(), strict=True):
        real = [word for word in row if word != NO_WORD]
        _holds(f"the words of context {context} ({when}) differ; found {row}", len(set(real)) == len(real))
    if source.unk is not None:
        added = source.log_added(contexts)
        _holds(f"log_added has the shape of words; found {tuple(added.shape)}", added.shape == words.shape)
        places = ((words == NO_WORD) & ~added.isneginf()).nonzero().tolist()
        _holds(f"log_added is −inf where words is NO_WORD ({when}); not so at {places}", not places)


def _check_context_state(view: ContextView, changes: Changes | None) -> None:
    with torch.no_grad():
        weights = weights_of(view, changes)
        expected, mass = masses_of(view, weights), view.class_mass.dense()
        _close("the mass of a class is the sum over its words", mass.exp(), expected.exp(), CLOSE)
        added = torch.stack([torch.stack(list(row.values())).exp().sum() for row in weights])
        _close("mass before and mass added are the mass after", mass.double().exp().sum(1), added, CLOSE)
        columns, shares = view.columns, view.log_shares.double()
        of_columns, all_weights = view.column_classes, view.log_weights.double()
        widths = columns.size(1), shares.size(1), all_weights.size(1)
        num_columns = view.num_columns
        _holds(f"answers have num_columns, {num_columns}, columns; found {widths}", set(widths) == {num_columns})
        every_class = torch.arange(view.num_classes).expand(view.num_rows, -1)
        found = view.best(every_class.flatten(), 3, row_numbers(every_class).flatten())
        best, words = (values.unflatten(0, every_class.shape) for values in found)
        best_shares = broadcast_groups(view.best_share, view.num_rows)
        _same("best_share is that of the best member", best_shares, best[:, :, 0])
        for row, by_word in enumerate(weights):
            own, seen = view.select(torch.tensor([row])), set()
            in_class: dict[int, list[float]] = {}
            for column, token in enumerate(columns[row].tolist()):
                if int(own.column_of(columns[row : row + 1, column : column + 1])) != column:
                    void = all_weights[row, column].isneginf() and shares[row, column].isneginf()
                    _holds(f"column {column}, of no word, is empty", bool(void))
                    continue
                seen.add(token)
                number, token_ = class_of(view, row, token), columns[row : row + 1, column]
                located, found_share = own.locate(token_)
                classes = {int(located), int(own.classes(token_)), int(of_columns[row, column])}
                _holds(f"word {token} is in class {number} alone; found {classes}", classes == {number})
                weight = all_weights[row, column].exp()
                _close(f"log_weights has the weight of word {token}", weight, by_word[token].exp(), CLOSE)
                share = by_word[token] - expected[row, number] if not by_word[token].isneginf() else NONE
                _close(f"log_shares has the share of word {token}", shares[row, column], share, CLOSE)
                _close(f"locate returns the share of word {token}", found_share[0], share, CLOSE)
                at = own.weights_at(token_)[0].exp()
                _close(f"weights_at returns the weight of word {token}", at, by_word[token].exp(), CLOSE)
                in_class.setdefault(number, []).append(float(share))
            _holds(f"each word has one column; found {sorted(seen ^ set(by_word))} otherwise", seen == set(by_word))
            for c, of_class in in_class.items():
                total = 0.0 if expected[row, c].isneginf() else 1.0
                sum_of_shares = math.fsum(map(math.exp, of_class))
                _holds(f"shares of class {c} sum to {total}; found {sum_of_shares}", abs(sum_of_shares - total) < CLOSE)
                ranked = torch.tensor(sorted(of_class, reverse=True)[:3])
                _same(f"the best members of class {c} are the best", best[row, c, : len(ranked)].float(), ranked)
                for value, token in zip(best[row, c].tolist(), words[row, c].tolist(), strict=True):
                    member = value == -math.inf or class_of(view, row, token) == c
                    _holds(f"the best members of class {c} are members; found {token}", member)


# ---- features of classes --------------------------------------------------------------------------------------------


def check_class_features(
    head: LogLinearHead,
    hidden: Tensor,
    targets: Tensor,
    source: Tensor | None = None,
    source_states: Tensor | None = None,
) -> dict[str, Tensor]:
    """Assert that features count for the classes of a head's sources as for words, and return the features.

    The score of a class with the features φ is φᵀ(W h + c) + its own terms, which do not depend on W and c, the weights
    and biases of features. So its gradient is φ hᵀ in W and φ in c, and it is linear in W and c. A class without
    features (φ = 0) is a special case, and a softmax has φ = an indicator.

    Args:
        head: in float64, for a sharp test. hidden: (B, T, H). targets: (B, T). source, source_states: (B, L), (B, L, E)
            of a translation.

    Returns:
        φ of all classes, to compare with the expected features: (B T, J, F) by the names of the sources.

    Raises:
        AssertionError: its first line is the law and the source.
    """
    weight, bias = head.output.weight, head.output.bias
    states, features = hidden.detach().flatten(0, 1), {}
    scores = _class_scores(head, hidden.detach(), targets, source, source_states)
    for name, of_source in scores.items():
        phi = torch.zeros(*of_source.shape, len(bias), dtype=bias.dtype)
        for n, j in torch.ones_like(of_source).nonzero().tolist() if of_source.requires_grad else ():
            gradients = torch.autograd.grad(of_source[n, j], (weight, bias), retain_graph=True, allow_unused=True)
            in_weight, in_bias = (0.0 * x if g is None else g for x, g in zip((weight, bias), gradients, strict=True))
            phi[n, j] = in_bias.detach()
            law = f"the gradient of a class's score is φhᵀ in W where it is φ in c: class {j} of {name}"
            _close(law, in_weight.detach(), torch.outer(phi[n, j], states[n]))
        features[name] = phi
    generator = torch.Generator().manual_seed(0)
    change = [torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in (weight, bias)]
    before = [x.detach().clone() for x in (weight, bias)]
    with torch.no_grad():
        for parameter, more in zip((weight, bias), change, strict=True):
            parameter.add_(more)
        changed = _class_scores(head, hidden, targets, source, source_states)
        for parameter, value in zip((weight, bias), before, strict=True):
            parameter.copy_(value)
        for name, phi in features.items():
            expected = scores[name] + (phi * (states @ change[0].T + change[1]).unsqueeze(1)).sum(2)
            _close(f"other weights W and c change a class's score by φᵀ(W h + c): {name}", changed[name], expected)
    return features


def _class_scores(
    head: LogLinearHead, hidden: Tensor, targets: Tensor, source: Tensor | None, source_states: Tensor | None
) -> dict[str, Tensor]:
    """Return the scores of the classes at every position, by the names of their sources: (B T, J) each."""
    batch = head.batch(hidden, head.bind(head.previous(targets), source), source_states)
    replacing = [source.name for source in head.sources if source.replaces is not None]
    scores = {name: batch.source_scores[name].flatten(0, 1) for name in replacing}
    layers = [layer for layer in layers_of(batch.view) if layer.source.width]
    _holds("the head has classes of sources for this batch; found none", batch.slots is not None)
    assert batch.slots is not None
    split_scores = batch.slots.scores[:, : sum(layer.source.width for layer in layers)]
    return scores | {
        head.source_of(layer.bound).name: of_layer
        for layer, of_layer in zip(layers, split_scores.split([layer.source.width for layer in layers], 1), strict=True)
    }
