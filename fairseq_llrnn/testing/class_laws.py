"""The laws of sources of context classes, and of the rows of such classes in a head.

Sizes: N rows (hypotheses), T time, C classes below, J context classes of a context, F features, H hidden width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import View
from fairseq_llrnn.backgrounds.class_weights import broadcast_groups, row_numbers
from fairseq_llrnn.backgrounds.states import select
from fairseq_llrnn.output.context_classes import ContextClasses, ContextView, layers_of
from fairseq_llrnn.output.context_source import NO_WORD, ContextClassSource
from fairseq_llrnn.testing.asserting import by_step, close, holds, same

if TYPE_CHECKING:
    from fairseq_llrnn.head.head import LogLinearHead

CLOSE = 1e-6

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
        known = (ids >= 0) & view.below.bound.in_vocabulary(ids, view.below.states)
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
    states, whole = by_step(background, history), background.view_of(history)
    class_weights = whole.class_mass.dense().view(*history.shape, -1)
    of_targets, shares = (values.view_as(targets) for values in whole.locate(targets.flatten()))
    for t, state in enumerate(states):
        _check_words(background.source, background.contexts_of(state), f"before word {t}")
        view = background.view(state)
        mass = view.class_mass.dense()
        close("masses of training are those of a search", class_weights[:, t], mass, CLOSE)
        classes, share = view.locate(targets[:, t])
        close("shares of training are those of a search", shares[:, t], share, CLOSE)
        holds("classes of training are those of a search", torch.equal(of_targets[:, t], classes))
        _check_context_state(view, changes)
        order = torch.tensor([len(state) - 1, *range(len(state) - 1)])
        moved = background.view(select(state, order)).class_mass.dense()
        same("reordering states reorders masses", moved, mass[order])


def _check_words(source: ContextClassSource, contexts: Tensor, when: str) -> None:
    """Assert the laws of the source itself, before anything is computed from it."""
    if when == "at the beginning":
        inside = bool(((contexts >= 0) & (contexts < source.rows)).all())
        holds(f"start(n) are indices below `rows`, {source.rows}; found {contexts.tolist()}", inside)
        every = source.start(source.rows)
        counted = source.changes or not source.width or every.tolist() == list(range(source.rows))
        holds(f"start(rows) counts the contexts, unless they change; found {every.tolist()}", counted)
        advances = type(source).advance is not ContextClassSource.advance
        holds("a source that defines advance sets `changes`", source.changes or not advances)
    words = source.words(contexts)
    shape = len(contexts), source.width
    holds(f"words have the shape (N, width), {shape}; found {tuple(words.shape)}", tuple(words.shape) == shape)
    for context, row in zip(contexts.tolist(), words.tolist(), strict=True):
        real = [word for word in row if word != NO_WORD]
        holds(f"the words of context {context} ({when}) differ; found {row}", len(set(real)) == len(real))
    if source.unk is not None:
        added = source.log_added(contexts)
        holds(f"log_added has the shape of words; found {tuple(added.shape)}", added.shape == words.shape)
        places = ((words == NO_WORD) & ~added.isneginf()).nonzero().tolist()
        holds(f"log_added is −inf where words is NO_WORD ({when}); not so at {places}", not places)


def _check_context_state(view: ContextView, changes: Changes | None) -> None:
    with torch.no_grad():
        weights = weights_of(view, changes)
        expected, mass = masses_of(view, weights), view.class_mass.dense()
        close("the mass of a class is the sum over its words", mass.exp(), expected.exp(), CLOSE)
        added = torch.stack([torch.stack(list(row.values())).exp().sum() for row in weights])
        close("mass before and mass added are the mass after", mass.double().exp().sum(1), added, CLOSE)
        columns, shares = view.columns, view.log_shares.double()
        of_columns, all_weights = view.column_classes, view.log_weights.double()
        widths = columns.size(1), shares.size(1), all_weights.size(1)
        num_columns = view.num_columns
        holds(f"answers have num_columns, {num_columns}, columns; found {widths}", set(widths) == {num_columns})
        every_class = torch.arange(view.num_classes).expand(view.num_rows, -1)
        found = view.best(every_class.flatten(), 3, row_numbers(every_class).flatten())
        best, words = (values.unflatten(0, every_class.shape) for values in found)
        best_shares = broadcast_groups(view.best_share, view.num_rows)
        same("best_share is that of the best member", best_shares, best[:, :, 0])
        for row, by_word in enumerate(weights):
            own, seen = view.select(torch.tensor([row])), set()
            in_class: dict[int, list[float]] = {}
            for column, token in enumerate(columns[row].tolist()):
                if int(own.column_of(columns[row : row + 1, column : column + 1])) != column:
                    void = all_weights[row, column].isneginf() and shares[row, column].isneginf()
                    holds(f"column {column}, of no word, is empty", bool(void))
                    continue
                seen.add(token)
                number, token_ = class_of(view, row, token), columns[row : row + 1, column]
                located, found_share = own.locate(token_)
                classes = {int(located), int(own.classes(token_)), int(of_columns[row, column])}
                holds(f"word {token} is in class {number} alone; found {classes}", classes == {number})
                weight = all_weights[row, column].exp()
                close(f"log_weights has the weight of word {token}", weight, by_word[token].exp(), CLOSE)
                share = by_word[token] - expected[row, number] if not by_word[token].isneginf() else NONE
                close(f"log_shares has the share of word {token}", shares[row, column], share, CLOSE)
                close(f"locate returns the share of word {token}", found_share[0], share, CLOSE)
                at = own.weights_at(token_)[0].exp()
                close(f"weights_at returns the weight of word {token}", at, by_word[token].exp(), CLOSE)
                in_class.setdefault(number, []).append(float(share))
            holds(f"each word has one column; found {sorted(seen ^ set(by_word))} otherwise", seen == set(by_word))
            for c, of_class in in_class.items():
                total = 0.0 if expected[row, c].isneginf() else 1.0
                sum_of_shares = math.fsum(map(math.exp, of_class))
                holds(f"shares of class {c} sum to {total}; found {sum_of_shares}", abs(sum_of_shares - total) < CLOSE)
                ranked = torch.tensor(sorted(of_class, reverse=True)[:3])
                same(f"the best members of class {c} are the best", best[row, c, : len(ranked)].float(), ranked)
                for value, token in zip(best[row, c].tolist(), words[row, c].tolist(), strict=True):
                    member = value == -math.inf or class_of(view, row, token) == c
                    holds(f"the best members of class {c} are members; found {token}", member)


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
            close(law, in_weight.detach(), torch.outer(phi[n, j], states[n]))
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
            close(f"other weights W and c change a class's score by φᵀ(W h + c): {name}", changed[name], expected)
    return features


def _class_scores(
    head: LogLinearHead, hidden: Tensor, targets: Tensor, source: Tensor | None, source_states: Tensor | None
) -> dict[str, Tensor]:
    """Return the scores of the classes at every position, by the names of their sources: (B T, J) each."""
    batch = head.batch(hidden, head.bind(head.previous(targets), source), source_states)
    scores = {}
    if head.open_words is not None and batch.open_scores is not None:
        scores[head.open_words.name] = batch.open_scores.flatten(0, 1)
    layers = [layer for layer in layers_of(batch.view) if layer.source.width]
    holds("the head has classes of sources for this batch; found none", batch.slots is not None)
    assert batch.slots is not None
    split_scores = batch.slots.scores[:, : sum(layer.source.width for layer in layers)]
    return scores | {
        head.source_of(layer.bound).name: of_layer
        for layer, of_layer in zip(layers, split_scores.split([layer.source.width for layer in layers], 1), strict=True)
    }
