"""A source without classes changes nothing of the background below it."""

from __future__ import annotations

import pytest
import torch
from few_words import EOS, TARGET_WORDS, base
from positions import best_members
from torch import Tensor

from fairseq_llrnn.backgrounds.background import View
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.output.context_source import ContextClassSource

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


def answers(view: View) -> dict[str, Tensor]:
    """All results about N states, as dense as possible."""
    n, tokens = view.num_rows, torch.tensor([4, 9, 12])
    classes = torch.arange(view.num_classes).expand(n, -1)
    words, taken = torch.tensor([[4, 9]]).expand(n, -1), torch.tensor([[True, False]]).expand(n, -1)
    count, total = view.share_sums()
    log_probs = torch.linspace(-3, -1, view.num_classes, dtype=torch.float64).expand(n, -1)
    shares, members = best_members(view, classes, 2)
    located, share = view.locate(tokens)
    found = {
        "classes": view.classes(tokens), "columns": view.columns, "count": count, "total": total,
        "column_of": view.column_of(tokens.unsqueeze(1)), "shares of members": shares, "members": members,
        "column_classes": view.column_classes, "log_weights": view.log_weights, "log_shares": view.log_shares,
        "class_mass": view.class_mass.dense(), "without": view.mass_without(words, taken), "located": located,
        "share": share, "weights_at": view.weights_at(tokens), "mass_at": view.mass_at(located),
        "only_member": view.only_member(classes), "best_share": view.best_share, "words": view.expand(log_probs),
        "in_vocabulary": view.bound.in_vocabulary(tokens.unsqueeze(1), view.states),
        "input_ids": view.bound.to_input_ids(tokens.unsqueeze(1), view.states),
    }  # fmt: skip
    return {name: value.expand(n, *value.shape[1:]) for name, value in found.items()}


@pytest.mark.parametrize("unk", [None, 3])
@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("kind", ["static", "dynamic", "automaton"])
def test_all_results_are_those_of_the_background_below(kind: str, changes: bool, unk: int | None) -> None:
    below = base(kind).bind()
    layer = ContextClasses(below, Nothing(changes, unk))
    assert layer.num_classes == below.num_classes and layer.view(layer.start(B)).num_columns == V
    assert torch.equal(layer.possible_words(), below.possible_words()) and layer.has_dead_ends == below.has_dead_ends
    own, states = layer.start(B), below.start(B)
    with torch.no_grad():
        for tokens in PREVIOUS.roll(-1, 1).unbind(1):
            for remaining in (None, 2):
                expected = answers(below.view(states, remaining=remaining))
                for name, value in answers(layer.view(own, remaining=remaining)).items():
                    torch.testing.assert_close(value, expected[name], msg=name)
            own, states = layer.advance(own, tokens), below.advance(states, tokens)
        of_batch, of_below = layer.view_of(PREVIOUS), below.view_of(PREVIOUS)
        torch.testing.assert_close(of_batch.class_mass.dense(), of_below.class_mass.dense())
        torch.testing.assert_close(layer.below(of_batch.states), of_below.states)
        assert of_batch.class_mass.num_rows == PREVIOUS.numel()
