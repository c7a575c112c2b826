"""What recurrent translation decoders share: ψ-embeddings and a recurrent network, over a source.

Sizes: B batch, T time, L source length, H hidden width, G states of a cell, R layers, X width of what is read beside
each word.
Nothing that a step reads depends on what the step before it computed besides its state, so training runs the whole
target through fused kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.networks.computation_target import ComputationTarget
from fairseq_llrnn.networks.recurrent import RecurrentNetwork
from fairseq_llrnn.plugin.models.hidden_states import HiddenStates, Term, computation_terms
from fairseq_llrnn.plugin.models.log_linear_decoder import (
    NETWORK,
    EncoderOut,
    IncrementalState,
    LogLinearDecoder,
    SearchMemory,
)


class SourceDecoder(LogLinearDecoder):
    """A recurrent network that starts from a source, reads of it beside every word, and looks at it afterwards.

    A subclass says what of these three it does: `start`, `beside`, `read_out`.

    Args:
        head: with embeddings.
        max_positions: the longest target that fairseq may give.
        computation: how much a network of variable computation should compute.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        network: RecurrentNetwork,
        head: LogLinearHead,
        max_positions: int,
        bf16_products: bool,
        computation: ComputationTarget | None = None,
    ) -> None:
        super().__init__(dictionary, head, bf16_products)
        self.computation = computation
        self.network = network
        self.longest = max_positions

    # ---- what a subclass supplies -------------------------------------------------------------------------------

    def start(self, encoder_out: EncoderOut) -> Tensor | None:
        """The state before the first word, (B, G, R, H); None: zeros."""
        return None

    def beside(self, encoder_out: EncoderOut, positions: range) -> Tensor | None:
        """What is read beside the words before these positions of the target: (B, positions, X); None: nothing."""
        return None

    def read_out(self, hidden: Tensor, read: Tensor, encoder_out: EncoderOut) -> HiddenStates:
        """What the head sees, without terms: from the network's states (B, T, H) and what it read (B, T, D + X)."""
        return HiddenStates(hidden)

    def terms(self, previous: Tensor, encoder_out: EncoderOut) -> Sequence[Term]:
        """What else the criterion should know of each position (B, T)."""
        return ()

    # ---- the same for all ---------------------------------------------------------------------------------------

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        assert encoder_out is not None
        memory = SearchMemory(self, incremental_state)
        before = memory.get(NETWORK)
        unread = previous if before is None else previous[:, -1:]
        state = self.start(encoder_out) if before is None else before
        read = self.head.embed(unread, memory.input_rows(self.head))
        beside = self.beside(encoder_out, range(previous.size(1) - unread.size(1), previous.size(1)))
        if beside is not None:
            read = torch.cat([read, beside.to(read.dtype)], dim=-1)
        run = self.network.run(read, state)
        terms = computation_terms(run, len(self.network.layers), self.computation, unread)
        hidden = run.hidden
        if incremental_state is None:
            terms = [*terms, *self.terms(previous, encoder_out)]
        else:
            memory.set(NETWORK, run.state)
            hidden, read = hidden[:, -1:], read[:, -1:]
        return replace(self.read_out(hidden, read, encoder_out), terms=terms)

    def max_positions(self) -> int:
        return self.longest
