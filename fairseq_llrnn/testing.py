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
from torch.nn import functional

from fairseq_llrnn.backgrounds.algebra import Product, Tempered
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, Background, BoundBackground, StaticBackground
from fairseq_llrnn.backgrounds.class_weights import broadcast_groups
from fairseq_llrnn.backgrounds.mixture import Mixture
from fairseq_llrnn.backgrounds.states import States, select
from fairseq_llrnn.output.context_classes import NO_WORD, ContextClasses, ContextClassSource, layers_of

if TYPE_CHECKING:
    from fairseq_llrnn.head.head import LogLinearHead

ROWS, LENGTH = 5, 4
BEST = 3
LIMITS = 1, 2, 50
CLOSE = 1e-6
LITTLE_LEFT = -6.9  # log of a thousandth


def check_background(
    background: Background, *, source: Tensor | None = None, hidden: Tensor | None = None, seed: int = 0,
    impossible: Sequence[int] = (),
) -> None:  # fmt: skip
    """Assert every law on random histories of words.

    Args:
        background: any, before `bind`. Its parameters' gradients do not change.
        source: (N, L) source tokens, for a background that depends on them.
        hidden: (N · 4, H) hidden states of N rows of four positions, for a background with weights chosen by the
            network (`with_hidden`).
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
    bound = _Conditions(background, source, hidden)
    whole = bound.of(history)
    if isinstance(whole, ContextClasses):
        raise TypeError(
            "check_background: expected a background without context classes, found those of "
            f"{type(whole.source).__name__}; use check_context_classes(background.bind(source), history)"
        )
    _advance_keeps_its_states(bound, whole, history)
    states = _by_step(whole, history)
    with torch.no_grad():  # as in a search, with cached values of a state
        for t, state in enumerate(states):
            laws = _Laws(bound.at(whole, t), state, history)
            laws.impossible_words_have_no_weight(impossible)
            laws.mass_is_the_sum_of_member_weights()
            laws.shares_of_a_class_sum_to_one()
            laws.answers_about_one_word_are_entries(history[:, 0])
            laws.best_members_are_best()
            laws.the_only_member_is_named()
            laws.mass_without_words_is_what_the_others_weigh(generator)
            laws.masses_are_those_of_all_classes()
            for remaining in LIMITS:
                laws.a_limit_takes_only_what_is_out_of_reach(remaining)
    _reordering_commutes(bound, history, states[-1])
    _positions_equal_steps(bound, history)
    _gradients_are_finite(bound, history)
    _combinations_keep_it(background, bound, history)
    cross_fitted = bound.of(history, cross_fitted=True)
    with torch.no_grad():
        _Laws(bound.at(cross_fitted, 0), cross_fitted.start(rows), history).mass_is_the_sum_of_member_weights()
    _positions_equal_steps(bound, history, cross_fitted=True)


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

    def of(self, history: Tensor, order: Tensor | None = None, cross_fitted: bool = False) -> BoundBackground:
        """Return it bound to all positions of `history` (N, T), or of the rows `order`."""
        source = self.source if self.source is None or order is None else self.source[order]
        background = self.background.bind(source, history if cross_fitted else None)
        if self.hidden is None:
            return background
        hidden = self.hidden.view(-1, LENGTH, self.hidden.size(1))
        return background.with_hidden((hidden if order is None else hidden[order]).flatten(0, 1))

    def at(self, background: BoundBackground, t: int, order: Tensor | None = None) -> BoundBackground:
        """Return the result of `of` for step t of a search."""
        if self.hidden is None:
            return background
        hidden = self.hidden.view(-1, LENGTH, self.hidden.size(1))[:, t]
        return background.with_hidden(hidden if order is None else hidden[order])


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

    def __init__(self, background: BoundBackground, state: States, history: Tensor) -> None:
        self.background, self.state, self.rows = background, state, len(history)
        self.class_of, self.num_classes = background.class_of, background.num_classes
        self.mass = self._wide(background.log_mass(state))
        self.weights = self._wide(background.log_weights(state))
        self.shares = self._wide(background.log_shares(state))
        self.each_class = torch.arange(self.num_classes, device=self.mass.device).expand(self.rows, -1)

    def _wide(self, x: Tensor) -> Tensor:
        _holds("answers have N rows or one", x.dim() == 2 and x.size(0) in (1, self.rows))
        return x.expand(self.rows, -1)

    def _sums(self, exponentials: Tensor) -> Tensor:
        """Return sums over the members of every class: (N, V) -> (N, S)."""
        sums = exponentials.new_zeros(self.rows, self.num_classes)
        return sums.scatter_add(1, self.class_of.expand(self.rows, -1), exponentials)

    def impossible_words_have_no_weight(self, tokens: Sequence[int]) -> None:
        possible = [token for token in tokens if not bool(self.weights[:, token].isneginf().all())]
        _holds(f"impossible tokens have the weight −inf in every state; found others of {possible}", not possible)

    def mass_is_the_sum_of_member_weights(self) -> None:
        _close("log_mass is the sum of the members' weights", self.mass, self._sums(self.weights.double().exp()).log())

    def shares_of_a_class_sum_to_one(self) -> None:
        sums = self._sums(self.shares.double().exp())
        _close("the shares of a class with mass sum to one", sums, ~self.mass.isneginf())

    def answers_about_one_word_are_entries(self, tokens: Tensor) -> None:
        expected = self.shares.gather(1, tokens.unsqueeze(1)).squeeze(1)
        _same("log_share is an entry of log_shares", self.background.log_share(self.state, tokens), expected)
        rows = torch.arange(self.rows, device=tokens.device).flip(0)
        answers = self.background.log_weights_at(self.state, rows, tokens)
        _close("log_weights_at are entries of log_weights", answers, self.weights[rows, tokens])
        classes = self.class_of[tokens]
        answers = self.background.log_mass_of(self.state, classes)
        _close("log_mass_of is an entry of log_mass", answers, self.mass.gather(1, classes.unsqueeze(1)).squeeze(1))

    def best_members_are_best(self, limited: BoundBackground | None = None) -> None:
        background, shares = self.background, self.shares
        if limited is not None:
            background, shares = limited, self._wide(limited.log_shares(self.state))
        values, tokens = background.best_members(self.state, self.each_class, BEST)
        expected = torch.full_like(values, NEGATIVE_INFINITY)
        exists = torch.zeros_like(values[0], dtype=torch.bool)  # (S, BEST): whether a class has so many members
        for signature in range(self.num_classes):
            members = (self.class_of == signature).nonzero().squeeze(1)
            highest = shares[:, members].sort(dim=1, descending=True).values[:, :BEST]
            expected[:, signature, : highest.size(1)] = highest
            exists[signature, : highest.size(1)] = True
        _same("best_members are sorted by share", values[:, exists], expected[:, exists])
        nothing = values.isneginf()
        _holds("best_members that do not exist have −inf", bool(nothing[:, ~exists].all()))
        named = shares.gather(1, tokens.flatten(1)).view_as(values).masked_fill(nothing, NEGATIVE_INFINITY)
        _same("best_members have the shares that they are said to have", named, values)
        inside = (self.class_of[tokens] == self.each_class.unsqueeze(2)) | nothing
        _holds("best_members belong to their class", bool(inside.all()))
        numbers = torch.where(nothing, torch.arange(-BEST, 0, device=tokens.device), tokens).sort(dim=2).values
        _holds("best_members are different words", bool((numbers[:, :, 1:] != numbers[:, :, :-1]).all()))
        best = broadcast_groups(background.best_share(self.state), self.rows)
        _same("best_share is that of the best member", best, values[:, :, 0])

    def the_only_member_is_named(self) -> None:
        members = [(self.class_of == c).nonzero().flatten().tolist() for c in range(self.num_classes)]
        expected = torch.tensor([m[0] if len(m) == 1 else -1 for m in members], device=self.mass.device)
        answers = self.background.only_member(self.state, self.each_class)
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
        answers = self.background.log_mass_without(self.state, *repeated).double()
        law = "log_mass_without is the sum of the other members' weights"
        _same(law + ": −inf where nothing is left", answers.isneginf(), expected.isneginf())
        # the rest of a class may have the absolute precision of the class' mass only
        little = expected < self.mass.double()[:, classes] + LITTLE_LEFT
        _close(law, answers.masked_fill(little, 0.0), expected.masked_fill(little, 0.0))
        limit = self.mass[:, classes].double() + LITTLE_LEFT
        _holds(law + " where little is left", bool((answers[little] < limit[little] + 1e-3).all()))

    def masses_are_those_of_all_classes(self) -> None:
        class_weights = self.background.class_weights(self.state)
        _holds(
            "class weights have entries where a background is `sparse`",
            (class_weights.entries is not None) == self.background.sparse,
        )
        _close("masses are those of log_mass", class_weights.dense(), self.mass)
        repeated = class_weights.repeated(2).dense()
        _close("repeated masses are those of repeated rows", repeated, self.mass.repeat_interleave(2, 0))
        by_class = torch.stack([class_weights.for_classes(c) for c in self.each_class.unbind(1)], dim=1)
        _close("masses of one class are an entry of log_mass", by_class, self.mass)

    def a_limit_takes_only_what_is_out_of_reach(self, remaining: int) -> None:
        limited = self.background.with_max_length(remaining)
        after = self._wide(limited.log_shares(self.state))
        _same("no limit changes a mass", self._wide(limited.log_mass(self.state)), self.mass)
        lost = after.isneginf()
        _same("no limit changes what is left of the shares", after[~lost], self.shares[~lost])
        left = (~lost & ~self.mass.isneginf()[:, self.class_of]).any(1)
        reachable = (self.background.steps_to_end(self.state) <= remaining) & ~self.mass.isneginf().all(1)
        _holds(f"a word is left where an end is in reach (limit {remaining})", bool((left >= reachable).all()))
        if limited is not self.background and not self.background.is_context_independent:
            tokens = torch.arange(after.size(1), device=after.device).repeat(self.rows)
            share = torch.stack([limited.log_share(self.state, t) for t in tokens.view(self.rows, -1).unbind(1)], dim=1)
            _same("log_share is an entry of log_shares, with a limit, too", share, after)
        self.best_members_are_best(limited)


def _advance_keeps_its_states(bound: _Conditions, background: BoundBackground, history: Tensor) -> None:
    """A search and a batch use a state again after `advance`."""
    state, rows = background.start(len(history)), torch.arange(len(history), device=history.device)
    with torch.no_grad():
        for t, tokens in enumerate(history[:, 1:].unbind(1)):
            copied, following = select(state, rows), background.advance(state, tokens)
            weights = [bound.at(background, t).log_weights(of_state) for of_state in (state, copied)]
            _same("advance returns new states, and does not change the old ones", *weights)
            state = following


def _reordering_commutes(bound: _Conditions, history: Tensor, last: States) -> None:
    order = torch.tensor([len(history) - 2, len(history) - 2, 0, len(history) - 1], device=history.device)
    rows, t = len(history), history.size(1) - 1
    before = bound.at(bound.of(history), t)
    moved = bound.at(bound.of(history), t, order)
    answers = before.log_mass(last).expand(rows, -1)[order].detach()
    after = moved.log_mass(select(last, order)).expand(len(order), -1).detach()
    _same("reordering states reorders answers", after, answers)
    again = bound.of(history[order], order)
    replayed = bound.at(again, t, order).log_mass(_by_step(again, history[order])[-1]).expand(len(order), -1)
    _same("advance equals start and replay", replayed.detach(), answers)


def _positions_equal_steps(bound: _Conditions, history: Tensor, cross_fitted: bool = False) -> None:
    batch, time = history.shape
    background = bound.of(history, cross_fitted=cross_fitted)
    targets = history.roll(-1, dims=1)
    flat, class_weights = background.teacher_forced(history)
    mass = class_weights.dense().view(batch, time, -1).detach()
    shares = background.log_shares(flat).expand(batch * time, -1).view(batch, time, -1).detach()
    share = background.log_share(flat, targets.flatten()).view_as(targets).detach()
    # cross-fitted, each sentence of a row begins in the state of its own fold, unlike in searches
    states = _positions(flat, history) if cross_fitted else _by_step(background, history)
    for t, state in enumerate(states):
        step = bound.at(background, t)
        law = "values of all positions at once equal those of a search step by step"
        _close(law, mass[:, t], step.log_mass(state).expand(batch, -1).detach())
        _close(law, shares[:, t], step.log_shares(state).expand(batch, -1).detach())
        _close(law, share[:, t], step.log_share(state, targets[:, t]).detach())
    of_flat = background.log_mass(flat).expand(batch * time, -1).detach()
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


def _combinations_keep_it(background: Background, bound: _Conditions, history: Tensor) -> None:
    """Assert that a background weighs the same in combinations that do not change it, also if beams are reordered."""
    neutral = StaticBackground(background.class_of, background.num_classes, torch.zeros(len(background.class_of)))
    neutral = neutral.to(background.class_of.device)
    product = Product([neutral, background, neutral])
    texts = _NeutralTexts(background.class_of, background.num_classes)
    order = torch.arange(len(history), device=history.device).flip(0)
    last, before = history.size(1) - 1, bound.of(history)
    with torch.no_grad():
        weights = bound.at(before, last).log_weights(_by_step(before, history)[-1]).expand(len(history), -1)[order]
        of_positions = before.log_weights(before.flat_states(history)).expand(history.numel(), -1)
        for name, combined in (
            ("Product", product),
            ("Product with states that grow", Product([texts, background])),
            ("Tempered", Tempered(product, 1.0)),
            ("Mixture", Mixture([background, Product([background, neutral])])),
        ):
            conditions = replace(bound, background=combined)
            whole, law = conditions.of(history), f"a background weighs the same in a {name}"
            state = select(_by_step(whole, history)[-1], order)
            moved = conditions.at(whole, last, order)
            _close(law, moved.log_weights(state).expand(len(order), -1), weights)
            limited = moved.with_max_length(LIMITS[-1])
            _close(law, limited.log_weights(state).expand(len(order), -1), weights)
            flat = whole.log_weights(whole.flat_states(history)).expand(history.numel(), -1)
            _close(f"{law} at all positions", flat, of_positions)


def _gradients_are_finite(bound: _Conditions, history: Tensor) -> None:
    parameters = [p for p in bound.background.parameters() if p.requires_grad]
    if not parameters:
        return
    background = bound.of(history)
    states, class_weights = background.teacher_forced(history)
    mass, share = class_weights.dense(), background.log_share(states, history.roll(-1, dims=1).flatten())
    answers = mass[~mass.isneginf()].sum() + share[~share.isneginf()].sum()
    if answers.requires_grad:
        gradients = torch.autograd.grad(answers, parameters, allow_unused=True)
        _holds("gradients are finite", all(bool(g.isfinite().all()) for g in gradients if g is not None))


# ---- context classes ------------------------------------------------------------------------------------------------

Weights = list[dict[int, Tensor]]  # log b(K, x) of each hypothesis, by token
Changes = Callable[[ContextClasses, Tensor, Weights], None]  # a subclass's changes to the weights of its source
NONE = torch.tensor(-math.inf, dtype=torch.float64)


def weights_of(background: BoundBackground, state: States, changes: Changes | None = None) -> Weights:
    """Return the weights by definition, word by word: the weights below, with <unk>'s factor and the source's
    additions.
    """
    if not isinstance(background, ContextClasses):
        return [dict(enumerate(row)) for row in background.log_weights(state).expand(len(state), -1).double()]
    result, source = weights_of(background.base, background.below(state), changes), background.source
    if source.unk is not None:
        contexts = background.contexts_of(state)
        ids, added = source.words(contexts), source.log_added(contexts).double()
        below = background.below(state)
        known = (ids >= 0) & background.base.in_vocabulary(ids, below)
        own = source.log_weights_below(background.base, below, contexts, ids.masked_fill(~known, source.unk))
        words = ids.tolist()
        for row, factor, weights in zip(range(len(state)), source.log_unk_factor(contexts), result, strict=True):
            weights[source.unk] = weights[source.unk] + factor
            for column, (word, more) in enumerate(zip(words[row], added[row], strict=True)):
                if word >= 0:
                    before = weights.get(word, NONE)
                    if own is not None and word in weights:
                        before = own[row, column].double()
                    weights[word] = torch.logaddexp(before, more)
    if changes is not None:
        changes(background, state, result)
    return result


def class_of(background: BoundBackground, state: States, row: int, token: int) -> int:
    """Return the class of a word with weight: that of the last source that has the word."""
    if not isinstance(background, ContextClasses):
        return int(background.class_of[token])
    words = background.source.words(background.contexts_of(state))[row].tolist()
    if token in words:
        return background.num_below + words.index(token)
    return class_of(background.base, background.below(state), row, token)


def masses_of(background: BoundBackground, state: States, weights: Weights) -> Tensor:
    """Return the mass of every class, as the sum over its words: (N, C + J) float64."""
    rows = []
    for row, by_word in enumerate(weights):
        members: dict[int, list[Tensor]] = {}
        for token, weight in by_word.items():
            members.setdefault(class_of(background, state, row, token), []).append(weight)
        of_classes = [members.get(c, []) for c in range(background.num_classes)]
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
    states = background.flat_states(history)
    targets = history.roll(-1, 1)
    class_weights = background.teacher_forced(history)[1].dense().view(*history.shape, -1)
    shares = background.log_share(states, targets.flatten()).view_as(targets)
    before = background.flat_states(functional.pad(targets, (1, 0))[:, :-1])
    of_targets = background.classes(before, targets.flatten()).view_as(targets)
    for t, state in enumerate(_positions(states, history)):
        _check_words(background.source, background.contexts_of(state), f"before word {t}")
        mass = background.log_mass(state).expand(len(state), -1)
        _close("masses of training are those of a search", class_weights[:, t], mass, CLOSE)
        share, classes = background.log_share(state, targets[:, t]), background.classes(state, targets[:, t])
        _close("shares of training are those of a search", shares[:, t], share, CLOSE)
        _holds("classes of training are those of a search", torch.equal(of_targets[:, t], classes))
        _check_context_state(background, state, changes)
        order = torch.tensor([len(state) - 1, *range(len(state) - 1)])
        _same("reordering states reorders masses", background.log_mass(select(state, order)), mass[order])


def _check_words(source: ContextClassSource, contexts: Tensor, when: str) -> None:
    """Assert the laws of the source itself, before anything is computed from it."""
    if when == "at the beginning":
        inside = bool(((contexts >= 0) & (contexts < source.rows)).all())
        _holds(f"start(n) are indices below `rows`, {source.rows}; found {contexts.tolist()}", inside)
        every = source.start(source.rows)
        counted = source.changes or not source.width or every.tolist() == list(range(source.rows))
        _holds(f"start(rows) counts the contexts, unless they change; found {every.tolist()}", counted)
    words = source.words(contexts)
    for context, row in zip(contexts.tolist(), words.tolist(), strict=True):
        real = [word for word in row if word != NO_WORD]
        _holds(f"the words of context {context} ({when}) differ; found {row}", len(set(real)) == len(real))
    if source.unk is not None:
        added = source.log_added(contexts)
        _holds(f"log_added has the shape of words; found {tuple(added.shape)}", added.shape == words.shape)
        places = ((words == NO_WORD) & ~added.isneginf()).nonzero().tolist()
        _holds(f"log_added is −inf where words is NO_WORD ({when}); not so at {places}", not places)


def _check_context_state(background: ContextClasses, state: States, changes: Changes | None) -> None:
    with torch.no_grad():
        weights = weights_of(background, state, changes)
        expected, mass = masses_of(background, state, weights), background.log_mass(state).expand(len(state), -1)
        _close("the mass of a class is the sum over its words", mass.exp(), expected.exp(), CLOSE)
        added = torch.stack([torch.stack(list(row.values())).exp().sum() for row in weights])
        _close("mass before and mass added are the mass after", mass.double().exp().sum(1), added, CLOSE)
        columns, shares = background.columns(state), background.log_shares(state).double()
        of_columns, all_weights = background.column_classes(state), background.log_weights(state).double()
        widths = columns.size(1), shares.size(1), all_weights.size(1)
        num_columns = background.num_columns
        _holds(f"answers have num_columns, {num_columns}, columns; found {widths}", set(widths) == {num_columns})
        best, words = background.best_members(state, torch.arange(background.num_classes).expand(len(state), -1), 3)
        best_shares = broadcast_groups(background.best_share(state), len(state))
        _same("best_share is that of the best member", best_shares, best[:, :, 0])
        for row, by_word in enumerate(weights):
            own_state, seen = select(state, torch.tensor([row])), set()
            in_class: dict[int, list[float]] = {}
            for column, token in enumerate(columns[row].tolist()):
                if int(background.column_of(columns[row : row + 1, column : column + 1], own_state)) != column:
                    void = all_weights[row, column].isneginf() and shares[row, column].isneginf()
                    _holds(f"column {column}, of no word, is empty", bool(void))
                    continue
                seen.add(token)
                number, token_ = class_of(background, state, row, token), columns[row : row + 1, column]
                classes = {int(background.classes(own_state, token_)), int(of_columns[row, column])}
                _holds(f"word {token} is in class {number} alone; found {classes}", classes == {number})
                weight = all_weights[row, column].exp()
                _close(f"log_weights has the weight of word {token}", weight, by_word[token].exp(), CLOSE)
                share = by_word[token] - expected[row, number] if not by_word[token].isneginf() else NONE
                _close(f"log_shares has the share of word {token}", shares[row, column], share, CLOSE)
                _close(f"log_share is that of word {token}", background.log_share(own_state, token_)[0], share, CLOSE)
                in_class.setdefault(number, []).append(float(share))
            _holds(f"each word has one column; found {sorted(seen ^ set(by_word))} otherwise", seen == set(by_word))
            for c, of_class in in_class.items():
                total = 0.0 if expected[row, c].isneginf() else 1.0
                sum_of_shares = math.fsum(map(math.exp, of_class))
                _holds(f"shares of class {c} sum to {total}; found {sum_of_shares}", abs(sum_of_shares - total) < CLOSE)
                ranked = torch.tensor(sorted(of_class, reverse=True)[:3])
                _same(f"best_members of class {c} are the best", best[row, c, : len(ranked)].float(), ranked)
                for value, token in zip(best[row, c].tolist(), words[row, c].tolist(), strict=True):
                    member = value == -math.inf or class_of(background, state, row, token) == c
                    _holds(f"best_members of class {c} are members; found {token}", member)


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
    scores = {made.name: batch.kept[made.name].flatten(0, 1) for made in head.sources if made.replaces is not None}
    layers = [layer for layer, _ in layers_of(batch.background, batch.states) if layer.source.width]
    assert batch.slots is not None  # where there are classes
    split_scores = batch.slots.scores[:, : sum(layer.source.width for layer in layers)]
    return scores | {
        head._source_of(layer).name: of_layer
        for layer, of_layer in zip(layers, split_scores.split([layer.source.width for layer in layers], 1), strict=True)
    }
