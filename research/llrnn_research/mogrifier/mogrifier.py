"""An LSTM layer whose input and state gate each other before every step.

Sizes: B batch, T time, D input width, H hidden width. Source: Melis, Kočiský & Blunsom 2020, "Mogrifier LSTM",
equations 1 and 2, without their factorisation of the matrices:

    x ← 2σ(Q_i h) ⊙ x    i = 1, 3, 5
    h ← 2σ(R_i x) ⊙ h    i = 2, 4

followed by an LSTM step on x and h. With Q = R = 0 it is an LSTM.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

ROUNDS = 5  # as in their language models of words


class MogrifierLSTM(nn.Module):
    """The layer, with the interface of torch's LSTM. `initialise` of networks/recurrent.py initialises the matrices.

    Args:
        input_size: D.
        hidden_size: H.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.step = nn.LSTMCell(input_size, hidden_size)
        self.of_input = nn.ParameterList(torch.empty(input_size, hidden_size) for _ in range((ROUNDS + 1) // 2))  # Q
        self.of_state = nn.ParameterList(torch.empty(hidden_size, input_size) for _ in range(ROUNDS // 2))  # R

    def forward(self, x: Tensor, before: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Run over a sequence.

        Args:
            x: (B, T, D).
            before: h and c, (1, B, H) each (None: zeros).

        Returns:
            states (B, T, H), and h and c after the last step.
        """
        if before is None:
            h = c = x.new_zeros(len(x), self.step.hidden_size)
        else:
            h, c = before[0].squeeze(0), before[1].squeeze(0)
        hidden = []
        for read in x.unbind(1):
            state = h
            for i in range(ROUNDS):
                if i % 2:
                    state = 2 * torch.sigmoid(functional.linear(read, self.of_state[i // 2])) * state
                else:
                    read = 2 * torch.sigmoid(functional.linear(state, self.of_input[i // 2])) * read
            h, c = self.step(read, (state, c))
            hidden.append(h)
        return torch.stack(hidden, 1), (h.unsqueeze(0), c.unsqueeze(0))
