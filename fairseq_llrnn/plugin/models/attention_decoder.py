"""The recurrent translation decoder with attention on the source.

Sizes: B batch, T time, L source length, E encoder width, H hidden width, G states of a cell, R layers.
"""

from __future__ import annotations

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.networks.attention import GlobalAttention
from fairseq_llrnn.networks.computation_target import ComputationTarget
from fairseq_llrnn.networks.recurrent import RecurrentNetwork, dropout
from fairseq_llrnn.plugin.models.hidden_states import HiddenStates
from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut
from fairseq_llrnn.plugin.models.source_decoder import SourceDecoder


class AttentionDecoder(SourceDecoder):
    """Starts from the encoder's summary of the source (Sutskever et al. 2014), then attends to its states.

    Args:
        head: with embeddings.
        attention: None to live on the summary alone.
        context_every_step: the network reads the summary beside every word (Cho et al. 2014).
        max_positions: the longest target that fairseq may give.
        computation: how much a network of variable computation should compute.
        spell_from_context: unknown words are spelled from [context; h], by a way of their own, and not from the
            attentional state that predicts words (Luong & Manning 2016, §4.3: `separate path`).
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
        spell_from_context: bool = False,
    ) -> None:
        super().__init__(dictionary, network, head, max_positions, bf16_products, computation)
        self.attention = attention
        self.context_every_step = context_every_step
        self.spell_from_context = spell_from_context
        states = network.num_states
        self.state_shape = (states, len(network.layers), head.hidden_size)  # (G, R, H)
        if head.brings_strings:
            nn.Linear(encoder_size, head.hidden_size, bias=False)  # only draws: a seed means the same model as before
        self.bridge = nn.Linear(encoder_size, states * len(network.layers) * head.hidden_size)
        for parameter in self.bridge.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def start(self, encoder_out: EncoderOut) -> Tensor:
        summary = encoder_out["summary"][0]  # shape: (B, E)
        return torch.tanh(self.bridge(summary)).view(-1, *self.state_shape)

    def beside(self, encoder_out: EncoderOut, positions: range) -> Tensor | None:
        if not self.context_every_step:
            return None
        return encoder_out["summary"][0].unsqueeze(1).expand(-1, len(positions), -1)

    def read_out(self, hidden: Tensor, read: Tensor, encoder_out: EncoderOut) -> HiddenStates:
        if self.attention is None:
            return HiddenStates(hidden)
        source, padding = encoder_out["encoder_out"][0].transpose(0, 1), encoder_out["encoder_padding_mask"][0]
        joined, weights = self.attention.joined(hidden, source, padding)
        spelling = self._dropped(joined) if self.spell_from_context else None
        return HiddenStates(self._dropped(self.attention.combined(joined)), weights, spelling=spelling)

    def _dropped(self, states: Tensor) -> Tensor:
        return dropout(states, self.network.dropout_out, self.training, self.network.variational)
