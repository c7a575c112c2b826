"""A fairseq decoder that ends in a log-linear head: fairseq's conventions, and nothing else.

Sizes: B batch, T time, N hypotheses, L source length, V words, J₁ slots of evidence, H hidden width, E encoder width.
Nothing as wide as the classes is made before it is known what is asked. So element 0 of the decoder's output holds the
hidden states, (B, T, H), and in a search ones, (N, 1, 1), which fairseq divides by its temperature. The second element
is a dictionary, because fairseq reads "attn" there, and holds the head's record (head.Batch): "batch", or in
a search "step". Beside a batch there is its "condition", and "terms": what the network says of each position for the
criterion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.head.zero_mass import refuse_forbidden
from fairseq_llrnn.output.records import Batch, State
from fairseq_llrnn.plugin.data.zero_mass import how_to_fix
from fairseq_llrnn.plugin.models.extensions import expected_modules
from fairseq_llrnn.plugin.models.hidden_states import HiddenStates
from fairseq_llrnn.plugin.models.target_probs import TargetProbs

EncoderOut = dict[str, list[Tensor]]  # as fairseq's; "src_tokens" holds the source, (B, L)
Output = tuple[Tensor, dict[str, Any]]
IncrementalState = dict[str, dict[str, Any]]  # fairseq hands it around
NETWORK, HEAD = "network", "head"  # states of the hypotheses: a tensor (N, …), and a head's State
OPTIONS = {  # what messages say of modules of a head that are not there
    "experts": "--expert: expected this option",
    "temperature": "--learn-background-temperature: expected this option",
    "characters": "--input-characters: expected cnn",
}
LONGEST = "longest"  # the most tokens of a hypothesis, </s> included; None: any number


class SearchMemory:
    """What a decoder remembers from one step of a search to the next, by name: its own part of fairseq's dictionary.

    Where there is no search, nothing is remembered.
    """

    def __init__(self, decoder: FairseqIncrementalDecoder, incremental_state: IncrementalState | None) -> None:
        self.decoder, self.incremental_state = decoder, incremental_state

    def get(self, name: str) -> Any:
        """What was set; None where nothing was."""
        found = self.decoder.get_incremental_state(self.incremental_state, name)
        return None if found is None else found["value"]

    def set(self, name: str, value: Any) -> None:
        self.decoder.set_incremental_state(self.incremental_state, name, {"value": value})

    def keep(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` returns: made at the first step of a search and used at all others, never reordered."""
        value = self.get(name)
        if value is None:
            value = make()
            self.set(name, value)
        return value

    def input_rows(self, head: LogLinearHead) -> Tensor | None:
        """`head.embedding_rows`, made once in a search; None where the head composes what it reads, token by token."""
        if self.incremental_state is None and head.normaliser.sparse_gradients:
            return None
        rows: Tensor | None = self.keep("input rows", head.embedding_rows)
        return rows

    def reorder(self, new_order: Tensor) -> None:
        """Give the states the order of the hypotheses: number new_order[i] comes to place i."""
        network, head = self.get(NETWORK), self.get(HEAD)
        if network is not None:
            self.set(NETWORK, network.index_select(0, new_order))
        if head is not None:
            self.set(HEAD, head.select(new_order))


