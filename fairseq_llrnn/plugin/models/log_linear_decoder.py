"""A fairseq decoder that ends in a log-linear head, by fairseq's conventions.

Sizes: B batch, T time, N hypotheses, L source length, V words, J₁ slots of evidence, H hidden width, E encoder width.
No tensor as wide as the classes is created before a caller needs it. So element 0 of the decoder's output has the
hidden states, (B, T, H), or in a search ones, (N, 1, 1), which fairseq divides by its temperature. Element 1 is a
dictionary, because fairseq reads "attn" from it. It has the head's record (head.Batch): "batch", or in a search "step".
A "batch" comes with its "condition", and with "terms": values of the network at each position for the criterion.
"""

from __future__ import annotations

import logging
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.by_source import ReadySlots
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import ID_MASK
from fairseq_llrnn.head.checks import check_allowed
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.output.normalisers import Detail
from fairseq_llrnn.output.records import Batch, State
from fairseq_llrnn.plugin.compat.user_errors import enter_command
from fairseq_llrnn.plugin.data.zero_mass import how_to_fix
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS
from fairseq_llrnn.registry import load_all

logger = logging.getLogger(__name__)

EncoderOut = dict[str, list[Tensor]]  # fairseq's; "src_tokens" has the source, (B, L)
Output = tuple[Tensor, dict[str, Any]]
IncrementalState = dict[str, dict[str, Any]]  # fairseq's


@cache
def bfloat16_on(device: str) -> bool:
    """Return whether --bf16-products works on this device, and warn once if not.

    Without AVX-512, torch has no bfloat16 LSTM, and other products take about ten times as long as in float32.
    """
    if device != "cpu":
        return True
    try:
        with torch.random.fork_rng(devices=[]), torch.autocast("cpu", torch.bfloat16):
            nn.LSTM(1, 1)(torch.zeros(1, 1, 1))
    except RuntimeError:
        logger.warning("--bf16-products: torch has no bfloat16 LSTM for this processor; products are in float32")
        return False
    return True


def encoder_input_ids(tokens: Tensor, dictionary: Dictionary, embedding: nn.Module) -> Tensor:
    """Remove marks from source tokens, and replace strings outside the dictionary by <unk>, unless the embedding reads
    them.
    """
    tokens = tokens & ID_MASK
    if any(getattr(part, "reads_strings", False) for part in embedding.modules()):
        return tokens
    return tokens.masked_fill(tokens >= len(dictionary), dictionary.unk())


@contextmanager
def short_products(network: Any, tokens: Tensor) -> Iterator[bool]:
    """Use bfloat16 products inside the block if a network with `bf16_products` trains, and yield whether they are used.

    Otherwise products are unchanged, for example with --amp. cuDNN's attention on a GPU is disabled, because it plans
    again, for 9 ms, at each layer of a batch of another shape.
    """
    device = tokens.device.type
    short = network.bf16_products and network.training and bfloat16_on(device)
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(before and not short)
    try:
        with torch.autocast(device, torch.bfloat16) if short else nullcontext():
            yield short
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


@dataclass(frozen=True)
class Term:
    """A value of the network at every position, for the criterion (plugin/criterion.py).

    The log shows its mean over the positions under its name, or the root of the mean for `squares`. An explanation
    shows `detail` of the value at the position where a word was read.
    """

    name: str
    values: Tensor  # (B, T); values at padding are ignored
    in_loss: bool = False  # add the values to `loss`, not to `nll_loss`: nats, with gradients
    is_penalty: bool = False  # in `loss` during training only
    squares: bool = False
    detail: Callable[[float], Detail] | None = None


@dataclass(frozen=True)
class HiddenStates:
    """The output of a network: for every position, or for the last one in a search."""

    hidden: Tensor  # (B, T, H) or (B, 1, H)
    attention: Tensor | None = None  # on the source, (B, T, L) or (B, 1, L)
    terms: Sequence[Term] = ()


@dataclass
class Search:
    """The state of a decoder between the steps of a search."""

    longest: int | None = None  # length limit in tokens, </s> included; None: no limit
    state: State | None = None  # of the head, for the hypotheses
    read: Tensor | None = None  # (N, t) input ids of the network so far
    network: Tensor | None = None  # (N, …) state of the network
    input_rows: Tensor | None = None  # head.embedding_rows, computed at the first step


