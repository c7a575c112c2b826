"""The steps by hand: a bigram softmax of plain numbers, whose gradient is written out."""

import math

import pytest
import torch
from torch import Tensor

from fairseq_llrnn.systems.dynamic_evaluation.updates import Updates, gradients, mean_squares

WORDS = 3
Matrix = list[list[float]]
TEXT = [[(0, 1), (1, 2)], [(2, 2)], [(0, 1), (1, 1), (1, 0)], [(2, 0)]]  # groups of (word before, word)
TRAINING = [[(0, 2), (1, 1)], [(0, 0)], [(1, 2), (0, 1)]]  # which never reads word 2
START = [[0.1, -0.4, 0.3], [1.2, 0.0, -0.7], [-0.2, 0.5, 0.9]]
CELLS = [(i, j) for i in range(WORDS) for j in range(WORDS)]


def loss_by_hand(theta: Matrix, group: list[tuple[int, int]]) -> tuple[float, Matrix]:
    """The mean of −log softmax(θ[before])[word], and its gradient: p − 1 at the word."""
    loss, slope = 0.0, [[0.0] * WORDS for _ in range(WORDS)]
    for before, word in group:
        total = sum(math.exp(x) for x in theta[before])
        loss -= math.log(math.exp(theta[before][word]) / total) / len(group)
        for j in range(WORDS):
            slope[before][j] += (math.exp(theta[before][j]) / total - (j == word)) / len(group)
    return loss, slope


def squares_by_hand() -> Matrix:
    slopes = [loss_by_hand(START, group)[1] for group in TRAINING]
    return [[sum(s[i][j] ** 2 for s in slopes) / len(slopes) for j in range(WORDS)] for i in range(WORDS)]


def by_hand(rule: str, rate: float, decay: float, epsilon: float) -> tuple[list[float], Matrix]:
    theta, losses, squares = [list(row) for row in START], [], squares_by_hand()
    mean = sum(math.sqrt(squares[i][j]) for i, j in CELLS) / len(CELLS)
    for group in TEXT:
        loss, slope = loss_by_hand(theta, group)
        losses.append(loss)
        for i, j in CELLS:
            back, root = START[i][j] - theta[i][j], math.sqrt(squares[i][j])
            if rule == "sgd":
                theta[i][j] += decay * back - rate * slope[i][j]
            else:
                theta[i][j] += min(1.0, decay * root / mean) * back - rate * slope[i][j] / (root + epsilon)
    return losses, theta


def loss_of(theta: Tensor, group: list[tuple[int, int]]) -> Tensor:
    before, words = torch.tensor(group).T
    return torch.nn.functional.cross_entropy(theta[before], words)


@pytest.mark.parametrize(("rate", "decay"), [(0.3, 0.0), (0.3, 0.2), (0.01, 0.9)])  # 0.9 is cut off at some weights
@pytest.mark.parametrize("rule", ["sgd", "rms"])
def test_steps_are_those_by_hand(rule: str, rate: float, decay: float) -> None:
    theta = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    squares = mean_squares((loss_of(theta, group) for group in TRAINING), [theta])
    torch.testing.assert_close(squares[0], torch.tensor(squares_by_hand(), dtype=torch.float64), rtol=0, atol=1e-10)
    updates = Updates([theta], squares if rule == "rms" else None, 0.05)
    expected, end = by_hand(rule, rate, decay, 0.05)
    for _ in range(2):  # the second time from the beginning
        updates.reset()
        losses = []
        for group in TEXT:
            loss = loss_of(theta, group)
            losses.append(loss.item())
            updates.step(loss, rate, decay)
        assert losses == pytest.approx(expected, abs=1e-10)
        torch.testing.assert_close(theta.detach(), torch.tensor(end, dtype=torch.float64), rtol=0, atol=1e-10)
    updates.reset()
    assert theta.tolist() == START


def test_some_weights_are_drawn_back_no_further_than_to_their_start() -> None:
    roots = [math.sqrt(x) for row in squares_by_hand() for x in row]
    assert max(0.9 * root / (sum(roots) / len(roots)) for root in roots) > 1.0
    assert min(roots) == 0.0


def test_gradients_of_weights_that_are_not_read_and_of_sparse_ones() -> None:
    table = torch.nn.Embedding(4, 2, sparse=True)
    unread = torch.ones(3, requires_grad=True)
    of_table, of_unread = gradients(table(torch.tensor([1, 1, 3])).sum(), [table.weight, unread])
    assert of_table.tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]
    assert of_unread.tolist() == [0.0, 0.0, 0.0]


def test_no_mean_of_nothing() -> None:
    with pytest.raises(ValueError, match="expected losses, found none"):
        mean_squares([], [torch.ones(1)])
