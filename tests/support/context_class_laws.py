"""The law of context classes, for every source of them: mass before + mass added = mass after, each word in one class.

Sizes: N hypotheses, T time, K columns. The oracle goes word by word through dictionaries, in float64.
"""

import math

import positions
import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.evidence.counted_slots import END, CountedSlots
from fairseq_llrnn.output.context_classes import ContextClasses

Weights = list[dict[int, Tensor]]  # log b(K, x) of each hypothesis, by token
NONE = torch.tensor(-math.inf, dtype=torch.float64)
TOLERANCE = {"atol": 1e-6, "rtol": 1e-6}


def weights_of(background: Background, state: Tensor) -> Weights:
    """The definition: the weights below, <unk>'s by its factor, and what the source adds to its words."""
    if not isinstance(background, ContextClasses):
        return [dict(enumerate(row)) for row in background.log_weights(state).expand(len(state), -1).double()]
    found, source = weights_of(background.base, background.below(state)), background.source
    if source.unk is not None:
        contexts = background.contexts_of(state)
        words, added = source.words(contexts).tolist(), source.log_added(contexts).double()
        for row, factor, weights in zip(range(len(state)), source.log_unk_factor(contexts), found, strict=True):
            weights[source.unk] = weights[source.unk] + factor
            for word, more in zip(words[row], added[row], strict=True):
                if word >= 0:
                    weights[word] = torch.logaddexp(weights.get(word, NONE), more)
    if isinstance(background, CountedSlots):
        contexts = background.contexts_of(state)
        words = background.source.words(contexts)
        factors = background._log_factors(state).double()
        for weights, of_row, of_slots in zip(found, words.tolist(), factors, strict=True):
            weights[END] = weights[END] + of_slots[-1]
            for word, more in zip(of_row, of_slots[:-1], strict=True):
                if word >= 0:
                    weights[word] = weights[word] + more
    return found


def class_of(background: Background, state: Tensor, row: int, token: int) -> int:
    """The class of a word with a weight: that of the last source that takes it out of another."""
    if not isinstance(background, ContextClasses):
        return int(background.class_of[token])
    words = background.source.words(background.contexts_of(state))[row].tolist()
    if token in words:
        return background.num_below + words.index(token)
    return class_of(background.base, background.below(state), row, token)


def masses_of(background: Background, state: Tensor, weights: Weights) -> Tensor:
    """The mass of every class, as the sum over its words: (N, C + J) float64."""
    rows = []
    for row, by_word in enumerate(weights):
        members: dict[int, list[Tensor]] = {}
        for token, weight in by_word.items():
            members.setdefault(class_of(background, state, row, token), []).append(weight)
        of_classes = [members.get(c, []) for c in range(background.num_classes)]
        empty = [all(weight.isneginf() for weight in some) for some in of_classes]
        sums = [NONE if e else torch.stack(w).exp().sum().log() for e, w in zip(empty, of_classes, strict=True)]
        rows.append(torch.stack(sums))
    return torch.stack(rows)


def check_context_classes(background: ContextClasses, history: Tensor) -> None:
    """Assert the law after every prefix of `history` (N, T); raises AssertionError with what is broken."""
    states, targets = positions.states(background, history), history.roll(-1, 1)
    masses = positions.log_mass(background, history).expand(*history.shape, -1)
    shares = positions.log_share(background, history, targets)
    of_targets = positions.classes(background, targets)
    for t, state in enumerate(states):
        mass = background.log_mass(state).expand(len(state), -1)
        torch.testing.assert_close(masses[:, t], mass, **TOLERANCE, msg="masses of training are those of search")
        share, classes = background.log_share(state, targets[:, t]), background.classes(state, targets[:, t])
        torch.testing.assert_close(shares[:, t], share, **TOLERANCE, msg="as shares are")
        assert torch.equal(of_targets[:, t], classes), "and classes"
        _check_state(background, state)
        order = torch.tensor([len(state) - 1, *range(len(state) - 1)])
        torch.testing.assert_close(background.log_mass(state[order]), mass[order], msg="reordering reorders")


def _check_state(background: ContextClasses, state: Tensor) -> None:
    with torch.no_grad():
        weights = weights_of(background, state)
        expected, mass = masses_of(background, state, weights), background.log_mass(state).expand(len(state), -1)
        torch.testing.assert_close(mass.exp().double(), expected.exp(), **TOLERANCE, msg="a mass is a sum")
        added = torch.stack([torch.stack(list(row.values())).exp().sum() for row in weights])
        torch.testing.assert_close(mass.double().exp().sum(1), added, **TOLERANCE, msg="mass is conserved")
        columns, shares = background.columns(state), background.log_shares(state).double()
        of_columns, all_weights = background.column_classes(state), background.log_weights(state).double()
        assert columns.size(1) == background.num_columns == shares.size(1) == all_weights.size(1)
        best, words = background.best_members(state, torch.arange(background.num_classes).expand(len(state), -1), 3)
        torch.testing.assert_close(background.best_share(state).expand(len(state), -1), best[:, :, 0])
        for row, by_word in enumerate(weights):
            one, seen = state[row : row + 1], set()
            in_class: dict[int, list[float]] = {}
            for column, token in enumerate(columns[row].tolist()):
                if int(background.column_of(columns[row : row + 1, column : column + 1], one)) != column:
                    assert all_weights[row, column].isneginf() and shares[row, column].isneginf(), "a void column"
                    continue
                seen.add(token)
                own, token_ = class_of(background, state, row, token), columns[row : row + 1, column]
                assert int(background.classes(one, token_)) == int(of_columns[row, column]) == own, "one class each"
                torch.testing.assert_close(all_weights[row, column].exp(), by_word[token].exp(), **TOLERANCE)
                share = by_word[token] - expected[row, own] if not by_word[token].isneginf() else NONE
                torch.testing.assert_close(shares[row, column], share, **TOLERANCE)
                torch.testing.assert_close(background.log_share(one, token_).double()[0], share, **TOLERANCE)
                in_class.setdefault(own, []).append(float(share))
            assert seen == set(by_word), "each word has one column"
            for c, of_class in in_class.items():
                total = 0.0 if expected[row, c].isneginf() else 1.0
                assert abs(math.fsum(map(math.exp, of_class)) - total) < 1e-6, "shares of a class sum to one"
                ranked = torch.tensor(sorted(of_class, reverse=True)[:3])
                torch.testing.assert_close(best[row, c, : len(ranked)].float(), ranked, msg="the best are the best")
                for value, token in zip(best[row, c].tolist(), words[row, c].tolist(), strict=True):
                    assert value == -math.inf or class_of(background, state, row, token) == c
