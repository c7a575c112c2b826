"""The language model's decoder: a recurrent network over the words so far, or over a window of them.

Sizes: B batch, T time, H hidden width, W words of the window.
"""

from __future__ import annotations

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_llrnn.networks.recurrent import RecurrentNetwork
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.output.log_linear import LogLinearOutput
from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut, LogLinearDecoder
from fairseq_llrnn.plugin.models.search_memory import NETWORK, IncrementalState, SearchMemory
from fairseq_llrnn.prior.prior import Prior


class RecurrentDecoder(LogLinearDecoder):
    """ψ-embedding -> recurrent network -> log-linear output over signatures."""

    def __init__(
        self,
        dictionary: Dictionary,
        prior: Prior,
        network: RecurrentNetwork,
        embedding: FeatureEmbedding,
        output: LogLinearOutput,
        context_window: int,
        bf16_products: bool,
    ) -> None:
        super().__init__(dictionary, prior, output, bf16_products)
        self.network = network
        self.embedding = embedding
        self.context_window = context_window

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> tuple[Tensor, Tensor | None]:
        memory = SearchMemory(self, incremental_state)
        table = memory.keep("input rows", self.embedding.table)
        if incremental_state is None:
            return self._hidden_of_sequence(previous, table), None
        if self.context_window:
            return self._hidden_of_windows(previous[:, -self.context_window :].unsqueeze(1), table), None
        before = memory.get(NETWORK)
        unread = previous if before is None else previous[:, -1:]
        hidden, after = self.network(self.embedding(unread, table), before)
        memory.set(NETWORK, after)
        return hidden[:, -1:], None

    def _hidden_of_sequence(self, tokens: Tensor, table: Tensor) -> Tensor:
        if not self.context_window:
            hidden: Tensor = self.network(self.embedding(tokens, table))[0]
            return hidden
        width = self.context_window
        padded = torch.nn.functional.pad(tokens, (width - 1, 0), value=self.dictionary.pad())
        return self._hidden_of_windows(padded.unfold(1, width, 1), table)

    def _hidden_of_windows(self, windows: Tensor, table: Tensor) -> Tensor:
        """Every position sees its last W words: (B, T, ≤ W) tokens -> (B, T, H). Missing words are zero vectors."""
        batch, time, width = windows.shape
        flat = windows.reshape(batch * time, width)
        flat = torch.nn.functional.pad(flat, (self.context_window - width, 0), value=self.dictionary.pad())
        embedded = self.embedding(flat, table) * flat.ne(self.dictionary.pad()).unsqueeze(-1)
        hidden, _ = self.network(embedded)
        return hidden[:, -1].view(batch, time, -1)
