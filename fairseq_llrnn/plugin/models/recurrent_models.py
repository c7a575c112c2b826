"""Decoders with a recurrent network, and the encoder and base model of recurrent translators.

Sizes: B batch, T time, L source length, E encoder width, H hidden width, G states of a cell, R layers, W words of a
window, X width of the further input at each position.

The decoders are those of language models, and of translators with or without attention. The input of a step depends on
the earlier step only through its state, so that training runs the whole target through fused kernels.
"""

from argparse import Namespace
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder
from fairseq.tasks import FairseqTask
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.networks.recurrent import GlobalAttention, RecurrentEncoder, RecurrentNetwork, dropout, find_cell
from fairseq_llrnn.plugin.models.extensions import check_sizes
from fairseq_llrnn.plugin.models.log_linear_decoder import (
    EncoderOut,
    HiddenStates,
    IncrementalState,
    LogLinearDecoder,
    LogLinearTranslationModel,
    encoder_input_ids,
    short_products,
)
from fairseq_llrnn.plugin.models.options import (
    LEXICAL_WARMUP,
    RecurrentDecoderConfig,
    SourceConfig,
    dropouts,
    source_embedding,
)
from fairseq_llrnn.source_embedding import check_source_prior

WINDOWS = 2048  # number of windows that are read together without gradients


class RecurrentDecoder(LogLinearDecoder):
    """Words by their features or characters -> recurrent network -> log-linear output over signatures.

    It may start from a source, read a part of it at every position, and attend to it afterwards. A subclass chooses
    among these by `start`, `source_input` and `output_states`.

    Args:
        head: it needs embeddings.
        max_positions: the maximum length of a target (None: no limit).
    """

    def __init__(
        self,
        dictionary: Dictionary,
        network: RecurrentNetwork,
        head: LogLinearHead,
        max_positions: int | None,
        bf16_products: bool,
    ) -> None:
        super().__init__(dictionary, head, bf16_products)
        self.network = network
        self.longest = max_positions

    # ---- what a subclass supplies -------------------------------------------------------------------------------

    def start(self, encoder_out: EncoderOut) -> Tensor | None:
        """Return the state before the first word, (B, G, R, H), or None for zeros."""
        return None

    def source_input(self, encoder_out: EncoderOut, positions: range) -> Tensor | None:
        """Return the further input at these positions of the target: (B, positions, X), or None."""
        return None

    def output_states(self, hidden: Tensor, read: Tensor, encoder_out: EncoderOut) -> HiddenStates:
        """Return the head's input, without terms, from the network's states (B, T, H) and its input (B, T, D + X)."""
        return HiddenStates(hidden)

    # ---- the same for all ---------------------------------------------------------------------------------------

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        source = encoder_out or {}  # a language model does not use it
        search = None if incremental_state is None else self.search(incremental_state)
        state, unread = None if search is None else search.network, previous
        if state is None:
            state = self.start(source)
        else:
            unread = previous[:, -1:]
        read = self.head.embed(unread, None if search is None else self.input_rows(incremental_state))
        source_input = self.source_input(source, range(previous.size(1) - unread.size(1), previous.size(1)))
        if source_input is not None:
            read = torch.cat([read, source_input.to(read.dtype)], dim=-1)
        run = self.network.run(read, state)
        if search is None:
            network_terms = [term for terms in self.network.terms for term in terms(run, unread)]
            return replace(self.output_states(run.hidden, read, source), terms=network_terms)
        search.network = run.state
        return self.output_states(run.hidden[:, -1:], read[:, -1:], source)

    def max_positions(self) -> int:
        return super().max_positions() if self.longest is None else self.longest


class WindowDecoder(LogLinearDecoder):
    """A recurrent network that reads the last W words again at each position. Missing words are zero vectors."""

    def __init__(
        self, dictionary: Dictionary, network: RecurrentNetwork, head: LogLinearHead, width: int, bf16_products: bool
    ) -> None:
        """head: it needs embeddings. width: W."""
        super().__init__(dictionary, head, bf16_products)
        self.network = network
        self.width = width

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        padded = functional.pad(previous, (self.width - 1, 0), value=self.dictionary.pad())
        if incremental_state is None:
            table = self.head.embedding_rows()
        else:
            padded, table = padded[:, -self.width :], self.input_rows(incremental_state)
        windows = padded.unfold(1, self.width, 1)  # shape: (B, T, W)
        flat = windows.flatten(0, 1)
        # windows need W times the memory of positions: without gradients, read them in chunks
        chunk_size = max(1, len(flat)) if torch.is_grad_enabled() else WINDOWS
        hidden = torch.cat([self._last_hidden(part, table) for part in flat.split(chunk_size)])
        return HiddenStates(hidden.view(*windows.shape[:2], -1))

    def _last_hidden(self, windows: Tensor, table: Tensor | None) -> Tensor:
        """Map (N, W) tokens to (N, H)."""
        embedded = self.head.embed(windows, table) * windows.ne(self.dictionary.pad()).unsqueeze(-1)
        return self.network(embedded)[0][:, -1]


