"""States of hypotheses in a search that reorders them.

`generate` passes all tokens that each hypothesis has written to models and logits processors. The state of a background
depends on these and on the hypothesis' sentence alone. So a state is looked up by them among those of the step before,
and goes on by the last token. If it is not found there, the prefix is read from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import torch
from torch import Tensor

TOKEN_BYTES = 8  # of a token in a tensor
States = TypeVar("States")


class PrefixStates(Generic[States]):
    """States of the prefixes of the last step."""

    def __init__(
        self,
        start: Callable[[int], States],
        advance: Callable[[States, Tensor], States],
        select: Callable[[States, Tensor], States],
        unread: int,
    ) -> None:
        """
        Args:
            start: of N hypotheses that have written nothing. Row i is of the i-th one's sentence, in every step.
            advance: by one token each, (N,). select: rows (M,) of states.
            unread: how many tokens at the beginning are not read: a start symbol, or a prompt.
        """
        self.start, self.advance, self.select, self.unread = start, advance, select, unread
        self._last: tuple[list[bytes], States] | None = None
        self.parents: list[int] | None = None  # of the last prefixes, in the step before
        self.log_p: Tensor | None = None  # of the last step, kept for its caller
        self.full_reads = 0  # how many steps read their prefixes from the beginning

    def states_after(
        self, written: Tensor, sentence: Tensor | None = None, begin: Callable[[], None] | None = None
    ) -> States:
        """Return the states after the prefixes (N, T).

        Args:
            begin: called if the prefixes are not those of the step before with a token more.
            sentence: the number of each hypothesis' sentence, (N,): `start` gives equal ones the same state. None: all
                are of one sentence.
        """
        keys = _keys(written, sentence)
        parents = self._parents(keys)
        last = self._last
        if last is not None and parents is not None and written.size(1) > self.unread:
            self._last = None  # parsers change, also before an error
            states = last[1]
            if parents != list(range(len(last[0]))):
                states = self.select(states, torch.tensor(parents, device=written.device))
            states = self.advance(states, written[:, -1])
        else:
            parents = None
            if begin is not None:
                begin()
            self.full_reads += 1
            states = self.start(len(written))
            for tokens in written[:, self.unread :].unbind(1):
                states = self.advance(states, tokens)
        self._last, self.parents = (keys, states), parents
        return states

    def forget(self) -> None:
        """Read the next prefixes from their beginning."""
        self._last = None

    def are_alike(self, written: Tensor, sentence: Tensor | None = None) -> bool:
        """Return whether all prefixes of one prompt, which is not read, are the same."""
        keys, width = _keys(written, sentence), TOKEN_BYTES * (self.unread + (sentence is not None))
        return len({*keys}) == len({key[:width] for key in keys})

    def is_shorter(self, written: Tensor, sentence: Tensor | None = None) -> bool:
        """Return whether each prefix, without its last token, begins a longer prefix of the step before."""
        if self._last is None or written.size(1) <= self.unread:
            return False
        keys = [key[:-TOKEN_BYTES] for key in _keys(written, sentence)]  # a rejected candidate changes the last token
        length = len(keys[0])
        return length < len(self._last[0][0]) and {row[:length] for row in self._last[0]}.issuperset(keys)

    def _parents(self, keys: list[bytes]) -> list[int] | None:
        """The row of each prefix, but for its last token, in the step before. None where one is not there."""
        if self._last is None:
            return None
        last, prefixes = self._last[0], [key[:-TOKEN_BYTES] for key in keys]
        if last == prefixes:
            return list(range(len(last)))
        number_of = {row: number for number, row in enumerate(last)}
        numbers = [number_of.get(row, -1) for row in prefixes]
        return None if -1 in numbers else numbers


def _keys(written: Tensor, sentence: Tensor | None) -> list[bytes]:
    """The tokens of each row, after its sentence."""
    keys = written if sentence is None else torch.cat([sentence.unsqueeze(1), written], dim=1)
    width = TOKEN_BYTES * keys.size(1)
    whole = keys.long().cpu().numpy().tobytes()
    return [whole[width * row : width * (row + 1)] for row in range(len(keys))]
