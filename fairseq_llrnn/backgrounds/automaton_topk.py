"""Which members of a class have the most weight in a state of an automaton: what a search asks.

Sizes: N hypotheses, S signatures, D steps of the longest chain of failures, E entries, M pairs of state and class.

The members of a class come from the arcs of every state in the chain, and from the root. A word counts where it comes
first; on a later arc, or in the root, it is overruled (members.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.backgrounds.automaton_tables import AutomatonTables
from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.backgrounds.masses import log_difference
from fairseq_llrnn.backgrounds.members import Members, best_of, candidates, heaviest

LITTLE_LEFT = 0.1  # of a class' mass: as a difference it would lose a digit


def best_members(background: AutomatonTables, states: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k members with the largest log shares: (M,), (M,) -> log shares and tokens (M, k); −inf and 0 for none."""

    def forbidden(which: Tensor, words: Tensor) -> Tensor:
        return background.out_of_reach(words, background.step(states[which], words)[1])

    limit = None if background.remaining is None else forbidden
    return best_of(_lists(background, states, classes), background.mass(states, classes), k, limit)


def log_mass_without(background: AutomatonTables, state: Tensor, words: Tensor, taken: Tensor) -> Tensor:
    """As Background.log_mass_without: (N, 1), (N, J), (N, J) bool -> (N, J)."""
    states, classes = state.expand_as(words).flatten(), background.class_of[words]
    mass = background.mass(states, classes.flatten()).view_as(words)
    share = log_difference(background.step(states, words.flatten())[0].view_as(words), mass)
    # shape: (N, J, J), the words taken out of each word's class
    out = (classes.unsqueeze(2) == classes.unsqueeze(1)) & taken.unsqueeze(1)
    left = 1.0 - torch.where(out, share.exp().unsqueeze(1), 0.0).sum(2)
    rest = mass + left.clamp_min(0.0).log()
    row, column = ((left < LITTLE_LEFT) & out.any(2)).nonzero(as_tuple=True)
    if len(row) > 0:
        weights, tokens = candidates(_lists(background, state[row].squeeze(1), classes[row, column]), None)
        gone = (tokens.unsqueeze(2) == words.masked_fill(~taken, -1)[row].unsqueeze(1)).any(2)
        rest = rest.index_put((row, column), weights.masked_fill(gone, NEGATIVE_INFINITY).logsumexp(1))
    return rest.masked_fill(mass.isneginf(), NEGATIVE_INFINITY)


def _lists(background: AutomatonTables, states: Tensor, classes: Tensor) -> Iterator[Members]:
    """Where members of classes come from in states, (M,) each: the arcs of every state in the chain, and the root."""
    chain, root = background.chain[states], background.root  # shape: (M, D)

    def words(places: Tensor) -> Tensor:
        return background.arc_tokens[background.by_class[places]]

    def weights(places: Tensor) -> Tensor:
        return background.arc_weights[background.by_class[places]]

    def has_arc(levels: int, which: Any, tokens: Tensor) -> Tensor:
        """Whether one of the first states in the chain has an arc on each word."""
        some = torch.zeros_like(tokens, dtype=torch.bool)
        for level in range(levels):
            some |= background.find_arcs(chain[which, level : level + 1], tokens)[1]
        return some

    for level in range(chain.size(1)):
        entries, has_entry = background.find_entries(chain[:, level], classes)
        begin = background.entry_arcs[entries]
        many = torch.where(has_entry, background.entry_arcs[entries + 1] - begin, 0)
        yield Members(begin, many, background.costs[states, level], words, weights, partial(has_arc, level))
    many = torch.where(background.rooted[states], root.class_support[classes], 0)
    of_root = root.ranked_members.__getitem__, root.ranked_weights, partial(has_arc, chain.size(1))
    yield Members(root.class_starts[classes], many, background.costs[states, -1], *of_root)


# ---- the best share of every class -----------------------------------------------------------------------------------


def best_share(background: AutomatonTables, states: Tensor, of_entries: Tensor) -> Tensor:
    """(N,) -> (N, S). A class has the shares of the first state in the chain that changes it, or those of the root."""
    best = background.root.best_share(states.unsqueeze(1)).repeat(len(states), 1)
    if not background.all_rooted:
        best.masked_fill_(~background.rooted[states].unsqueeze(1), NEGATIVE_INFINITY)
    for level in reversed(range(background.chain.size(1))):
        rows, entries = background.expand(background.chain[states, level : level + 1], background.entry_offsets)
        place = rows.mul_(background.num_classes).add_(background.entry_classes[entries])
        best.view(-1).scatter_(0, place, of_entries[entries])
    return best


def best_of_entries(background: AutomatonTables) -> Tensor:
    """The largest log share in the class of every entry: (E + 1,), the last one without meaning."""
    states = background.entry_keys[:-1] // background.num_classes
    classes = background.entry_classes[:-1]
    best = heaviest(_lists(background, states, classes))
    return functional.pad((best - background.mass(states, classes)).clamp_max(0.0), (0, 1))


def best_share_within(background: AutomatonTables, state: Tensor) -> Tensor:
    """The best shares where a search is at its limit: (N, 1) -> (N, S)."""
    states = state.squeeze(1)
    if background.remaining == 1:  # nothing but </s>
        best = background.root.class_log_mass.new_full((len(states), background.num_classes), NEGATIVE_INFINITY)
        best[:, background.class_of[END]] = background.share(states, torch.full_like(states, END))
        return best
    if bool(background.rooted[states].any()):
        return Background.best_share(background, state)  # all words: few automata mix, and few steps are near a limit
    rows, arcs = background.expand(states.unsqueeze(1), background.arc_offsets)
    words = background.arc_tokens[arcs]
    weight = background.arc_weights[arcs]
    weight = weight.masked_fill(background.out_of_reach(words, background.arc_nexts[arcs]), NEGATIVE_INFINITY)
    best = weight.new_full((len(states) * background.num_classes,), NEGATIVE_INFINITY)
    best = best.scatter_reduce(0, rows * background.num_classes + background.class_of[words], weight, reduce="amax")
    return log_difference(best.view(len(states), -1), background.log_mass(state))
