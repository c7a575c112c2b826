"""The recurrent translation decoder: ψ-embeddings, a recurrent network, attention on the source.

Sizes: B batch, T time, L source length, E encoder width, H hidden width, G states of a cell, R layers.
Nothing that a step reads depends on what the step before it computed besides its state, so training runs the whole
target through fused kernels.
"""

from __future__ import annotations

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.networks.attention import GlobalAttention
from fairseq_llrnn.networks.computation_target import ComputationTarget
from fairseq_llrnn.networks.recurrent import RecurrentNetwork, dropout
from fairseq_llrnn.plugin.models.hidden_states import HiddenStates, computation_terms
from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut, LogLinearDecoder
from fairseq_llrnn.plugin.models.search_memory import NETWORK, IncrementalState, SearchMemory


class AttentionDecoder(LogLinearDecoder):
    """Starts from the encoder's summary of the source (Sutskever et al. 2014), then attends to its states.

    Args:
        head: with embeddings.
        attention: None to live on the summary alone.
        context_every_step: the network reads the summary beside every word (Cho et al. 2014).
        max_positions: the longest target that fairseq may give.
        computation: how much a network of variable computation should compute.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        network: RecurrentNetwork,
        head: LogLinearHead,
        encoder_size: int,
        attention: GlobalAttention | None,
        context_every_step: bool,
        max_positions: int,
        bf16_products: bool,
        computation: ComputationTarget | None = None,
    ) -> None:
        super().__init__(dictionary, head, bf16_products)
        self.computation = computation
        self.network = network
        self.attention = attention
        self.context_every_step = context_every_step
        self.longest = max_positions
        states = network.num_states
        self.state_shape = (states, len(network.layers), head.hidden_size)  # (G, R, H)
        if head.slot_rows is not None:
            nn.Linear(encoder_size, head.hidden_size, bias=False)  # only draws: a seed means the same model as before
        self.bridge = nn.Linear(encoder_size, states * len(network.layers) * head.hidden_size)
        for parameter in self.bridge.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        assert encoder_out is not None
        memory = SearchMemory(self, incremental_state)
        before = memory.get(NETWORK)
        unread = previous if before is None else previous[:, -1:]
        summary = encoder_out["summary"][0]  # shape: (B, E)
        state = self._start(summary) if before is None else before
        read = self.head.embed(unread, memory.keep("input rows", self.head.embedding_rows))
        if self.context_every_step:
            read = torch.cat([read, summary.unsqueeze(1).expand(-1, read.size(1), -1).to(read.dtype)], dim=-1)
        run = self.network.run(read, state)
        terms = computation_terms(run, len(self.network.layers), self.computation, unread)
        hidden, weights = run.hidden, None
        if incremental_state is not None:
            memory.set(NETWORK, run.state)
            hidden = hidden[:, -1:]
        if self.attention is not None:
            source, padding = encoder_out["encoder_out"][0].transpose(0, 1), encoder_out["encoder_padding_mask"][0]
            hidden, weights = self.attention(hidden, source, padding)
            hidden = dropout(hidden, self.network.dropout_out, self.training, self.network.variational)
        return HiddenStates(hidden, weights, terms)

    def _start(self, summary: Tensor) -> Tensor:
        """The state before the first word: (B, E) -> (B, G, R, H)."""
        return torch.tanh(self.bridge(summary)).view(-1, *self.state_shape)

    def max_positions(self) -> int:
        return self.longest
