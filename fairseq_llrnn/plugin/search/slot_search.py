"""Searches and scores over all words where some model offers slots: the whole vocabulary, and the slots behind it.

Sizes: N hypotheses, V words, J slots. Sampling, diverse beams, ensembles and the host's scorer look at every word. A
model with evidence answers them with V + J columns (evidence/background.py). Here the host's own code works on
columns: models without slots give the last J of them no probability, and what a search chose is turned back into
tokens. Models of one task have one prior (LogLinearDecoder.upgrade_state_dict_named), and so the same slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.search import Search
from fairseq.sequence_generator import (
    EnsembleModel,
    SequenceGeneratorWithAlignment,
)
from fairseq.sequence_scorer import SequenceScorer
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.plugin.compat.open_dictionary import known_words
from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut, LogLinearDecoder
from fairseq_llrnn.plugin.models.search_memory import IncrementalState
from fairseq_llrnn.plugin.search.length_limit import Completing, LimitedEnsemble, WrappedSearch, may_not_end


def has_slots(model: BaseFairseqModel) -> bool:
    """Whether a model offers slots."""
    return isinstance(model.decoder, LogLinearDecoder) and model.decoder.head.slot_rows is not None


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


class SlotSearch(WrappedSearch):
    """A search of the host over columns, with tokens in its answer: `words` (N, columns) of the model says which."""

    def step(
        self,
        step: int,
        lprobs: Tensor,
        scores: Tensor | None,
        prev_output_tokens: Tensor | None = None,
        original_batch_idxs: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As the host's: (batch, beam, columns) log probabilities -> scores, tokens and beams of the candidates."""
        batch, beam, self.search.vocab_size = lprobs.shape  # by which constrained searches number their candidates
        values, columns, beams = self.search.step(step, lprobs, scores, prev_output_tokens, original_batch_idxs)
        words = self.of_model[0].words.view(batch, beam, -1)
        sentence = torch.arange(batch, device=words.device).unsqueeze(1)
        return values, words[sentence, beams, columns], beams


class ColumnEnsemble(LimitedEnsemble):
    """Models of which one at least offers slots. It remembers the tokens of its last answer's columns."""

    def __init__(self, models: Sequence[BaseFairseqModel]) -> None:
        super().__init__(models, next(i for i, model in enumerate(models) if has_slots(model)))
        self.words = torch.empty(0)  # shape: (N, V + J)
        self.columns = len(models[0].decoder.dictionary)
        self._last: tuple[ContextClasses, Tensor] | None = None  # whose slots they are, and the hypotheses' states

    def forward_encoder(self, net_input: dict[str, Tensor]) -> list[EncoderOut]:
        known = net_input | {"src_tokens": known_words(net_input["src_tokens"], self.models[0].encoder.dictionary)}
        return [
            model.encoder.forward_torchscript(net_input if has_slots(model) else known) for model in self.models
        ]

    def read(self, model: BaseFairseqModel, tokens: Tensor) -> Tensor:
        return tokens if has_slots(model) else known_words(tokens, model.decoder.dictionary)

    def in_columns(self, answers: list[Tensor], incremental_states: list[IncrementalState]) -> list[Tensor]:
        """Log probabilities (N, V + J)."""
        bound, state = self._last = self.models[self.first].decoder.search_state(incremental_states[self.first])
        self.words = bound.columns(state)
        self.columns = self.words.size(1)
        return [
            answer if has_slots(model) else with_unknown_slots(answer, bound, state[:, 0])
            for model, answer in zip(self.models, answers, strict=True)
        ]

    def forward_align(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor) -> Tensor:
        known = known_words(src_tokens, self.models[0].encoder.dictionary)
        written = known_words(prev_output_tokens, self.models[0].decoder.dictionary)
        result: Tensor = super().forward_align(known, src_lengths, written)
        return result

    def column_of(self, tokens: Tensor) -> Tensor:
        """The column of each token (N, T) of the hypotheses; a string that no slot offers has that of <unk>."""
        assert self._last is not None
        bound, state = self._last
        return bound.column_of(tokens, state)

    def force(self, words: Tensor, log_probs: Tensor) -> Tensor:
        """The columns (N,) of the words (N,) that hypotheses must go on with, which will stand for just these."""
        columns = self.column_of(words.unsqueeze(1))
        self.words = self.words.scatter(1, columns, words.unsqueeze(1))
        return columns.squeeze(1)


