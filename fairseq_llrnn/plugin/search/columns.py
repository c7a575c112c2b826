"""Columns of a search step: the tokens that they stand for, the state that a search shares, and the models.

Sizes: N hypotheses or sentences of a reference, B sentences, L source length, T time, V words, J slots, C columns.

fairseq's searches work on a matrix of log-probabilities, and find `<pad>`, `</s>` and `<unk>` by their index. If those
symbols keep their places, the other columns need not be the V words. Here they are one of two things:

    candidates    all special symbols in the dictionary's order, then the most probable words of each hypothesis
    all           the V words, then J slots of each hypothesis' sentence if the prior has evidence

A single model of ours returns candidates. Several models, ours and those of fairseq, return all words and slots. Our
models share a task and a prior (LogLinearDecoder.upgrade_state_dict_named), and so their slots. Each step records the
meaning of its columns (`StepColumns`), so that chosen columns can be mapped to tokens.

A `ColumnScorer` scores references for fairseq (--score-reference), over all words and slots.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import EnsembleModel, EnsembleModelWithAlignment
from fairseq.sequence_scorer import SequenceScorer
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import BoundBackground, View
from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY
from fairseq_llrnn.backgrounds.states import repeat
from fairseq_llrnn.output.context_classes import layers_of
from fairseq_llrnn.output.records import Batch
from fairseq_llrnn.plugin.compat.dictionaries import with_unk
from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut, IncrementalState, LogLinearDecoder

Hypotheses = list[list[dict[str, Tensor]]]  # fairseq's, of each sentence


@dataclass(frozen=True)
class StepColumns:
    """The tokens that the columns of a step stand for."""

    tokens: Tensor  # (N, C)
    step: Batch  # of the model whose background maps tokens to columns
    num_special: int | None = None  # number of special symbols before the candidates; None: all words have columns
    only_end: Tensor | None = None  # (N,) log p of `</s>` if nothing else is possible, else −inf; None: no limit

    def column_of(self, tokens: Tensor) -> Tensor:
        """Return the columns of tokens (N, T) among all words and slots. A string without a slot has the column of
        <unk>.
        """
        return self.step.view.column_of(tokens)

    def forced(self, words: Tensor, log_probs: Tensor) -> tuple[StepColumns, Tensor]:
        """Return a record in which the words (N,) have columns, and these columns: (N,).

        Among candidates, a word gets the first column after the special symbols, and log_probs (N, C) changes there.
        """
        columns = self.column_of(words.unsqueeze(1)).squeeze(1)
        if self.num_special is not None:
            ordinary = columns >= self.num_special
            log_probs[ordinary, self.num_special] = self.step.log_probs_of(words.unsqueeze(1)).squeeze(1)[ordinary]
            columns = columns.clamp(max=self.num_special)
        return replace(self, tokens=self.tokens.scatter(1, columns.unsqueeze(1), words.unsqueeze(1))), columns


@dataclass
class SearchSession:
    """The state of one search, from its first step to its last, shared by fairseq's generator, model and search."""

    longest: int | None = None  # length limit in tokens, </s> included, if strings may not end everywhere
    columns: StepColumns | None = None  # of the current step; None: before the first
    finalized: Hypotheses = field(default_factory=list)  # fairseq's complete hypotheses

    def begin(self, sentences: int, longest: int | None) -> None:
        """Begin a new search."""
        self.longest, self.columns, self.finalized = longest, None, [[] for _ in range(sentences)]

    @property
    def current(self) -> StepColumns:
        """The columns of the current step."""
        assert self.columns is not None
        return self.columns


def candidates(step: Batch, num_candidates: int, num_special: int) -> tuple[Tensor, Tensor]:
    """Return log p and tokens of the special symbols and the best candidates of each hypothesis: (N, C) each.

    No tensor has an entry for every word.
    """
    log_probs, words = step.top_k(num_candidates)
    log_probs = log_probs.masked_fill(words < num_special, NEGATIVE_INFINITY)  # these have their own columns
    special = torch.arange(num_special, device=words.device).expand(len(words), -1)
    return torch.cat([step.log_probs_of(special), log_probs], dim=1), torch.cat([special, words], dim=1)


