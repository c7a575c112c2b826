"""The laws that every background obeys, fast or slow (design.md, contract of backgrounds)."""

import torch
from torch import Tensor

from fairseq_llrnn.core.backgrounds.contract import Background

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
    _reordering_commutes(background, unbound, source, history, states[-1])
    _training_equals_search(background, history, states)


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
