"""What a decoder remembers from one step of a search to the next, in the dictionary that fairseq hands around.

Sizes: N hypotheses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor

from fairseq_llrnn.head.head import LogLinearHead

IncrementalState = dict[str, dict[str, Any]]
NETWORK, HEAD = "network", "head"  # states of the hypotheses: a tensor (N, …), and a head's State
LONGEST = "longest"  # the most tokens of a hypothesis, </s> included


class SearchMemory:
    """A decoder's own part of that dictionary, by name. Where there is no search, nothing is remembered."""

    def __init__(self, decoder: FairseqIncrementalDecoder, incremental_state: IncrementalState | None) -> None:
        self.decoder, self.incremental_state = decoder, incremental_state

    def get(self, name: str) -> Any:
        """What was set; None where nothing was."""
        found = self.decoder.get_incremental_state(self.incremental_state, name)
        return None if found is None else found["value"]

    def set(self, name: str, value: Any) -> None:
        self.decoder.set_incremental_state(self.incremental_state, name, {"value": value})

    def keep(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` returns: made at the first step of a search and used at all others, never reordered."""
        value = self.get(name)
        if value is None:
            value = make()
            self.set(name, value)
        return value

    def input_rows(self, head: LogLinearHead) -> Tensor | None:
        """`head.embedding_rows`, made once in a search; None where the head composes what it reads, token by token."""
        if self.incremental_state is None and head.sparse_gradients:
            return None
        rows: Tensor | None = self.keep("input rows", head.embedding_rows)
        return rows

    def reorder(self, new_order: Tensor) -> None:
        """Give the states the order of the hypotheses: number new_order[i] comes to place i."""
        network, head = self.get(NETWORK), self.get(HEAD)
        if network is not None:
            self.set(NETWORK, network.index_select(0, new_order))
        if head is not None:
            self.set(HEAD, head.select(new_order))
