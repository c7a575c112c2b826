"""The best members of classes that words have left, beside those of one member: against sorted lists."""

import math

import pytest
import torch

from fairseq_llrnn.backgrounds.split_classes import beside_own, best_staying
from fairseq_llrnn.backgrounds.static import StaticBackground

CLASS_OF = [0, 0, 0, 1, 1, 2]
WEIGHTS = [3.0, 2.0, 1.0, 5.0, 4.0, 1.0]


def test_the_best_that_stay_and_the_ones_of_their_own() -> None:
    background = StaticBackground(torch.tensor(CLASS_OF), 3, torch.tensor(WEIGHTS, dtype=torch.float64).log())
    state, classes = background.start(2), torch.tensor([[0, 1], [1, 2]])
    leaving = torch.tensor([[0, 4], [3, 5]])
    shares, words = best_staying(background, state, classes, leaving, 2)
    for row in range(2):
        for column in range(2):
            of_class = classes[row, column].item()
            members = [x for x, c in enumerate(CLASS_OF) if c == of_class]
            mass = sum(WEIGHTS[x] for x in members)
            staying = [x for x in members if x not in leaving[row].tolist()]
            expected = sorted(staying, key=lambda x: -WEIGHTS[x])[:2]
            found = shares[row, column].exp().tolist()
            assert words[row, column].tolist()[: len(expected)] == expected
            assert found[: len(expected)] == pytest.approx([WEIGHTS[x] / mass for x in expected])
            assert not any(found[len(expected) :])

    own = torch.tensor([[-3, 1], [0, -1]])  # the second class of the first row is its word 1, …
    own_shares, own_words = torch.tensor([[0.0, 0.0], [-math.inf, 0.0]]), torch.tensor([[7, 8], [9, 6]])
    values, chosen = beside_own(own, own_shares.to(shares), own_words, (shares, words))
    assert chosen[0, 1].tolist() == [8, 0] and values[0, 1].tolist() == [0.0, -math.inf]
    assert chosen[1, 0].tolist() == [0, 0] and values[1, 0].isneginf().all()  # without mass
    torch.testing.assert_close(values[0, 0], shares[0, 0])
    assert chosen[0, 0].tolist() == words[0, 0].tolist()
