"""The parts that classifiers share: an encoder from a text to a vector, and a log-linear head over labels.

Sizes: B texts, L words, P pairs of a text and a label, D width of a word's vector, H width of a text's vector, k
requested labels.

The vector of a text is the mean of its words' vectors (`BagOfWords`: Joulin et al. 2017, fastText), or maximum, mean or
end of the states of a recurrent network (`PooledStates`: Conneau et al. 2017, maximum and mean in both directions).
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.networks.recurrent import RecurrentEncoder
from fairseq_llrnn.output.records import CELLS
from fairseq_llrnn.plugin.models.extensions import Args, all_head_arguments
from fairseq_llrnn.plugin.models.log_linear_decoder import (
    EncoderOut,
    HiddenStates,
    IncrementalState,
    LogLinearDecoder,
    LogLinearModel,
    encoder_input_ids,
)
from fairseq_llrnn.source_embedding import check_source_prior

POOLINGS = ("max", "mean", "last")


class BagOfWords(nn.Module):
    """The mean of the vectors of a text's words and </s>, so that an empty text has a vector, too.

    Args:
        num_words, pad: of the dictionary.
        size: D, and H.
        embedding: tokens (B, L) -> (B, L, D), zero at padding (None: a table with a row per word).
        sparse_gradients: use sparse gradients of the table, with only the rows of the batch's words; supported by
            torch's Adagrad and SGD.
    """

    def __init__(
        self,
        num_words: int,
        pad: int,
        size: int,
        dropout: float = 0.0,
        embedding: nn.Module | None = None,
        sparse_gradients: bool = False,
    ) -> None:
        super().__init__()
        self.sparse_gradients = sparse_gradients
        self.pad, self.output_size, self.dropout = pad, size, dropout
        self.embedding = nn.Embedding(num_words, size, padding_idx=pad) if embedding is None else embedding
        if isinstance(self.embedding, nn.Embedding):
            nn.init.uniform_(self.embedding.weight, -1.0 / size, 1.0 / size)  # as in fastText
            nn.init.zeros_(self.embedding.weight[pad])

    def forward(self, tokens: Tensor) -> Tensor:
        """Return vectors of texts: (B, L) -> (B, H)."""
        if isinstance(self.embedding, nn.Embedding):  # avoids a tensor of (B, L, D)
            mean = functional.embedding_bag(
                tokens, self.embedding.weight, mode="mean", padding_idx=self.pad, sparse=self.sparse_gradients
            )
        else:
            mean = self.embedding(tokens).sum(1) / tokens.ne(self.pad).sum(1, keepdim=True)
        return functional.dropout(mean, self.dropout, self.training)


class PooledStates(nn.Module):
    """The states of a recurrent encoder at all words of a text, pooled: their maximum, their mean, or the last ones."""

    def __init__(self, encoder: RecurrentEncoder, pooling: str = "max") -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise ValueError(f"pooling: expected one of {POOLINGS}, found {pooling!r}")
        self.encoder, self.pooling, self.output_size = encoder, pooling, encoder.output_size

    @property
    def embedding(self) -> nn.Module:
        """Return the embedding of words."""
        return self.encoder.embedding

    def forward(self, tokens: Tensor) -> Tensor:
        """Return vectors of texts: (B, L) -> (B, H)."""
        states, last = self.encoder(tokens)
        if self.pooling == "last":
            return last
        valid = tokens.ne(self.encoder.pad).unsqueeze(-1)
        if self.pooling == "mean":
            return (states * valid).sum(1) / valid.sum(1)
        return states.masked_fill(~valid, -torch.inf).amax(1)


def label_head(args: Args, task: Any, size: int) -> LogLinearHead:
    """Return the head of a classifier, whose initial model is the background: a = 0."""
    return LogLinearHead(task.prior, size, source_size=size, initial_scale=0.0, **all_head_arguments(args, task))


class TextEncoder(FairseqEncoder):
    """A network from a text to a vector, as an encoder of fairseq."""

    def __init__(self, dictionary: Dictionary, network: BagOfWords | PooledStates, longest: int) -> None:
        """longest: the most words of a text, including </s>."""
        super().__init__(dictionary)
        self.network = network
        self.longest = longest

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> EncoderOut:
        """Return the vectors of texts (B, L), (B, H), and the texts, each as the only element of a list."""
        summary = self.network(encoder_input_ids(src_tokens, self.dictionary, self.network.embedding))
        return {"summary": [summary], "src_tokens": [src_tokens]}

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        return {name: [value.index_select(0, new_order) for value in values] for name, values in encoder_out.items()}

    def max_positions(self) -> int:
        return self.longest

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> dict[str, Tensor]:
        """Check that the weights were trained with the same source prior."""
        check_source_prior(self.network.embedding, state_dict, f"{name}.")
        return state_dict


class LabelDecoder(LogLinearDecoder):
    """A decoder whose hidden state is the vector of the text."""

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        assert encoder_out is not None
        return HiddenStates(encoder_out["summary"][0].unsqueeze(1))


class LabelModel(LogLinearModel, FairseqEncoderDecoderModel):
    """p(label | text) ∝ b(text, label) exp(a(text)ᵀφ(label))."""

    encoder: TextEncoder
    decoder: LabelDecoder

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, text_of: Tensor
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return the hidden states of pairs, (P, 1, H), and the head's record of them.

        Args:
            src_tokens: (B, L).
            prev_output_tokens: </s>, (P, 1).
            text_of: (P,) the text of each pair.
        """
        encoder_out = self.encoder.reorder_encoder_out(self.encoder(src_tokens, src_lengths), text_of)
        return self.decoder(prev_output_tokens, encoder_out=encoder_out)

    def best_labels(self, src_tokens: Tensor, src_lengths: Tensor | None, k: int) -> tuple[Tensor, Tensor]:
        """Return the k most probable labels of texts (B, L), exactly: log p and labels, (B, k) each, best first.

        With fewer than k labels, the rest has log p −inf.
        """
        hidden: Tensor = self.encoder(src_tokens, src_lengths)["summary"][0]
        head = self.decoder.head
        state = head.start(len(hidden), source=src_tokens)
        at_once = max(1, CELLS // max(head.background.num_classes, k * k))
        best = [
            head.top_k(hidden[rows], state.select(rows), k)
            for rows in torch.arange(len(hidden), device=hidden.device).split(at_once)
        ]
        return torch.cat([values for values, _ in best]), torch.cat([labels for _, labels in best])

    def max_positions(self) -> int:
        return self.encoder.max_positions()