class LogLinearDecoder(FairseqIncrementalDecoder):
    """Hidden states from a subclass (`hidden`), followed by a log-linear head."""

    attends = True  # whether its hidden states come with attention on the source, if there is one

    def __init__(self, dictionary: Dictionary, head: LogLinearHead, bf16_products: bool = False) -> None:
        """bf16_products: train with bfloat16 products. The head uses the dtype of the hidden states."""
        super().__init__(dictionary)
        self.head = head
        self.bf16_products = bf16_products
        self.fix_zero_mass = how_to_fix(head.prior)

    # ---- what a subclass supplies -------------------------------------------------------------------------------

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        """Return hidden states of every position, or of the last one with `incremental_state`.

        Args:
            previous: the tokens before each position, (B, T), all with rows in the network's embedding.
        """
        raise NotImplementedError

    # ---- scores -------------------------------------------------------------------------------------------------

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: IncrementalState | None = None,
        src_lengths: Tensor | None = None,
        text: Tensor | None = None,
        slots: ReadySlots = None,
    ) -> Output:
        """Return hidden states (B, T, H) and their record (`head.Batch`), or the step of the last one in a search.

        Args:
            prev_output_tokens: (B, T). incremental_state: of a search.
            src_lengths: unused, because padding is on the right.
            text, slots: as for LogLinearHead.bind, if a data set has made them.
        """
        if incremental_state is not None:
            return self._search_step(prev_output_tokens, encoder_out, incremental_state)
        source = None if encoder_out is None else encoder_out["src_tokens"][0]
        condition = self.head.bind(prev_output_tokens, source, text, slots)
        with short_products(self, prev_output_tokens) as short:
            states = self.hidden(condition.input_ids, encoder_out, None)
        hidden = states.hidden.to(torch.bfloat16) if short else states.hidden
        source_states = None  # set after the network, which keeps the order in which gradients are summed
        if encoder_out is not None and self.head.sources:
            source_states = encoder_out["encoder_out"][0].transpose(0, 1)
        # inside `forward`, so that torch's DistributedDataParallel sees the use of the head's parameters
        batch = self.head.batch(hidden, condition, source_states)
        attention = None if states.attention is None else [states.attention]
        return hidden, {"attn": attention, "batch": batch, "condition": condition, "terms": states.terms}

    def _search_step(
        self, tokens: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState
    ) -> Output:
        """Return ones (N, 1, 1), and the step of the next token after `tokens` (N, t), which begin with </s>."""
        search = self.search(incremental_state)
        state, unread = search.state, tokens[:, -1:]
        if state is None:
            source = source_states = None
            if encoder_out is not None:
                source = encoder_out["src_tokens"][0]
                source_states = encoder_out["encoder_out"][0].transpose(0, 1) if self.head.sources else None
            state = self.head.start(len(tokens), source=source, source_states=source_states).limited(search.longest)
            unread = tokens[:, 1:]
        state = search.state = self.head.advance(state, unread)
        if search.read is None:
            search.read = self.head.to_input_ids(tokens, state)
        else:
            search.read = torch.cat([search.read, self.head.to_input_ids(unread, state)], dim=1)
        states = self.hidden(search.read, encoder_out, incremental_state)
        step = self.head.step(states.hidden[:, -1], state)
        attention = None if states.attention is None else [states.attention]
        return torch.ones(len(tokens), 1, 1, device=tokens.device), {"attn": attention, "step": step}

    # ---- searches, and all words ------------------------------------------------------------------------------------

    def search(self, incremental_state: IncrementalState) -> Search:
        """Return the state of a search, this decoder's part of fairseq's dictionary. The first step creates it."""
        entry = self.get_incremental_state(incremental_state, "search")
        if entry is None:
            entry = {"search": Search()}
            self.set_incremental_state(incremental_state, "search", entry)
        return entry["search"]

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Move hypothesis new_order[i] to place i."""
        search = self.search(incremental_state)
        if search.read is not None:
            search.read = search.read.index_select(0, new_order)
        if search.network is not None:
            search.network = search.network.index_select(0, new_order)
        if search.state is not None:
            search.state = search.state.select(new_order)

    def input_rows(self, incremental_state: IncrementalState | None) -> Tensor | None:
        """Return `head.embedding_rows`, computed once in a search, or None outside a search, where a batch is read at
        once.
        """
        if incremental_state is None:
            return None
        search = self.search(incremental_state)
        if search.input_rows is None:
            search.input_rows = self.head.embedding_rows()
        return search.input_rows

    def get_normalized_probs(
        self, net_output: Output, log_probs: bool, sample: dict[str, Any] | None = None
    ) -> Tensor | TargetProbs:
        """Return probabilities of all words and slots, for fairseq's criteria and searches: (B, T, V + J₁).

        Only a scorer passes its sample. Then only the probabilities of the targets are computed. The scorer would leave
        impossible ones out of its perplexity. If it numbers strings by their columns (search/columns.py),
        sample["strings"] has the strings.

        Raises:
            OptionError: only some of the positions are passed.
        """
        first, extra = net_output
        if "step" in extra:
            step: Batch = extra["step"]
            tempered = step if bool((first == 1.0).all()) else replace(step, temperature=1.0 / first[:, -1])
            result = tempered.word_log_probs().unsqueeze(1)
            return result if log_probs else result.exp()
        batch: Batch = extra["batch"]
        if first.shape[:2] != extra["condition"].previous.shape:
            raise OptionError("--softmax-batch: not supported; remove it: a batch is always scored in parts")
        if sample is None or sample.get("target") is None:
            result = self.head.word_log_probs(batch)
            return result if log_probs else result.exp()
        targets = sample.get("strings", sample["target"])
        log_prob = self.head.target_log_probs(batch, targets)
        check_allowed(self.head, log_prob, targets, sample["id"], self.fix_zero_mass)
        # for several models the scorer averages probabilities, and omits zeros from a perplexity: float64 has fewer
        return TargetProbs(log_prob if log_probs else log_prob.double().exp(), sample["target"])

    # ---- further methods that fairseq calls -------------------------------------------------------------------------

    def max_positions(self) -> int:
        return 100_000  # a recurrent network has no limit

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> dict[str, Tensor]:
        """Raise an error for weights that were trained with another prior, before fairseq wraps such an error in its
        own.
        """
        source_options = {source.option for source in self.head.sources}  # these sources check their own weights
        for code in load_all("user_code"):
            if (option := f"--{code.OPTION}") not in source_options:
                code.check(option, "the checkpoint", state_dict, 0)
        missing = {"temperature": "--learn-background-temperature: expected this option"}
        for extension in EXTENSIONS:
            missing |= extension.modules
        self.head.check_weights(state_dict, f"{name}.head.", missing)
        return state_dict


class TargetProbs:
    """Probabilities of the targets, in place of those of all words, for fairseq's scorer.

    It acts like a tensor (B, T, words) for fairseq.sequence_scorer.SequenceScorer.
    """

    def __init__(self, values: Tensor, targets: Tensor) -> None:
        """Both tensors are (B, T)."""
        self.values, self.targets = values, targets

    @property
    def data(self) -> TargetProbs:
        """This object, which has no gradient, like the `data` of a tensor."""
        return self

    def size(self, dim: int) -> int:
        """Return a size of (B, T, 1)."""
        return self.values.unsqueeze(2).size(dim)

    def view(self, *shape: Any) -> TargetProbs:
        """Return this object. The scorer does not change the shape."""
        return self

    def new(self, size: int) -> Tensor:
        """Return an empty tensor of the same kind: (size,)."""
        return self.values.new_empty(size)

    def gather(self, dim: int, index: Tensor) -> Tensor:
        """Return the probabilities of the targets: index (B, T, 1) -> (B, T, 1)."""
        if dim != 2 or not index.squeeze(2).equal(self.targets):
            raise ValueError("expected the targets of the sample; pass no sample to get all words")
        return self.values.unsqueeze(2)


class LogLinearModel(BaseFairseqModel):
    """A model that ends in a log-linear layer over the prior of its task."""

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add the model's options. fairseq calls it if a command line names the model."""
        enter_command()
        super().add_args(parser)


class LogLinearTranslationModel(LogLinearModel, FairseqEncoderDecoderModel):
    """An encoder and a log-linear decoder."""

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None, prev_output_tokens: Tensor, text: Tensor | None = None,
        slots: ReadySlots = None,
    ) -> Output:  # fmt: skip
        """Return hidden states (B, T, H) of a batch, and their record, from the arguments of encoder and decoder."""
        encoder_out = self.encoder(src_tokens, src_lengths=src_lengths)
        output: Output = self.decoder(prev_output_tokens, encoder_out, text=text, slots=slots)
        return output
