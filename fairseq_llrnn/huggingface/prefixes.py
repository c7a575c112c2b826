"""The states of hypotheses in a search that reorders them without saying how.

`generate` of transformers hands a model, and a logits processor, all tokens that each hypothesis has written. What a
state machine says depends on these and on the hypothesis' sentence alone. So a state is looked up by them among those
of the step before, and goes on by the last token; where it is not found there, the prefix is read from its beginning.
Either way it is the state of that very prefix.

Sizes: N hypotheses, T tokens written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

States = TypeVar("States")


class PrefixStates(Generic[States]):
    """States of the prefixes that were asked for last."""

    def __init__(
        self,
        start: Callable[[int], States],
        advance: Callable[[States, Tensor], States],
        select: Callable[[States, Tensor], States],
        unread: int,
    ) -> None:
        """
        Args:
            start: of N hypotheses that have written nothing; row i is of the i-th one's sentence, in every step.
            advance: by one token each, (N,). select: rows (M,) of states.
            unread: how many tokens at the beginning are not read: a start symbol, or a prompt.
        """
        self.start, self.advance, self.select, self.unread = start, advance, select, unread
        self._last: tuple[Tensor, States] | None = None
        self.read_anew = 0  # how many steps read their prefixes from the beginning

    def of(self, written: Tensor, sentence: Tensor) -> States:
        """The states of the prefixes (N, T).

        Args:
            sentence: the number of each hypothesis' sentence, (N,): `start` gives equal ones the same state.
        """
        keys = torch.cat([sentence.unsqueeze(1), written], dim=1)
        states = self._gone_on(keys)
        if states is None:
            self.read_anew += 1
            states = self.start(len(written))
            for tokens in written[:, self.unread :].unbind(1):
                states = self.advance(states, tokens)
        self._last = keys, states
        return states

    def _gone_on(self, keys: Tensor) -> States | None:
        """From the states before; None where one of the prefixes is not among them."""
        if self._last is None or self._last[0].size(1) + 1 != keys.size(1) or keys.size(1) - 1 <= self.unread:
            return None
        number_of = {row.tobytes(): number for number, row in enumerate(_rows(self._last[0]))}
        numbers = [number_of.get(row.tobytes(), -1) for row in _rows(keys[:, :-1])]
        if -1 in numbers:
            return None
        parents = torch.tensor(numbers, device=keys.device)
        return self.advance(self.select(self._last[1], parents), keys[:, -1])


def _rows(keys: Tensor) -> np.ndarray:
    return np.ascontiguousarray(keys.cpu().numpy())
