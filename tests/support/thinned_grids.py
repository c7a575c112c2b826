"""Grids of cases of which `make test` runs one in so many, and `make test-all` the others."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest


def one_in(number: int, *axes: Iterable[Any]) -> list[Any]:
    """All combinations for `parametrize`; but for one in `number`, they have the marker `slow`.

    A number that shares no divisor with the lengths of the axes meets all values of each, in changing company.
    """
    cases = enumerate(product(*axes))
    return [case if i % number == 0 else pytest.param(*case, marks=pytest.mark.slow) for i, case in cases]