def only_end(log_probs: Tensor, eos: int) -> Tensor:
    """Return log p of `</s>` for hypotheses with no other possible token, −inf for others: (N, C) -> (N,)."""
    others = (log_probs > NEGATIVE_INFINITY).sum(1) > 1
    return log_probs[:, eos].masked_fill(others, NEGATIVE_INFINITY)


# ---- the models ---------------------------------------------------------------------------------------------------


def is_ours(model: BaseFairseqModel) -> bool:
    """Return whether a model ends in a log-linear head."""
    return isinstance(model.decoder, LogLinearDecoder)


def has_slots(model: BaseFairseqModel) -> bool:
    """Return whether a model has slots."""
    return is_ours(model) and model.decoder.head.has_source_strings


def may_not_end(model: BaseFairseqModel) -> bool:
    """Return whether the model's background has states in which a string cannot end."""
    return is_ours(model) and model.decoder.head.background.needs_length_limit


def with_unknown_slots(answer: Tensor, view: View, unk: int) -> Tensor:
    """Extend the log probabilities (N, V) of a model without slots to the columns of a background with slots,
    (N, V + J).

    The slots of the source's unknown words share the probability of <unk> equally.
    """
    vocabulary, masks = answer.size(1), []
    for layer in layers_of(view):
        if layer.source.unk is not None:  # a moved word has a column of its own
            own = (layer.table.words >= vocabulary) & ~layer.table.moved
            masks.append(layer.source.unreadable(layer.contexts) & layer.pick(own))
    outside = torch.cat(masks, dim=1)  # shape: (N, J)
    counts = outside.sum(1, keepdim=True)
    wide = functional.pad(answer, (0, outside.size(1)), value=NEGATIVE_INFINITY)
    part = wide[:, unk : unk + 1] - counts.clamp_min(1).log()
    wide[:, vocabulary:] = part.expand_as(outside).masked_fill(~outside, NEGATIVE_INFINITY)
    wide[:, unk] = wide[:, unk].masked_fill(counts.squeeze(1) > 0, NEGATIVE_INFINITY)
    return wide


class EnsembleColumns(EnsembleModelWithAlignment):
    """Models of which at least one is ours. Each step stores its record in the session.

    The leader is the first model that has slots, or whose strings may not end everywhere. With a length limit, the
    ensemble forbids what the leader's background forbids.
    """

    def __init__(
        self, models: Sequence[BaseFairseqModel], session: SearchSession, num_candidates: int | None = None
    ) -> None:
        """num_candidates: number per hypothesis for a single model, besides the special symbols (None: all words)."""
        super().__init__(models)
        self.session, self.num_candidates, self.dictionary = session, num_candidates, models[0].decoder.dictionary
        self.leader = max(range(len(models)), key=lambda i: [f(models[i]) for f in (is_ours, has_slots, may_not_end)])

    def forward_encoder(self, net_input: dict[str, Tensor]) -> list[EncoderOut] | None:
        """Encode like fairseq. fairseq's models read strings outside the dictionary as <unk>."""
        if not self.has_encoder():
            return None
        source = with_unk(net_input["src_tokens"], self.single_model.encoder.dictionary)
        inputs = [net_input if is_ours(model) else net_input | {"src_tokens": source} for model in self.models]
        return [model.encoder.forward_torchscript(read) for model, read in zip(self.models, inputs, strict=True)]

    def forward_align(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor) -> Tensor:
        """Align like fairseq, with <unk> for strings outside the dictionary."""
        source = with_unk(src_tokens, self.models[0].encoder.dictionary)
        written = with_unk(prev_output_tokens, self.models[0].decoder.dictionary)
        return super().forward_align(source, src_lengths, written)

    def forward_decoder(
        self,
        tokens: Tensor,
        encoder_outs: list[EncoderOut],
        incremental_states: list[IncrementalState],
        temperature: float = 1.0,
    ) -> tuple[Tensor, Tensor | None]:
        """Return (mean) log probabilities of the columns (N, C), and mean attention (N, L) if there is any, like
        fairseq.
        """
        outputs = [
            self._decode(model, tokens, encoder_outs[i : i + 1], incremental_states[i], temperature)
            for i, model in enumerate(self.models)
        ]
        log_probs, columns = self._columns([answer for answer, _ in outputs])
        if self.session.longest is not None:
            columns = replace(columns, only_end=only_end(log_probs, self.dictionary.eos()))
        self.session.columns = columns
        attentions = [attention for _, attention in outputs if attention is not None]
        return log_probs, torch.stack(attentions).mean(0) if attentions else None

    def _decode(
        self,
        model: BaseFairseqModel,
        tokens: Tensor,
        encoder_outs: list[EncoderOut],
        state: IncrementalState,
        temperature: float,
    ) -> tuple[Batch | Tensor, Tensor | None]:
        """Return a model's output and its attention. The output of a fairseq model is log probabilities (N, V).

        encoder_outs: of this model.
        """
        decoder = model.decoder
        if not is_ours(model):
            words, single = with_unk(tokens, decoder.dictionary), EnsembleModel([model])
            return single.forward_decoder(words, encoder_outs, [state], temperature)
        decoder.search(state).longest = self.session.longest
        encoder_out = encoder_outs[0] if encoder_outs else None
        _, extra = decoder(tokens, encoder_out=encoder_out, incremental_state=state)
        attention = None if extra["attn"] is None else extra["attn"][0][:, -1]
        step: Batch = extra["step"]
        return step if temperature == 1.0 else step.tempered(temperature), attention

    def _columns(self, answers: list[Batch | Tensor]) -> tuple[Tensor, StepColumns]:
        """Return log probabilities (N, C), of candidates or averaged over models, and the record of the columns."""
        leading = answers[self.leader]
        assert isinstance(leading, Batch)
        if self.num_candidates is not None:
            log_probs, words = candidates(leading, self.num_candidates, self.dictionary.nspecial)
            return log_probs, StepColumns(words, leading, self.dictionary.nspecial)
        wide = [self._all_words(answer, leading) for answer in answers]
        words = leading.view.columns.expand(len(wide[0]), -1)
        mean = torch.stack(wide).logsumexp(0) - math.log(len(wide)) if len(wide) > 1 else wide[0]
        if self.session.longest is not None:
            mean = mean.masked_fill(wide[self.leader].isneginf(), NEGATIVE_INFINITY)
        return mean, StepColumns(words, leading)

    def _all_words(self, answer: Batch | Tensor, leading: Batch) -> Tensor:
        """Return a model's log probabilities of all words and slots: (N, V + J)."""
        if isinstance(answer, Batch):
            return answer.word_log_probs()
        if not has_slots(self.models[self.leader]):
            return answer
        return with_unknown_slots(answer, leading.view, self.dictionary.unk())


