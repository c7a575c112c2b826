"""The laws find a background that breaks one, and say which (fairseq_llrnn/testing.py)."""

from collections.abc import Callable

import oracles
import pytest
import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.testing import check_background

CLASS_OF = torch.tensor([0, 1, 0, 2, 1, 3, 2, 0, 4])


class NoRepetition(Background):
    """A user's own: forbids the last word. A state is the last word, (N, 1)."""

    def start(self, n: int) -> Tensor:
        return self.class_of.new_full((n, 1), 2)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return tokens.unsqueeze(1)

    def log_weights(self, state: Tensor) -> Tensor:
        return torch.zeros(len(state), len(self.class_of)).scatter(1, state, float("-inf"))


def test_three_methods_make_a_background() -> None:
    check_background(NoRepetition(CLASS_OF, 5))


def changed(name: str, method: Callable[..., object]) -> Background:
    kind = type("Broken", (oracles.SparseHashBackground,), {name: method})
    made: Background = kind(CLASS_OF, 5)
    return made


Hash = oracles.SparseHashBackground
BROKEN: dict[str, tuple[str, Callable[..., object]]] = {
    "log_mass": ("log_mass is the sum", lambda self, state: Hash.log_mass(self, state) + 0.1),
    "log_shares": ("shares of a class", lambda self, state: Hash.log_shares(self, state) - 0.1),
    "log_share": ("log_share is an entry", lambda self, state, tokens: Hash.log_share(self, state, tokens) - 0.1),
    "log_weights_at": ("log_weights_at are", lambda self, state, rows, x: Hash.log_weights(self, state)[0][x]),
    "log_mass_of": ("log_mass_of is", lambda self, state, classes: Hash.log_mass(self, state)[:, 0]),
    "best_share": ("best_share is that", lambda self, state: Hash.best_share(self, state) - 0.1),
    "best_members": (
        "best_members are sorted",
        lambda self, state, classes, k: tuple(x.flip(2) for x in Hash.best_members(self, state, classes, k)),
    ),
    "only_member": ("only_member names", lambda self, state, classes: classes),
    "log_mass_without": (
        "log_mass_without is the sum",
        lambda self, state, words, taken: Hash.log_mass(self, state).gather(1, self.class_of[words]),
    ),
    "class_weights": ("masses are those of", lambda self, state: Hash.class_weights(self, state.flip(0))),
    "with_max_length": ("no limit changes a mass", lambda self, remaining: oracles.HashBackground(CLASS_OF, 5, seed=1)),
    "advance": ("advance equals", lambda self, state, tokens: Hash.advance(self, state, tokens).roll(1, 0)),
    "teacher_forced": (
        "values of all positions", lambda self,
        previous: (
            Hash.flat_states(self, previous), Hash.class_weights(self, Hash.flat_states(self, previous).flip(0))
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_law_is_named(name: str) -> None:
    law, method = BROKEN[name]
    with pytest.raises(AssertionError, match="law broken: ") as caught:
        check_background(changed(name, method))
    assert law in str(caught.value)


def test_tables_that_lose_their_precision() -> None:
    class Rounded(NoRepetition):
        def __init__(self) -> None:
            super().__init__(CLASS_OF, 5)
            self.inner = torch.nn.Module()
            self.inner.register_buffer("table", torch.zeros(3, dtype=torch.float64))

    with pytest.raises(AssertionError, match=r"law broken: tables in float64 stay in float64 .*: inner\.table"):
        check_background(Rounded())


def test_gradients_that_are_not_finite() -> None:
    class Explosive(NoRepetition):
        def __init__(self) -> None:
            super().__init__(CLASS_OF, 5)
            self.scale = torch.nn.Parameter(torch.zeros(()))

        def log_weights(self, state: Tensor) -> Tensor:
            return super().log_weights(state) + self.scale.sqrt()

    with pytest.raises(AssertionError, match="law broken: gradients are finite"):
        check_background(Explosive())


@pytest.mark.parametrize("row", range(5))
def test_a_wrong_limited_share_of_the_end_is_found_in_every_row(row: int) -> None:
    class Limited(oracles.SparseHashBackground):
        def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
            wrong = (torch.arange(len(tokens)) == row) & tokens.eq(2)
            return super().log_share(state, tokens) - 0.1 * wrong

    class Whole(oracles.SparseHashBackground):
        def with_max_length(self, remaining: int) -> Background:
            return Limited(CLASS_OF, 5)

    with pytest.raises(AssertionError, match="log_share is an entry of log_shares, with a limit, too"):
        check_background(Whole(CLASS_OF, 5))
