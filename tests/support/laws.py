"""The laws that every background obeys, fast or slow (design.md, contract of backgrounds)."""

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background

TOLERANCE = {"atol": 1e-5, "rtol": 1e-5}


NO_CONDITION = torch.zeros((5, 1), dtype=torch.long)


def check_background(
    unbound: Background, num_words: int, seed: int = 0, source: Tensor = NO_CONDITION
) -> None:
    """Assert every law on random histories; raises AssertionError with the law's name.

    Args:
        source: the conditions of five hypotheses, (5, L).
    """
    background = unbound.given(source)
    generator = torch.Generator().manual_seed(seed)
    history = torch.randint(0, num_words, (5, 4), generator=generator)
    states = background.states_along(history)
    for state in states:
        _mass_is_the_sum_of_member_weights(background, state, history.size(0))
        _shares_sum_to_one(background, state, history.size(0))
        _share_of_a_token_is_its_entry(background, state, history[:, 0])
        _best_members_are_best(background, state, history.size(0))
        _corrections_say_the_masses(background, state, history.size(0))
        for remaining in (1, 2, 50):
            _only_words_out_of_reach_lose_their_share(background, state, remaining, history.size(0))
    _reordering_commutes(background, unbound, source, history, states[-1])
    _training_equals_search(background, history, states)
    held_out = background.held_out(history)
    states = held_out.states_along(history)
    _mass_is_the_sum_of_member_weights(held_out, states[-1], history.size(0))
    _training_equals_search(held_out, history, states)


def _wide(x: Tensor, n: int) -> Tensor:
    return x.expand(n, -1)


def _mass_is_the_sum_of_member_weights(background: Background, state: Tensor, n: int) -> None:
    weights = _wide(background.log_weights(state), n).double().exp()
    mass = _wide(background.log_mass(state), n)
    for signature in range(background.num_classes):
        members = background.class_of == signature
        expected = weights[:, members].sum(1).log()
        torch.testing.assert_close(mass[:, signature].double(), expected, **TOLERANCE, msg="mass is a sum")


def _shares_sum_to_one(background: Background, state: Tensor, n: int) -> None:
    shares = _wide(background.log_shares(state), n).double().exp()
    mass = _wide(background.log_mass(state), n)
    totals = torch.zeros(n, background.num_classes, dtype=torch.float64)
    totals.scatter_add_(1, background.class_of.expand(n, -1), shares)
    expected = (~torch.isneginf(mass)).double()
    torch.testing.assert_close(totals, expected, **TOLERANCE, msg="shares of a class with mass sum to one")


def _share_of_a_token_is_its_entry(background: Background, state: Tensor, tokens: Tensor) -> None:
    table = _wide(background.log_shares(state), tokens.size(0))
    expected = table.gather(1, tokens.unsqueeze(1)).squeeze(1)
    torch.testing.assert_close(background.log_share(state, tokens), expected, msg="log_share is an entry of log_shares")


def _best_members_are_best(background: Background, state: Tensor, n: int) -> None:
    classes = torch.arange(background.num_classes).expand(n, -1)
    values, tokens = background.best_members(state, classes, 3)
    shares = _wide(background.log_shares(state), n)
    for signature in range(background.num_classes):
        members = (background.class_of == signature).nonzero().squeeze(1)
        expected = shares[:, members].sort(dim=1, descending=True).values[:, :3]
        found = values[:, signature]
        torch.testing.assert_close(found[:, : expected.size(1)], expected, msg="best members are sorted by share")
        assert torch.isneginf(found[:, expected.size(1) :]).all(), "missing members are filled with −inf"
        real = ~torch.isneginf(found)
        assert (background.class_of[tokens[:, signature]] == signature)[real].all(), "members belong to their class"
    best = _wide(background.best_share(state), n)
    torch.testing.assert_close(best, values[:, :, 0], msg="best_share is the first of the best members")


def _corrections_say_the_masses(background: Background, state: Tensor, n: int) -> None:
    corrections = background.corrections(state)
    assert (corrections is not None) == background.sparse, "who is sparse has corrections"
    if corrections is not None:
        mass = _wide(background.log_mass(state), n)
        torch.testing.assert_close(corrections.dense(n), mass, **TOLERANCE, msg="corrections say the masses")
        each = torch.stack([corrections.of_classes(torch.full((n,), c)) for c in range(mass.size(1))], dim=1)
        torch.testing.assert_close(each, mass, **TOLERANCE, msg="and that of each class")


def _only_words_out_of_reach_lose_their_share(background: Background, state: Tensor, remaining: int, n: int) -> None:
    limited = background.within(remaining)
    before, after = _wide(background.log_shares(state), n), _wide(limited.log_shares(state), n)
    torch.testing.assert_close(limited.log_mass(state), background.log_mass(state), msg="no limit changes a mass")
    lost = torch.isneginf(after)
    torch.testing.assert_close(after[~lost], before[~lost], msg="no limit changes what is left of the shares")
    mass = _wide(background.log_mass(state), n)[:, background.class_of]
    left = (~lost & ~torch.isneginf(mass)).any(1)
    reachable = background.steps_to_end(state) <= remaining
    some = (~torch.isneginf(before + mass)).any(1)
    assert (left >= (reachable & some)).all(), "where an end is in reach, a word is left"
    words = torch.arange(before.size(1)).repeat(n)
    each = limited.log_share(state.repeat_interleave(before.size(1), 0), words).view_as(after)
    torch.testing.assert_close(each, after, msg="log_share is an entry of log_shares, with a limit, too")
    _best_members_are_best(limited, state, n)


def _reordering_commutes(
    background: Background, unbound: Background, source: Tensor, history: Tensor, last: Tensor
) -> None:
    order = torch.tensor([3, 3, 0, 4])
    again = unbound.given(source[order])
    moved = again.states_along(history[order])[-1]
    answers = _wide(background.log_mass(last), history.size(0))[order]
    after = _wide(background.log_mass(last.index_select(0, order)), len(order))
    torch.testing.assert_close(after, answers, msg="reordering states reorders answers")
    replayed = _wide(again.log_mass(moved), len(order))
    torch.testing.assert_close(replayed, answers, msg="advance equals start + replay")


def _training_equals_search(background: Background, history: Tensor, states: list[Tensor]) -> None:
    batch, time = history.shape
    targets = history.roll(-1, dims=1)
    mass = background.log_mass_along(history).expand(batch, time, -1)
    shares = background.log_shares_along(history).expand(batch, time, -1)
    share = background.log_share_along(history, targets)
    for t, state in enumerate(states):
        for along, step in (
            (mass[:, t], _wide(background.log_mass(state), batch)),
            (shares[:, t], _wide(background.log_shares(state), batch)),
            (share[:, t], background.log_share(state, targets[:, t])),
        ):
            torch.testing.assert_close(along, step, msg="training-time values equal search-time values")
    corrections = background.corrections_along(history)
    assert (corrections is not None) == background.sparse, "who is sparse has corrections"
    if corrections is not None:
        found = corrections.dense(batch * time).view(batch, time, -1)
        torch.testing.assert_close(found, mass, **TOLERANCE, msg="corrections of a batch say its masses")