class ForcingGenerator(Completing):
    """The host's generator where what it searches is columns, and prefixes are words.

    Its model has `force(words, log_probs)`, which finds the columns of the words (N,), and may change both.
    """

    def _prefix_tokens(
        self, step: int, lprobs: Tensor, scores: Tensor, tokens: Tensor, prefix_tokens: Tensor, beam_size: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As the host's."""
        columns = self.model.force(prefix_tokens[:, step].repeat_interleave(beam_size), lprobs)
        in_columns = prefix_tokens.clone()  # what came before is compared with the words written
        in_columns[:, step] = columns[::beam_size]
        result: tuple[Tensor, Tensor, Tensor] = super()._prefix_tokens(
            step, lprobs, scores, tokens, in_columns, beam_size
        )
        return result


class ColumnGenerator(ForcingGenerator):
    """The host's generator over words and slots."""

    def __init__(self, models: Any, tgt_dict: Dictionary, **options: Any) -> None:
        models = list(models.models) if isinstance(models, EnsembleModel) else models
        if options.get("lm_model") is not None:
            raise OptionError(
                "--lm-path: not supported with a prior that has evidence, of whose strings a language model knows "
                "nothing; rescore an n-best list with it instead (llrnn rescore --lm-path)"
            )
        super().__init__(ColumnEnsemble(models), tgt_dict, **options)
        self.search: Search = SlotSearch(tgt_dict, self.search, self.model)
        blocker: nn.Module | None = self.repeat_ngram_blocker
        if blocker is not None:
            self.repeat_ngram_blocker: nn.Module | None = RepeatBlocker(blocker, self.model)
        if any(map(may_not_end, models)):
            self.complete()

    def _generate(
        self,
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[list[dict[str, Tensor]]]:
        """As the host's; `constraints` of words become constraints of columns."""
        if constraints is not None:
            decoder = self.model.models[self.model.first].decoder
            constraints = decoder.head.background.given(sample["net_input"]["src_tokens"]).column_of(constraints)
        found: list[list[dict[str, Tensor]]] = super()._generate(sample, prefix_tokens, constraints, bos_token)
        return found

    @property
    def vocab_size(self) -> int:
        """The host reads here how many columns there are: of the batch at hand."""
        columns: int = self.model.columns
        return columns

    @vocab_size.setter
    def vocab_size(self, size: int) -> None:
        """The host sets its vocabulary's size, which is not the number of columns."""


class ColumnGeneratorWithAlignment(SequenceGeneratorWithAlignment, ColumnGenerator):
    """The host's generator of hypotheses with word alignments, over words and slots."""


class RepeatBlocker(nn.Module):
    """The host's --no-repeat-ngram-size, for tokens that are not columns."""

    def __init__(self, blocker: nn.Module, model: ColumnEnsemble) -> None:
        super().__init__()
        self.blocker = blocker
        self.columns_of = [model]  # in a list, as in SlotSearch

    def forward(self, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int) -> Tensor:
        columns = self.columns_of[0].column_of(tokens[:, : step + 1])  # without padding, over which the host's stumbles
        blocked: Tensor = self.blocker(columns, lprobs, bsz, beam_size, step)
        return blocked


class ColumnScorer(SequenceScorer):
    """The host's scorer of references (--score-reference), over words and slots."""

    def generate(self, models: Sequence[BaseFairseqModel], sample: dict[str, Any], **options: Any) -> Any:
        """As the host's: the scores of each sample's target."""
        decoder, target = next(model.decoder for model in models if has_slots(model)), sample["target"]
        bound = decoder.head.background.given(sample["net_input"]["src_tokens"])
        assert isinstance(bound, ContextClasses)
        padded = [model if has_slots(model) else _Padded(model, bound) for model in models]
        hypotheses = super().generate(padded, sample | {"target": bound.column_of(target)}, **options)
        for row, hypothesis in zip(target, hypotheses, strict=True):
            hypothesis[0]["tokens"] = row[row != self.pad]
        return hypotheses


class _Padded:
    """A model without slots that gives columns; the scorer asks nothing else of a model."""

    def __init__(self, model: BaseFairseqModel, bound: ContextClasses) -> None:
        self.model, self.bound = model, bound

    def eval(self) -> None:
        self.model.eval()

    def __call__(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor) -> Any:
        return self.model(
            known_words(src_tokens, self.model.encoder.dictionary),
            src_lengths,
            known_words(prev_output_tokens, self.model.decoder.dictionary),
        )

    def get_normalized_probs(self, net_output: Any, log_probs: bool, sample: Any = None) -> Tensor:
        answer = self.model.get_normalized_probs(net_output, True)  # shape: (B, T, V)
        batch, time, _ = answer.shape
        sentence = torch.arange(batch, device=answer.device).repeat_interleave(time)
        wide = with_unknown_slots(answer.flatten(0, 1), self.bound, sentence).view(batch, time, -1)
        return wide if log_probs else wide.exp()
