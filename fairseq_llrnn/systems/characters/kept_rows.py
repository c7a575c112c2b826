"""Vectors of words that are computed when a word is first met, and used again until weights change.

Sizes: K words, R rows kept, D width. In a search or an evaluation the words of one sentence come back in the next; of
a large dictionary most never come, and strings outside it have vectors as well. So the table grows with what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

State = tuple[tuple[int, int], ...]


def state_of(weights: Iterable[Tensor]) -> State:
    """What changes whenever one of the weights does: in place, or by another tensor in its place."""
    return tuple((weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in weights)


class KeptRows:
    """Rows by id, for weights in one state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._place: Tensor | None = None  # by id: its row, −1 where there is none yet
        self._rows: Tensor | None = None  # (≥ R, D)
        self._many = 0  # R

    def of(self, ids: Tensor, make: Callable[[Tensor], Tensor]) -> Tensor:
        """The rows of different ids, those that are missing by `make`: (K,) -> (K, D)."""
        # not as tensors of inference mode, which only that mode could extend
        with torch.inference_mode(False), torch.no_grad():
            place = self._places(int(ids.max()) + 1 if len(ids) else 0, ids.device)
            missing = ids[place[ids] < 0].clone()
            if len(missing) or self._rows is None:
                self._add(missing, make(missing))
            assert self._rows is not None
            return self._rows[place[ids]]

    def _places(self, size: int, device: torch.device) -> Tensor:
        before = self._place
        if before is None or len(before) < size:
            grown = torch.full((max(size, 2 * (0 if before is None else len(before))),), -1, device=device)
            if before is not None:
                grown[: len(before)] = before
            self._place = grown
        assert self._place is not None
        return self._place

    def _add(self, ids: Tensor, rows: Tensor) -> None:
        assert self._place is not None
        room = 0 if self._rows is None else len(self._rows)
        needed = self._many + len(ids)
        if self._rows is None or needed > room:
            grown = rows.new_empty(max(needed, 2 * room), rows.size(1))
            if self._rows is not None:
                grown[: self._many] = self._rows[: self._many]
            self._rows = grown
        assert self._rows is not None
        self._rows[self._many : needed] = rows
        self._place[ids] = torch.arange(self._many, needed, device=ids.device)
        self._many = needed