class ColumnScorer(SequenceScorer):
    """fairseq's scorer, for models with slots."""

    def generate(self, models: Sequence[BaseFairseqModel], sample: dict[str, Any], **options: Any) -> Any:
        """Return the scores of each sample's target, like fairseq."""
        decoder, target = next(model.decoder for model in models if has_slots(model)), sample["target"]
        bound = decoder.head.background.bind(sample["net_input"]["src_tokens"])
        padded = [model if has_slots(model) else _WithSlots(model, bound, decoder.head.unk) for model in models]
        columns = bound.view(bound.start(len(target))).column_of(target)
        # a string without a slot in its sentence is <unk>
        strings = target.masked_fill(columns.eq(decoder.dictionary.unk()), decoder.dictionary.unk())
        hypotheses = super().generate(padded, sample | {"target": columns, "strings": strings}, **options)
        for row, hypothesis in zip(target, hypotheses, strict=True):
            hypothesis[0]["tokens"] = row[row != self.pad]
        return hypotheses


class _WithSlots:
    """Adds slot columns to a model without slots. It has only the methods that the scorer calls."""

    def __init__(self, model: BaseFairseqModel, bound: BoundBackground, unk: int) -> None:
        self.model, self.bound, self.unk = model, bound, unk

    def eval(self) -> None:
        self.model.eval()

    def __call__(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor) -> Any:
        return self.model(
            with_unk(src_tokens, self.model.encoder.dictionary),
            src_lengths,
            with_unk(prev_output_tokens, self.model.decoder.dictionary),
        )

    def get_normalized_probs(self, net_output: Any, log_probs: bool, sample: Any = None) -> Tensor:
        answer = self.model.get_normalized_probs(net_output, True)  # shape: (B, T, V)
        batch, time, _ = answer.shape
        view = self.bound.view(repeat(self.bound.start(batch), time))
        wide = with_unknown_slots(answer.flatten(0, 1), view, self.unk).view(batch, time, -1)
        return wide if log_probs else wide.exp()
