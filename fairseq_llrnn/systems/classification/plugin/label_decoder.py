"""What classifiers share: an encoder makes one vector of a text, and a log-linear head the probabilities of labels.

Sizes: B texts, L words, P pairs of a text and a label, H width of a text's vector, k labels asked for.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel
from torch import Tensor, nn

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.output.records import CELLS
from fairseq_llrnn.plugin.compat.dictionaries import readable
from fairseq_llrnn.plugin.models.extensions import Args, of_heads
from fairseq_llrnn.plugin.models.log_linear_decoder import (
    EncoderOut,
    HiddenStates,
    IncrementalState,
    LogLinearDecoder,
    LogLinearModel,
)
from fairseq_llrnn.source_embedding import check_source_prior
from fairseq_llrnn.systems.classification.text_vectors import BagOfWords, PooledStates


def label_head(args: Args, task: Any, size: int) -> LogLinearHead:
    """The head of a classifier; its model begins as the background: a = 0."""
    head = LogLinearHead(task.prior, size, source_size=size, **of_heads(args, task))
    nn.init.zeros_(head.output.weight)
    return head


class TextEncoder(FairseqEncoder):
    """A network that makes a vector of a text, in fairseq's clothes."""

    def __init__(self, dictionary: Dictionary, network: BagOfWords | PooledStates, longest: int) -> None:
        """longest: the most words of a text, with </s>."""
        super().__init__(dictionary)
        self.network = network
        self.longest = longest

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> EncoderOut:
        """Texts (B, L) -> their vectors, (B, H), and themselves, each the only element of a list."""
        summary = self.network(readable(src_tokens, self.dictionary, self.network.embedding))
        return {"summary": [summary], "src_tokens": [src_tokens]}

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        return {name: [value.index_select(0, new_order) for value in values] for name, values in encoder_out.items()}

    def max_positions(self) -> int:
        return self.longest

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> dict[str, Tensor]:
        """Refuse weights that were trained beside another source prior."""
        check_source_prior(self.network.embedding, state_dict, f"{name}.")
        return state_dict


class LabelDecoder(LogLinearDecoder):
    """The hidden state before a label is its text's vector."""

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
        """Hidden states (P, 1, H) of pairs, and the head's record of them.

        Args:
            src_tokens: (B, L). prev_output_tokens: </s>, (P, 1). text_of: (P,) the text of each pair.
        """
        encoder_out = self.encoder.reorder_encoder_out(self.encoder(src_tokens, src_lengths), text_of)
        return self.decoder(prev_output_tokens, encoder_out=encoder_out)

    def best_labels(self, src_tokens: Tensor, src_lengths: Tensor | None, k: int) -> tuple[Tensor, Tensor]:
        """The k most probable labels of texts (B, L), exactly: log p and labels, (B, k) each, the best first.

        Of fewer labels than k, what is left has log p −inf.
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
