"""Assertions of laws: the first line of an error names the law."""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import BoundBackground
from fairseq_llrnn.backgrounds.states import States


def same(law: str, actual: Tensor, expected: Tensor) -> None:
    """Assert equality within rounding."""
    if (actual.dtype, actual.device) == (expected.dtype, expected.device) and torch.equal(actual, expected):
        return  # at once: torch's own function takes much longer
    torch.testing.assert_close(actual, expected, msg=lambda text: f"law broken: {law}\n{text}")


def close(law: str, actual: Tensor, expected: Tensor, within: float = 1e-5) -> None:
    """Assert equality up to the order of sums."""
    torch.testing.assert_close(
        actual.double(), expected.double(), atol=within, rtol=within, msg=lambda text: f"law broken: {law}\n{text}"
    )


def holds(law: str, condition: bool) -> None:
    if not condition:
        raise AssertionError(f"law broken: {law}")


def by_step(background: BoundBackground, history: Tensor) -> list[States]:
    """Return the states before each word of histories (N, T): T times those of N hypotheses."""
    states = [background.start(len(history))]
    for tokens in history[:, 1:].unbind(1):  # the first is the start symbol, which state machines do not read
        states.append(background.advance(states[-1], tokens))
    return states
