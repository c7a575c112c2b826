"""The language model's decoder: a recurrent network over the words so far, or over a window of them.

Sizes: B batch, T time, H hidden width, W words of the window.
"""

from __future__ import annotations

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.networks.computation_target import ComputationTarget
from fairseq_llrnn.networks.recurrent import RecurrentNetwork
from fairseq_llrnn.plugin.models.hidden_states import HiddenStates, computation_terms
from fairseq_llrnn.plugin.models.log_linear_decoder import (
    NETWORK,
    EncoderOut,
    IncrementalState,
    LogLinearDecoder,
    SearchMemory,
)

WINDOWS = 2048  # that are read together where no gradient is kept


class RecurrentDecoder(LogLinearDecoder):
    """Words by their features or characters -> recurrent network -> log-linear output over signatures."""

    def __init__(
        self,
        dictionary: Dictionary,
        network: RecurrentNetwork,
        head: LogLinearHead,
        context_window: int,
        bf16_products: bool,
        computation: ComputationTarget | None = None,
    ) -> None:
        """Keep the parts.

        Args:
            head: with embeddings. context_window: W, or 0 for the whole prefix.
            computation: how much a network of variable computation should compute.
        """
        super().__init__(dictionary, head, bf16_products)
        self.computation = computation
        self.network = network
        self.context_window = context_window

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        memory = SearchMemory(self, incremental_state)
        table = memory.input_rows(self.head)
        if incremental_state is None:
            return self._hidden_of_sequence(previous, table)
        if self.context_window:
            return HiddenStates(self._hidden_of_windows(previous[:, -self.context_window :].unsqueeze(1), table))
        before = memory.get(NETWORK)
        unread = previous if before is None else previous[:, -1:]
        hidden, after = self.network(self.head.embed(unread, table), before)
        memory.set(NETWORK, after)
        return HiddenStates(hidden[:, -1:])

    def _hidden_of_sequence(self, tokens: Tensor, table: Tensor | None) -> HiddenStates:
        if not self.context_window:
            run = self.network.run(self.head.embed(tokens, table))
            terms = computation_terms(run, len(self.network.layers), self.computation, tokens)
            return HiddenStates(run.hidden, terms=terms)
        width = self.context_window
        padded = torch.nn.functional.pad(tokens, (width - 1, 0), value=self.dictionary.pad())
        return HiddenStates(self._hidden_of_windows(padded.unfold(1, width, 1), table))

    def _hidden_of_windows(self, windows: Tensor, table: Tensor | None) -> Tensor:
        """Every position sees its last W words: (B, T, ≤ W) tokens -> (B, T, H). Missing words are zero vectors."""
        batch, time, width = windows.shape
        flat = windows.reshape(batch * time, width)
        flat = torch.nn.functional.pad(flat, (self.context_window - width, 0), value=self.dictionary.pad())
        # a window holds W times what its position does: without a gradient to keep, some are read at a time
        at_once = max(1, len(flat)) if torch.is_grad_enabled() else WINDOWS
        return torch.cat([self._last_hidden(part, table) for part in flat.split(at_once)]).view(batch, time, -1)

    def _last_hidden(self, windows: Tensor, table: Tensor | None) -> Tensor:
        """(N, W) tokens -> (N, H)."""
        embedded = self.head.embed(windows, table) * windows.ne(self.dictionary.pad()).unsqueeze(-1)
        hidden: Tensor = self.network(embedded)[0]
        return hidden[:, -1]
