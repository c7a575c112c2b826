"""The models of a search, asked for the columns of each step.

Sizes: N hypotheses, B sentences, L source length, V words, J slots, C columns (columns.py).

One model of ours answers with candidates, or several models, ours and stock ones, with all words and slots. Ours are of
one task, have one prior (LogLinearDecoder.upgrade_state_dict_named), and so the same slots.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import EnsembleModel, EnsembleModelWithAlignment
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY
from fairseq_llrnn.head.records import Step
from fairseq_llrnn.output.context_classes import ContextClasses, strings_of
from fairseq_llrnn.plugin.compat.open_dictionary import known_words
from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut, LogLinearDecoder
from fairseq_llrnn.plugin.models.search_memory import IncrementalState
from fairseq_llrnn.plugin.search.columns import SearchSession, StepColumns, candidates, only_end


def is_ours(model: BaseFairseqModel) -> bool:
    """Whether a model ends in a log-linear head."""
    return isinstance(model.decoder, LogLinearDecoder)


def has_slots(model: BaseFairseqModel) -> bool:
    """Whether a model offers slots."""
    return is_ours(model) and model.decoder.head.slot_rows is not None


def may_not_end(model: BaseFairseqModel) -> bool:
    """Whether there are states in the model's background where a string cannot end."""
    return is_ours(model) and model.decoder.head.background.within(2) is not model.decoder.head.background


def with_unknown_slots(answer: Tensor, bound: ContextClasses, sentence: Tensor) -> Tensor:
    """The log probabilities (N, V) of a model without slots in columns (N, V + J); sentence: (N,).

    What it says of <unk>, it says of the unknown words of the source alike: each of their slots has an equal part.
    """
    source, vocabulary, unk = bound.source, len(bound.class_of), bound.source.unk
    assert unk is not None
    outside = source.unreadable(sentence) & (source.words(sentence) >= vocabulary)  # shape: (N, J)
    many = outside.sum(1, keepdim=True)
    wide = functional.pad(answer, (0, outside.size(1)), value=NEGATIVE_INFINITY)
    part = wide[:, unk : unk + 1] - many.clamp_min(1).log()
    wide[:, vocabulary:] = part.expand_as(outside).masked_fill(~outside, NEGATIVE_INFINITY)
    wide[:, unk] = wide[:, unk].masked_fill(many.squeeze(1) > 0, NEGATIVE_INFINITY)
    return wide


class EnsembleColumns(EnsembleModelWithAlignment):
    """Models of which one at least is ours; each step leaves its record in the session.

    The first that offers slots, or whose strings may not end anywhere, leads: where there is a limit of length, what
    its background forbids, the ensemble forbids.
    """

    def __init__(
        self, models: Sequence[BaseFairseqModel], session: SearchSession, num_candidates: int | None = None
    ) -> None:
        """num_candidates: per hypothesis, of a single model, besides the special symbols; None: all words."""
        super().__init__(models)
        self.session, self.num_candidates, self.dictionary = session, num_candidates, models[0].decoder.dictionary
        self.leader = max(range(len(models)), key=lambda i: [f(models[i]) for f in (is_ours, has_slots, may_not_end)])

    def forward_encoder(self, net_input: dict[str, Tensor]) -> list[EncoderOut] | None:
        """As fairseq's; stock models read strings outside the dictionary as <unk>."""
        if not self.has_encoder():
            return None
        known = net_input | {"src_tokens": known_words(net_input["src_tokens"], self.single_model.encoder.dictionary)}
        return [model.encoder.forward_torchscript(net_input if is_ours(model) else known) for model in self.models]

    def forward_align(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor) -> Tensor:
        """As fairseq's, with <unk> for strings outside the dictionary."""
        known = known_words(src_tokens, self.models[0].encoder.dictionary)
        written = known_words(prev_output_tokens, self.models[0].decoder.dictionary)
        result: Tensor = super().forward_align(known, src_lengths, written)
        return result

    def forward_decoder(
        self,
        tokens: Tensor,
        encoder_outs: list[EncoderOut],
        incremental_states: list[IncrementalState],
        temperature: float = 1.0,
    ) -> tuple[Tensor, Tensor | None]:
        """As fairseq's: (mean) log probabilities of the columns (N, C), mean attention (N, L) if there is any."""
        asked = [
            self._ask(model, tokens, encoder_outs[i : i + 1], incremental_states[i], temperature)
            for i, model in enumerate(self.models)
        ]
        log_probs, columns = self._columns([answer for answer, _ in asked])
        if self.session.longest is not None:
            columns = replace(columns, only_end=only_end(log_probs, self.dictionary.eos()))
        self.session.columns = columns
        attentions = [attention for _, attention in asked if attention is not None]
        return log_probs, torch.stack(attentions).mean(0) if attentions else None

    def _ask(
        self,
        model: BaseFairseqModel,
        tokens: Tensor,
        encoder_outs: list[EncoderOut],
        state: IncrementalState,
        temperature: float,
    ) -> tuple[Step | Tensor, Tensor | None]:
        """A model's own answer, of a stock one log probabilities (N, V), and its attention; encoder_outs: its own."""
        decoder = model.decoder
        if not is_ours(model):
            known, alone = known_words(tokens, decoder.dictionary), EnsembleModel([model])
            answer: tuple[Tensor, Tensor | None] = alone.forward_decoder(known, encoder_outs, [state], temperature)
            return answer
        decoder.limit_length(state, self.session.longest)
        encoder_out = encoder_outs[0] if encoder_outs else None
        _, extra = decoder(tokens, encoder_out=encoder_out, incremental_state=state)
        attention = None if extra["attn"] is None else extra["attn"][0][:, -1]
        return decoder.head.tempered(extra["step"], temperature), attention

    def _columns(self, answers: list[Step | Tensor]) -> tuple[Tensor, StepColumns]:
        """log probabilities (N, C) of candidates, or the mean over models of all words', and what they stand for."""
        leading = answers[self.leader]
        assert isinstance(leading, Step)
        if self.num_candidates is not None:
            log_probs, words = candidates(leading, self.num_candidates, self.dictionary.nspecial)
            return log_probs, StepColumns(words, leading, self.dictionary.nspecial)
        wide = [self._all_words(answer, leading) for answer in answers]
        words = leading.background.columns(leading.state.states).expand(len(wide[0]), -1)
        mean = torch.stack(wide).logsumexp(0) - math.log(len(wide)) if len(wide) > 1 else wide[0]
        if self.session.longest is not None:
            mean = mean.masked_fill(wide[self.leader].isneginf(), NEGATIVE_INFINITY)
        return mean, StepColumns(words, leading)

    def _all_words(self, answer: Step | Tensor, leading: Step) -> Tensor:
        """A model's answer in columns for all words and slots: (N, V + J)."""
        if isinstance(answer, Step):
            return answer.word_log_probs()
        if not has_slots(self.models[self.leader]):
            return answer
        bound, states = strings_of(leading.background, leading.state.states)
        return with_unknown_slots(answer, bound, bound.contexts_of(states))
