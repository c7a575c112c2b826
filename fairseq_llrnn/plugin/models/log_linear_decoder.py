"""A fairseq decoder that ends in a log-linear head: fairseq's conventions, and nothing else.

Sizes: B batch, T time, N hypotheses, L source length, V words, J₁ slots of evidence, H hidden width, E encoder width.
Nothing as wide as the classes is made before it is known what is asked. So element 0 of the decoder's output holds the
hidden states, (B, T, H), and in a search ones, (N, 1, 1), which fairseq divides by its temperature. The second element
is a dictionary, because fairseq reads "attn" there, and holds the head's record (head.Batch): "batch", or in
a search "step". Beside a batch there is its "condition", and "terms": what the network says of each position for the
criterion.
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

EncoderOut = dict[str, list[Tensor]]  # as fairseq's; "src_tokens" holds the source, (B, L)
Output = tuple[Tensor, dict[str, Any]]
IncrementalState = dict[str, dict[str, Any]]  # fairseq hands it around


@cache
def bfloat16_on(device: str) -> bool:
    """Whether --bf16-products can be had there; a warning, once, if not.

    Without AVX-512, torch has no LSTM of bfloat16, and other products take about ten times as long as in float32.
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
    """Source tokens without marks, and <unk> for strings outside the dictionary, unless the embedding reads strings."""
    tokens = tokens & ID_MASK
    if any(getattr(part, "reads_strings", False) for part in embedding.modules()):
        return tokens
    return tokens.masked_fill(tokens >= len(dictionary), dictionary.unk())