class LogLinearDecoder(FairseqIncrementalDecoder):
    """Hidden states, which a subclass supplies (`hidden`), -> log-linear head."""

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
    ) -> Output:
        """Hidden states of every position, or the step of the last one where `incremental_state` is given.

        Args:
            prev_output_tokens: (B, T). src_lengths: what fairseq hands over; unused, since padding is on the right.
        """
        if incremental_state is not None:
            return self._search_step(prev_output_tokens, encoder_out, incremental_state)
        return self.extract_features(prev_output_tokens, encoder_out)

    def extract_features(self, prev_output_tokens: Tensor, encoder_out: EncoderOut | None = None) -> Output:
        """Hidden states (B, T, H) of a batch, and the record that belongs to them."""
        condition = self.head.condition(prev_output_tokens, _source(encoder_out))
        with torch.autocast(prev_output_tokens.device.type, torch.bfloat16, enabled=self._reduced):
            states = self.hidden(condition.readable, encoder_out, None)
        hidden = states.hidden.to(torch.bfloat16) if self._reduced else states.hidden
        # here, inside `forward`, so that torch's DistributedDataParallel sees the head's parameters used
        batch = self.head.batch(hidden, condition, self._source_states(encoder_out), states.spelling)
        attention = None if states.attention is None else [states.attention]
        return hidden, {"attn": attention, "batch": batch, "condition": condition, "terms": states.terms}

    def _search_step(
        self, tokens: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState
    ) -> Output:
        """Ones (N, 1, 1), and the step of the next token after `tokens` (N, t), which begin with </s>."""
        memory = SearchMemory(self, incremental_state)
        state: State | None = memory.get(HEAD)
        unread = tokens[:, -1:] if state is not None else tokens[:, 1:]
        if state is None:
            state = self.head.start(
                len(tokens),
                source=_source(encoder_out),
                source_states=self._source_states(encoder_out),
                pinned=range(self.dictionary.nspecial),
            )
        state = self.head.advance(state, unread).limited(memory.get(LONGEST))
        memory.set(HEAD, state)
        states = self.hidden(self.head.readable(tokens, state), encoder_out, incremental_state)
        step = self.head.step(states.hidden[:, -1], state)
        attention = None if states.attention is None else [states.attention]
        return torch.ones(len(tokens), 1, 1, device=tokens.device), {"attn": attention, "step": step}

    def _source_states(self, encoder_out: EncoderOut | None) -> Tensor | None:
        """The encoder's states (B, L, E), where the head looks at them."""
        if encoder_out is None or not self.head.sources:
            return None
        return encoder_out["encoder_out"][0].transpose(0, 1)

    @property
    def _reduced(self) -> bool:
        return self.bf16_products and self.training

    # ---- training ---------------------------------------------------------------------------------------------------

    def refuse_impossible(self, log_prob: Tensor, targets: Tensor, ids: Tensor) -> None:
        """A target without background mass would make the loss infinite: say which word, sentence and position.

        Args:
            log_prob: of the targets, (B, T). targets: (B, T). ids: (B,) the samples' numbers, from zero (a sample is a
                sentence, or a block of --tokens-per-sample words); another length where fairseq has cut the batch up,
                so that the place is not known.

        Raises:
            DataError: log_prob is −inf for a target that is not padding.
        """
        refuse_forbidden(self.head, log_prob, targets, ids, self.fix_zero_mass)

    # ---- searches, and all words ------------------------------------------------------------------------------------

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        SearchMemory(self, incremental_state).reorder(new_order)

    def get_normalized_probs(
        self, net_output: Output, log_probs: bool, sample: dict[str, Any] | None = None
    ) -> Tensor | TargetProbs:
        """Probabilities of all words and slots, for fairseq's criteria and searches: (B, T, V + J₁).

        Only a scorer hands over its sample, and asks for the targets in it, which are then all that is computed. It
        would leave impossible ones out of its perplexity. It numbers strings by their columns (columns.py); the strings
        themselves are sample["strings"] then.

        Raises:
            OptionError: some of the positions, of a background that is another one at each of them.
        """
        first, extra = net_output
        if "step" in extra:
            step: Batch = extra["step"]
            tempered = step if bool((first == 1.0).all()) else replace(step, temperature=1.0 / first[:, -1])
            result = tempered.word_log_probs().unsqueeze(1)
            return result if log_probs else result.exp()
        batch: Batch = extra["batch"]
        if first.shape[:2] != extra["condition"].previous.shape:
            batch = self._some_positions(first)
        if sample is None or sample.get("target") is None:
            result = self.head.word_log_probs(batch)
            return result if log_probs else result.exp()
        targets = sample.get("strings", sample["target"])
        of_targets = self.head.target_log_probs(batch, targets)
        self.refuse_impossible(of_targets, targets, sample["id"])
        return TargetProbs(of_targets if log_probs else of_targets.exp(), sample["target"])

    def _some_positions(self, hidden: Tensor) -> Batch:
        """What --softmax-batch asks for: hidden states (1, n, H) of a batch, and nobody says of which positions."""
        if self.head.reads_context:
            raise OptionError(
                "--softmax-batch: not supported with this prior, whose background is another one at every "
                "position; leave it out: such a batch is scored in parts as it is"
            )
        previous = torch.full(hidden.shape[:2], self.dictionary.eos(), device=hidden.device)
        return self.head.batch(hidden, self.head.condition(previous))

    # ---- fairseq's other questions ----------------------------------------------------------------------------------

    def max_positions(self) -> int:
        return 100_000  # recurrent: no limit of its own

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> dict[str, Tensor]:
        """Refuse weights that were trained beside another prior, before fairseq wraps such an error in its own."""
        weights = state_dict.get(f"{name}.head.experts.weight")
        if weights is not None:
            from fairseq_llrnn.experts.features import ExpertFeatures, refuse_other_experts

            if self.head.find(ExpertFeatures) is None:  # which says itself how many there must be
                refuse_other_experts("--expert", "the checkpoint", weights, 0)
        self.head.check_weights(state_dict, f"{name}.head.", OPTIONS | expected_modules())
        return state_dict


def _source(encoder_out: EncoderOut | None) -> Tensor | None:
    return None if encoder_out is None else encoder_out["src_tokens"][0]
