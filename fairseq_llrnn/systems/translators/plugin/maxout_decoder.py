"""The decoder of Cho et al. 2014: the summary c of the source at every step, in the state and in the output.

Sizes: B batch, T time, E encoder width, H width of the state, D embedding width, M maxout units, K width of what the
head sees.

    c   = tanh(V h_L)                                  h_L: the encoder's last state
    s₀  = tanh(V' c),   s_t = GRU(s_{t-1}, [e(y_{t-1}); c])
    m_t = maxout(O_s s_t + O_y e(y_{t-1}) + O_c c)
    p(y_t) ∝ b exp(φ(y_t)ᵀ W G m_t)                    G: K×M, W: one row of K weights per feature

W G is the output matrix as a product of two thin ones; so is that of the input, whose embeddings have D dimensions.
"""

from __future__ import annotations

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.networks.recurrent import RecurrentNetwork, dropout
from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut, HiddenStates
from fairseq_llrnn.plugin.models.recurrent_models import SourceDecoder
from fairseq_llrnn.systems.translators.maxout import Maxout


class MaxoutDecoder(SourceDecoder):
    """The summary of the source at every step, and a layer of maxout units before the head.

    Args:
        network: it reads D + E dimensions.
        head: with embeddings; its hidden width is K.
        encoder_size: E. state_size: H. units: M.
        max_positions: the longest target that fairseq may give.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        network: RecurrentNetwork,
        head: LogLinearHead,
        encoder_size: int,
        state_size: int,
        units: int,
        max_positions: int,
        bf16_products: bool,
    ) -> None:
        super().__init__(dictionary, network, head, max_positions, bf16_products)
        self.state_shape = (network.num_states, len(network.layers), state_size)  # (G, R, H)
        self.context = nn.Linear(encoder_size, encoder_size)  # V
        self.bridge = nn.Linear(encoder_size, network.num_states * len(network.layers) * state_size)  # V'
        self.maxout = Maxout(state_size + head.embed_size + encoder_size, units)
        self.thin = nn.Linear(units, head.hidden_size, bias=False)  # G
        for layer in (self.context, self.bridge, self.thin):
            for parameter in layer.parameters():
                nn.init.uniform_(parameter, -0.1, 0.1)

    def summary(self, encoder_out: EncoderOut) -> Tensor:
        """c, (B, E)."""
        return torch.tanh(self.context(encoder_out["summary"][0]))

    def start(self, encoder_out: EncoderOut) -> Tensor:
        return torch.tanh(self.bridge(self.summary(encoder_out))).view(-1, *self.state_shape)

    def beside(self, encoder_out: EncoderOut, positions: range) -> Tensor:
        return self.summary(encoder_out).unsqueeze(1).expand(-1, len(positions), -1)

    def read_out(self, hidden: Tensor, read: Tensor, encoder_out: EncoderOut) -> HiddenStates:
        units = self.maxout(torch.cat([hidden, read.to(hidden.dtype)], dim=-1))  # shape: (B, T, M)
        units = dropout(units, self.network.dropout_out, self.training, self.network.variational)
        return HiddenStates(self.thin(units))
