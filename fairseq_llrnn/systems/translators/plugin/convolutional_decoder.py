"""The recurrent language model that reads a vector of the source beside every word (Kalchbrenner & Blunsom 2013).

Sizes: B batch, T time, M vectors of a source, Q their width. With Elman's cell, h_i = tanh(I e(f_i) + R h_{i−1} + S v_i
+ c): S is a part of the cell's own matrix, which reads [e(f_i); v_i].
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut, HiddenStates, IncrementalState, Term
from fairseq_llrnn.plugin.models.recurrent_models import SourceDecoder, SourceEncoder
from fairseq_llrnn.systems.translators.convolutional_source import ConvolutionalSource
from fairseq_llrnn.systems.translators.target_length import log_prob

RATE = "length_rate"  # λ of the target's length, (B,)


class ConvolutionalEncoder(SourceEncoder):
    """As every encoder's output, where the summary is (B, M, Q); beside it λ, if there is a model of the length."""

    network: ConvolutionalSource

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> EncoderOut:
        out = super().forward(src_tokens, src_lengths)
        if self.network.length is None:
            return out
        return {**out, RATE: [self.network.length(src_tokens.ne(self.network.pad).sum(1))]}


class ConvolutionalDecoder(SourceDecoder):
    """Reads vector i of the source beside word i, and the last one beside all words behind."""

    def beside(self, encoder_out: EncoderOut, positions: range) -> Tensor:
        vectors = encoder_out["summary"][0]  # shape: (B, M, Q)
        places = torch.tensor(positions, device=vectors.device).clamp_max(vectors.size(1) - 1)
        return vectors.index_select(1, places)

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        """Beside it −log p(length of the target), in nats, at its last word; what trains the model of the length."""
        states = super().hidden(previous, encoder_out, incremental_state)
        if incremental_state is not None or encoder_out is None or RATE not in encoder_out:
            return states
        lengths = previous.ne(self.dictionary.pad()).sum(1)  # shape: (B,)
        last = torch.arange(previous.size(1), device=previous.device) == lengths.unsqueeze(1) - 1
        nats = -log_prob(encoder_out[RATE][0], lengths)
        return replace(states, terms=[*states.terms, Term("length", nats.unsqueeze(1) * last, in_loss=True)])
