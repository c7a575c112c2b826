"""Which members of a class have the most weight in a state of an automaton: what a search asks.

Sizes: N hypotheses, S signatures, D steps of the longest chain of failures, E entries, M pairs of state and class, W
candidates.

The members of a class come from the arcs of every state in the chain, and from the root. A word counts where it comes
first; on a later arc, or in the root, it is overruled. Of every level the heaviest come first, so that of the next
level no more than the k best are needed, and one more for each word that may overrule one.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.backgrounds.automaton_tables import AutomatonTables
from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.backgrounds.masses import first_left, log_difference

LITTLE_LEFT = 0.1  # of a class' mass: as a difference it would lose a digit


def best_of(background: AutomatonTables, states: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k members with the largest log shares: (M,), (M,) -> log shares and tokens (M, k); −inf and 0 for none."""
    weights, tokens = members(background, states, classes, None if background.remaining is not None else k)
    if weights.size(1) < k:
        weights = functional.pad(weights, (0, k - weights.size(1)), value=NEGATIVE_INFINITY)
        tokens = functional.pad(tokens, (0, k - tokens.size(1)))
    values, where = weights.topk(k, dim=1)
    shares = log_difference(values, background.mass(states, classes).unsqueeze(1))
    return shares, tokens.gather(1, where).masked_fill(values.isneginf(), 0)


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
        weights, tokens = members(background, state[row].squeeze(1), classes[row, column], None)
        gone = (tokens.unsqueeze(2) == words.masked_fill(~taken, -1)[row].unsqueeze(1)).any(2)
        rest = rest.index_put((row, column), weights.masked_fill(gone, NEGATIVE_INFINITY).logsumexp(1))
    return rest.masked_fill(mass.isneginf(), NEGATIVE_INFINITY)


def members(background: AutomatonTables, states: Tensor, classes: Tensor, k: int | None) -> tuple[Tensor, Tensor]:
    """Members and their log weights: (M,), (M,) -> (M, W) each, −inf where there is none.

    Args:
        k: all that may be among so many best ones; None: all members, but for those out of the search's reach.
    """
    chain = background.chain[states]  # shape: (M, D)
    entries, has_entry = background.find_entries(chain, classes.unsqueeze(1))
    run = torch.where(has_entry, background.entry_arcs[entries + 1] - background.entry_arcs[entries], 0)
    above = torch.zeros_like(states)  # how many arcs on the class the levels before have
    weights, tokens = [], []
    for level in range(chain.size(1)):
        width = _width(run[:, level], above, k)
        step = torch.arange(width, device=states.device)
        inside = step < run[:, level : level + 1]  # shape: (M, W)
        place = (background.entry_arcs[entries[:, level : level + 1]] + step).masked_fill(~inside, -1)
        arcs = background.by_class[place]
        words = background.arc_tokens[arcs]
        weight = background.costs[states, level].unsqueeze(1) + background.arc_weights[arcs]
        weight = weight.masked_fill(~inside | _overruled(background, chain[:, :level], words), NEGATIVE_INFINITY)
        if background.remaining is not None:
            weight = weight.masked_fill(background.out_of_reach(words, background.arc_nexts[arcs]), NEGATIVE_INFINITY)
        weights.append(weight)
        tokens.append(words)
        above = above + run[:, level]
    root = background.root
    size = torch.where(background.rooted[states], root.class_support[classes], 0)
    step = torch.arange(_width(size, above, k), device=states.device)
    inside = step < size.unsqueeze(1)
    words = root.ranked_members[(root.class_starts[classes].unsqueeze(1) + step).masked_fill(~inside, 0)]
    weight = background.costs[states, -1:] + root.word_log_weight[words]
    weight = weight.masked_fill(~inside | _overruled(background, chain, words), NEGATIVE_INFINITY)
    if background.remaining is not None:
        after = background.after_root(states.unsqueeze(1), words)
        weight = weight.masked_fill(background.out_of_reach(words, after), NEGATIVE_INFINITY)
    return torch.cat([*weights, weight], 1), torch.cat([*tokens, words], 1)


def _width(run: Tensor, above: Tensor, k: int | None) -> int:
    longest = int(run.max()) if len(run) else 0
    return longest if k is None else min(longest, k + int(above.max()) if len(run) else 0)


def _overruled(background: AutomatonTables, before: Tensor, words: Tensor) -> Tensor:
    """Whether an earlier state of the chain (M, levels) has an arc on the word: (M, W) -> (M, W) bool."""
    result = torch.zeros_like(words, dtype=torch.bool)
    for level in range(before.size(1)):
        result |= background.find_arcs(before[:, level : level + 1], words)[1]
    return result


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
    chain = background.chain[states]
    begin = background.entry_arcs[:-2]
    ranked = background.arc_tokens[background.by_class]  # words of arcs in that order
    best = background.arc_weights[background.by_class[begin]]
    for level in range(1, chain.size(1)):
        entries, has_entry = background.find_entries(chain[:, level], classes)
        begin = background.entry_arcs[entries]
        end = torch.where(has_entry, background.entry_arcs[entries + 1], begin)
        place = _first_not_overruled(background, chain[:, :level], begin, end, ranked)
        weight = background.costs[states, level] + background.arc_weights[background.by_class[place]]
        best = torch.maximum(best, weight.masked_fill(place >= end, NEGATIVE_INFINITY))
    root = background.root
    begin = root.class_starts[classes]
    end = begin + torch.where(background.rooted[states], root.class_support[classes], 0)
    place = _first_not_overruled(background, chain, begin, end, root.ranked_members)
    word = root.ranked_members[place.clamp_max(len(root.ranked_members) - 1)]
    weight = background.costs[states, -1] + root.word_log_weight[word]
    best = torch.maximum(best, weight.masked_fill(place >= end, NEGATIVE_INFINITY))
    return functional.pad((best - background.mass(states, classes)).clamp_max(0.0), (0, 1))


def _first_not_overruled(
    background: AutomatonTables, before: Tensor, begin: Tensor, end: Tensor, words: Tensor
) -> Tensor:
    """The first place in begin … end − 1 whose word no state before has an arc on: (M,); `end` where there is none."""

    def is_overruled(some: Tensor, places: Tensor) -> Tensor:
        return _overruled(background, before[some], words[places].unsqueeze(1)).squeeze(1)

    return first_left(begin, end, is_overruled)


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
