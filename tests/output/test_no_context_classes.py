"""A source without classes changes nothing of the background below it."""

from __future__ import annotations

import pytest
import torch
from few_words import EOS, TARGET_WORDS, base
from torch import Tensor

from fairseq_llrnn.backgrounds.background import BoundBackground
from fairseq_llrnn.output.context_classes import ContextClasses, ContextClassSource

B, V = 3, len(TARGET_WORDS)
PREVIOUS = torch.tensor([[EOS, 4, 9], [EOS, 5, 5], [EOS, 12, 7]])


class Nothing(ContextClassSource):
    rows, width = B, 0

    def __init__(self, changes: bool, unk: int | None) -> None:
        self.changes, self.unk = changes, unk  # type: ignore[misc]

    def start(self, n: int) -> Tensor:
        return torch.arange(n)

    def words(self, contexts: Tensor) -> Tensor:
        return torch.zeros(*contexts.shape, 0, dtype=torch.long)

    def input_id_of(self, contexts: Tensor) -> Tensor:
        return self.words(contexts)


def answers(background: BoundBackground, state: Tensor) -> dict[str, Tensor]:
    """All results about N states, as dense as possible."""
    n, tokens = len(state), torch.tensor([4, 9, 12])
    classes = torch.arange(background.num_classes).expand(n, -1)
    words, taken = torch.tensor([[4, 9]]).expand(n, -1), torch.tensor([[True, False]]).expand(n, -1)
    count, total = background.log_share_sums(state)
    log_probs = torch.linspace(-3, -1, background.num_classes, dtype=torch.float64).expand(n, -1)
    shares, members = background.best_members(state, classes, 2)
    found = {
        "classes": background.classes(state, tokens), "columns": background.columns(state), "count": count,
        "column_of": background.column_of(tokens.unsqueeze(1), state), "total": total, "shares of members": shares,
        "column_classes": background.column_classes(state), "log_weights": background.log_weights(state),
        "class_weights": background.class_weights(state).dense(), "log_mass": background.log_mass(state),
        "without": background.log_mass_without(state, words, taken), "log_share": background.log_share(state, tokens),
        "only_member": background.only_member(state, classes), "best_share": background.best_share(state),
        "members": members, "log_shares": background.log_shares(state),
        "word_log_probs": background.word_log_probs(log_probs, state),
        "in_vocabulary": background.in_vocabulary(tokens.unsqueeze(1), state),
        "input_ids": background.to_input_ids(tokens.unsqueeze(1), state),
    }  # fmt: skip
    return {name: value.expand(n, *value.shape[1:]) for name, value in found.items()}


@pytest.mark.parametrize("unk", [None, 3])
@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("kind", ["static", "dynamic", "automaton"])
def test_all_results_are_those_of_the_background_below(kind: str, changes: bool, unk: int | None) -> None:
    below = base(kind).bind()
    layer = ContextClasses(below, Nothing(changes, unk))
    assert (layer.num_classes, layer.num_columns) == (below.num_classes, V) and layer.sparse == below.sparse
    assert torch.equal(layer.possible_words(), below.possible_words()) and layer.has_dead_ends == below.has_dead_ends
    assert layer.with_hidden(torch.zeros(B, 1)) is layer
    own, states = layer.start(B), below.start(B)
    with torch.no_grad():
        for tokens in PREVIOUS.roll(-1, 1).unbind(1):
            for name, value in answers(layer, own).items():
                torch.testing.assert_close(value, answers(below, states)[name], msg=name)
            limited = layer.with_max_length(2), below.with_max_length(2)
            torch.testing.assert_close(limited[0].best_share(own), limited[1].best_share(states))
            own, states = layer.advance(own, tokens), below.advance(states, tokens)
        of_batch, weights = layer.teacher_forced(PREVIOUS)
        expected_states, expected = below.teacher_forced(PREVIOUS)
        torch.testing.assert_close(weights.dense(), expected.dense())
        torch.testing.assert_close(layer.below(of_batch), expected_states)
        assert weights.num_rows == PREVIOUS.numel()