class AttentionDecoder(RecurrentDecoder):
    """Starts from the encoder's summary of the source (Sutskever et al. 2014), then attends to its states.

    Args:
        head: it needs embeddings.
        attention: None: use only the summary.
        context_every_step: the network reads the summary with every word (Cho et al. 2014).
        max_positions: the maximum length of a target.
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
    ) -> None:
        super().__init__(dictionary, network, head, max_positions, bf16_products)
        self.attention, self.attends = attention, attention is not None
        self.context_every_step = context_every_step
        states = network.num_states
        self.state_shape = (states, len(network.layers), head.hidden_size)  # (G, R, H)
        if head.has_source_strings:
            nn.Linear(encoder_size, head.hidden_size, bias=False)  # unused: keeps random numbers as in earlier versions
        self.bridge = nn.Linear(encoder_size, states * len(network.layers) * head.hidden_size)
        for parameter in self.bridge.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def start(self, encoder_out: EncoderOut) -> Tensor:
        summary = encoder_out["summary"][0]  # shape: (B, E)
        return torch.tanh(self.bridge(summary)).view(-1, *self.state_shape)

    def source_input(self, encoder_out: EncoderOut, positions: range) -> Tensor | None:
        if not self.context_every_step:
            return None
        return encoder_out["summary"][0].unsqueeze(1).expand(-1, len(positions), -1)

    def output_states(self, hidden: Tensor, read: Tensor, encoder_out: EncoderOut) -> HiddenStates:
        if self.attention is None:
            return HiddenStates(hidden)
        source, padding = encoder_out["encoder_out"][0].transpose(0, 1), encoder_out["encoder_padding_mask"][0]
        attended, weights = self.attention(hidden, source, padding)
        return HiddenStates(
            dropout(attended, self.network.dropout_out, self.training, self.network.variational), weights
        )


@dataclass
class RecurrentTranslationConfig(SourceConfig, RecurrentDecoderConfig):
    """Options of all recurrent translation models."""

    lexical_warmup_updates: int = field(default=0, metadata=LEXICAL_WARMUP)


class SourceEncoder(FairseqEncoder):
    """A network that reads sources.

    Args:
        network: maps sources (B, L), padded on either side, to a state of each word (B, L, E), zero at padding, and a
            summary of each sentence. It has an `embedding`, and `pad`.
        max_positions: the maximum length of a source.
    """

    network: Any

    def __init__(self, dictionary: Dictionary, network: nn.Module, max_positions: int, bf16_products: bool) -> None:
        super().__init__(dictionary)
        self.network = network
        self.longest = max_positions
        self.bf16_products = bf16_products

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> EncoderOut:
        """Read sources (B, L), padded on either side.

        Returns:
            encoder_out (L, B, E), encoder_padding_mask (B, L), summary (B, …) and src_tokens (B, L), each the only
            element of a list, as in fairseq's encoders.
        """
        with short_products(self, src_tokens):
            states, summary = self.network(encoder_input_ids(src_tokens, self.dictionary, self.network.embedding))
        return {
            "encoder_out": [states.transpose(0, 1)],
            "encoder_padding_mask": [src_tokens.eq(self.network.pad)],
            "summary": [summary],
            "src_tokens": [src_tokens],
        }

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        batch_dimension = {"encoder_out": 1}
        return {
            name: [value.index_select(batch_dimension.get(name, 0), new_order) for value in values]
            for name, values in encoder_out.items()
        }

    def max_positions(self) -> int:
        return self.longest

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> dict[str, Tensor]:
        """Raise an error for weights that were trained with another source prior."""
        check_source_prior(self.network.embedding, state_dict, f"{name}.")
        return state_dict


def recurrent_reader(
    args: Namespace | RecurrentTranslationConfig, task: FairseqTask, bidirectional: bool = False, reverse: bool = False
) -> RecurrentEncoder:
    """Build the network of a recurrent encoder from --encoder-…. Raises OptionError for sizes below 1."""
    check_sizes(args, "encoder_embed_dim", "encoder_hidden_size", "encoder_layers")
    source = task.source_dictionary
    return RecurrentEncoder(
        len(source),
        source.pad(),
        args.encoder_embed_dim,
        args.encoder_hidden_size,
        args.encoder_layers,
        find_cell(args.cell).constant or args.cell,  # only the decoder varies its computation
        bidirectional=bidirectional,
        reverse=reverse,
        **dropouts(args),
        embedding=source_embedding(args, task, args.encoder_embed_dim),
    )


class RecurrentTranslationModel(LogLinearTranslationModel):
    """p(x | C, prefix) ∝ b(C, x) exp(a(K)ᵀφ(x)) over a recurrent decoder."""

    encoder: SourceEncoder
    decoder: RecurrentDecoder
