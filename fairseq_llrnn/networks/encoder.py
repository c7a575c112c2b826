"""A recurrent encoder of source sentences with fused kernels, blind to padding on either side.

Sizes: B batch, L source length, D embedding width, E output width (twice the layer's where bidirectional). Sources:
Sutskever et al. 2014 (reversal), Cho et al. 2014 (one summary vector of the sentence), Bahdanau et al. 2015.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairseq_llrnn.networks.cells import find_cell
from fairseq_llrnn.networks.recurrent import dropout, initialise


def flip_valid(x: Tensor, lengths: Tensor) -> Tensor:
    """Reverse the first lengths[i] elements of every row and leave the rest: (B, L, …) -> (B, L, …)."""
    position = torch.arange(x.size(1), device=x.device).unsqueeze(0)  # shape: (1, L)
    last = lengths.unsqueeze(1) - 1  # shape: (B, 1)
    index = torch.where(position <= last, last - position, position)
    return x[torch.arange(x.size(0), device=x.device).unsqueeze(1), index]


def roll_rows(x: Tensor, shifts: Tensor) -> Tensor:
    """Roll row i of (B, L, …) by shifts[i] places to the right: (B, L, …), (B,) -> (B, L, …)."""
    index = (torch.arange(x.size(1), device=x.device) - shifts.unsqueeze(1)) % x.size(1)  # shape: (B, L)
    return x[torch.arange(x.size(0), device=x.device).unsqueeze(1), index]


def word_table(num_words: int, size: int, pad: int) -> nn.Embedding:
    """A row per word, small uniform numbers; zeros for padding."""
    table = nn.Embedding(num_words, size, padding_idx=pad)
    nn.init.uniform_(table.weight, -0.1, 0.1)
    nn.init.zeros_(table.weight[pad])
    return table


class RecurrentEncoder(nn.Module):
    """Embedding -> recurrent layers -> one state per source token and a summary of the sentence.

    Args:
        num_words, pad: of the source dictionary. reverse: the first direction reads the sentence from its end.
        dropout_in, dropout_between, dropout_out: on the input, between layers, on the output. variational: one mask
            per sequence.
        embedding: tokens (B, L) -> (B, L, D), zero at padding; None: a table with a row per word.
    """

    def __init__(
        self,
        num_words: int,
        pad: int,
        embed_size: int,
        hidden_size: int,
        num_layers: int,
        cell: str = "lstm",
        bidirectional: bool = True,
        reverse: bool = False,
        dropout_in: float = 0.0,
        dropout_between: float = 0.0,
        dropout_out: float = 0.0,
        variational: bool = False,
        embedding: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.pad = pad
        self.reverse = reverse
        self.dropouts = [dropout_in] + [dropout_between] * (num_layers - 1)
        self.dropout_out = dropout_out
        self.variational = variational
        self.output_size = hidden_size * (2 if bidirectional else 1)
        self.embedding = word_table(num_words, embed_size, pad) if embedding is None else embedding
        # One module per direction and layer: over padded batches each is a fused kernel, which packed sequences are not
        # on a CPU.
        directions = 2 if bidirectional else 1
        self.layers = nn.ModuleList(
            nn.ModuleList(
                find_cell(cell).build(embed_size if i == 0 else self.output_size, hidden_size)
                for _ in range(directions)
            )
            for i in range(num_layers)
        )
        initialise(self.layers, cell, hidden_size)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Read sentences, padded on either side.

        Args:
            tokens: (B, L).

        Returns:
            states (B, L, E), each at its token's place, zero on padding; the summary (B, E) of each sentence, the last
            state of each direction.
        """
        valid = tokens.ne(self.pad)
        lengths = valid.sum(1)  # shape: (B,)
        before = valid.long().argmax(1)  # shape: (B,), padding on the left
        x = roll_rows(self.embedding(tokens), -before)
        last = (lengths - 1).view(-1, 1, 1)
        summary = x.new_zeros(0)
        for directions, p in zip(self.layers, self.dropouts, strict=True):
            x = dropout(x, p, self.training, self.variational)
            assert isinstance(directions, nn.ModuleList)
            outputs, finals = [], []
            for i, layer in enumerate(directions):
                backward = (i == 1) != self.reverse
                output, _ = layer(flip_valid(x, lengths) if backward else x)
                finals.append(output.gather(1, last.expand(-1, 1, output.size(2))).squeeze(1))
                outputs.append(flip_valid(output, lengths) if backward else output)
            x = torch.cat(outputs, dim=-1)  # shape: (B, L, E)
            summary = torch.cat(finals, dim=-1)  # shape: (B, E)
        x = roll_rows(x, before) * valid.unsqueeze(-1)
        return dropout(x, self.dropout_out, self.training, self.variational), summary