@contextmanager
def short_products(network: Any, tokens: Tensor) -> Iterator[bool]:
    """Products in bfloat16 while a network trains that has `bf16_products`, where they can be had; whether they are.

    Else they are what they are outside, as of --amp. Not with cuDNN's attention on a GPU, which plans anew, for 9 ms,
    at each layer of a batch of another shape.
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
    """Something that a network says of every position, for the criterion (plugin/criterion.py).

    The log shows its mean over the positions under its name, or, of `squares`, the root of the mean. An explanation
    shows `detail` of the value at the position where a word was read.
    """

    name: str
    values: Tensor  # (B, T); those of padding do not count
    in_loss: bool = False  # add the values to `loss`, not to `nll_loss`: nats, with gradients
    squares: bool = False
    detail: Callable[[float], Detail] | None = None


@dataclass(frozen=True)
class HiddenStates:
    """What a network hands over: of every position, or of the last one in a search."""

    hidden: Tensor  # (B, T, H) or (B, 1, H)
    attention: Tensor | None = None  # on the source, (B, T, L) or (B, 1, L)
    terms: Sequence[Term] = ()
    spelling: Tensor | None = None  # what unknown words are spelled from, (B, T, X); None: from `hidden`


@dataclass
class Search:
    """What a decoder remembers from one step of a search to the next."""

    longest: int | None = None  # the most tokens of a hypothesis, </s> included; None: any number
    state: State | None = None  # the head's, of the hypotheses
    read: Tensor | None = None  # the tokens so far, (N, t), as the network reads them
    network: Tensor | None = None  # the network's, (N, …)
    input_rows: Tensor | None = None  # head.embedding_rows, made at the first step


class LogLinearDecoder(FairseqIncrementalDecoder):
    """Hidden states, which a subclass supplies (`hidden`), -> log-linear head."""

    attends = True  # whether its hidden states come with attention on a source, if its model has one

    def __init__(self, dictionary: Dictionary, head: LogLinearHead, bf16_products: bool = False) -> None:
        """bf16_products: train with bfloat16 products; the head takes over the dtype of the hidden states."""
        super().__init__(dictionary)
        self.head = head
        self.bf16_products = bf16_products
        self.fix_zero_mass = how_to_fix(head.prior)

    # ---- what a subclass supplies -------------------------------------------------------------------------------

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        """Hidden states of every position, or of the last one where `incremental_state` is given.

        Args:
            previous: the tokens before each position, (B, T), that the network has rows for.
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
    ) -> Output:
        """Hidden states (B, T, H) and their record (`head.Batch`), or the step of the last one in a search.

        Args:
            prev_output_tokens: (B, T). incremental_state: of a search. src_lengths: of fairseq; unused, since padding
                is on the right. text: as of LogLinearHead.bind, if training has changed the tokens.
        """
        if incremental_state is not None:
            return self._search_step(prev_output_tokens, encoder_out, incremental_state)
        source = None if encoder_out is None else encoder_out["src_tokens"][0]
        condition = self.head.bind(prev_output_tokens, source, text)
        with short_products(self, prev_output_tokens) as short:
            states = self.hidden(condition.input_ids, encoder_out, None)
        hidden = states.hidden.to(torch.bfloat16) if short else states.hidden
        source_states = None  # after the network: gradients are summed in this order
        if encoder_out is not None and self.head.sources:
            source_states = encoder_out["encoder_out"][0].transpose(0, 1)
        # here, inside `forward`, so that torch's DistributedDataParallel sees the head's parameters used
        batch = self.head.batch(hidden, condition, source_states, states.spelling)
        attention = None if states.attention is None else [states.attention]
        return hidden, {"attn": attention, "batch": batch, "condition": condition, "terms": states.terms}

    def _search_step(
        self, tokens: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState
    ) -> Output:
        """Ones (N, 1, 1), and the step of the next token after `tokens` (N, t), which begin with </s>."""
        search = self.search(incremental_state)
        state, unread = search.state, tokens[:, -1:]
        if state is None:
            source = source_states = None
            if encoder_out is not None:
                source = encoder_out["src_tokens"][0]
                source_states = encoder_out["encoder_out"][0].transpose(0, 1) if self.head.sources else None
            pinned = range(self.dictionary.nspecial)
            state = self.head.start(len(tokens), source=source, source_states=source_states, pinned=pinned)
            state = state.limited(search.longest)
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
        """The state of a search, from its first step on: this decoder's part of fairseq's dictionary."""
        entry = self.get_incremental_state(incremental_state, "search")
        if entry is None:
            entry = {"search": Search()}
            self.set_incremental_state(incremental_state, "search", entry)
        return entry["search"]

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Number new_order[i] of the hypotheses comes to place i."""
        search = self.search(incremental_state)
        if search.read is not None:
            search.read = search.read.index_select(0, new_order)
        if search.network is not None:
            search.network = search.network.index_select(0, new_order)
        if search.state is not None:
            search.state = search.state.select(new_order)

    def input_rows(self, incremental_state: IncrementalState | None) -> Tensor | None:
        """`head.embedding_rows`, made once in a search; None where there is none, and a batch is read at once."""
        if incremental_state is None:
            return None
        search = self.search(incremental_state)
        if search.input_rows is None:
            search.input_rows = self.head.embedding_rows()
        return search.input_rows

    def get_normalized_probs(
        self, net_output: Output, log_probs: bool, sample: dict[str, Any] | None = None
    ) -> Tensor | TargetProbs:
        """Probabilities of all words and slots, for fairseq's criteria and searches: (B, T, V + J₁).

        Only a scorer hands over its sample, and asks for the targets in it, which are then all that is computed. It
        would leave impossible ones out of its perplexity. It numbers strings by their columns (search/columns.py); the
        strings themselves are sample["strings"] then.

        Raises:
            OptionError: some of the positions.
        """
        first, extra = net_output
        if "step" in extra:
            step: Batch = extra["step"]
            tempered = step if bool((first == 1.0).all()) else replace(step, temperature=1.0 / first[:, -1])
            result = tempered.word_log_probs().unsqueeze(1)
            return result if log_probs else result.exp()
        batch: Batch = extra["batch"]
        if first.shape[:2] != extra["condition"].previous.shape:
            raise OptionError("--softmax-batch: not supported; leave it out: a batch is scored in parts as it is")
        if sample is None or sample.get("target") is None:
            result = self.head.word_log_probs(batch)
            return result if log_probs else result.exp()
        targets = sample.get("strings", sample["target"])
        of_targets = self.head.target_log_probs(batch, targets)
        check_allowed(self.head, of_targets, targets, sample["id"], self.fix_zero_mass)
        # of several models the scorer takes the mean of probabilities, and leaves out of a perplexity what is 0 then
        return TargetProbs(of_targets if log_probs else of_targets.double().exp(), sample["target"])

    # ---- fairseq's other questions ----------------------------------------------------------------------------------

    def max_positions(self) -> int:
        return 100_000  # recurrent: no limit of its own

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> dict[str, Tensor]:
        """Refuse weights that were trained beside another prior, before fairseq wraps such an error in its own."""
        of_sources = {source.option for source in self.head.sources}  # these check their weights themselves
        for code in load_all("user_code"):
            if (option := f"--{code.OPTION}") not in of_sources:
                code.check(option, "the checkpoint", state_dict, 0)
        missing = {"temperature": "--learn-background-temperature: expected this option"}  # in the model
        for extension in EXTENSIONS:
            missing |= extension.modules
        self.head.check_weights(state_dict, f"{name}.head.", missing)
        return state_dict


class TargetProbs:
    """What fairseq's scorer gets instead of the probabilities of all words: those of the targets, for which it asks.

    As a tensor (B, T, words) for fairseq.sequence_scorer.SequenceScorer.
    """

    def __init__(self, of_targets: Tensor, targets: Tensor) -> None:
        """Both (B, T)."""
        self.of_targets, self.targets = of_targets, targets

    @property
    def data(self) -> TargetProbs:
        """What a tensor has here has no gradient; nor has this."""
        return self

    def size(self, dim: int) -> int:
        """Of (B, T, 1)."""
        return self.of_targets.unsqueeze(2).size(dim)

    def view(self, *shape: Any) -> TargetProbs:
        """The scorer gives it the shape that it has."""
        return self

    def new(self, size: int) -> Tensor:
        """An empty tensor of the same kind: (size,)."""
        return self.of_targets.new_empty(size)

    def gather(self, dim: int, index: Tensor) -> Tensor:
        """The probabilities of the targets: index (B, T, 1) -> (B, T, 1)."""
        if dim != 2 or not index.squeeze(2).equal(self.targets):
            raise ValueError("expected the targets of the sample that was handed over; hand over none for all words")
        return self.of_targets.unsqueeze(2)


class LogLinearModel(BaseFairseqModel):
    """A model that ends in a log-linear layer over the prior of its task."""

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """The model's options. fairseq asks for them when a command line names the model."""
        enter_command()
        super().add_args(parser)


class LogLinearTranslationModel(LogLinearModel, FairseqEncoderDecoderModel):
    """An encoder and a log-linear decoder."""

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None, prev_output_tokens: Tensor, text: Tensor | None = None
    ) -> Output:
        """Hidden states (B, T, H) of a batch, and their record; arguments: of the encoder, and of the decoder."""
        encoder_out = self.encoder(src_tokens, src_lengths=src_lengths)
        output: Output = self.decoder(prev_output_tokens, encoder_out, text=text)
        return output
