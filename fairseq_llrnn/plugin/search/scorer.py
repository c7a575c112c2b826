"""fairseq's scorer of references (--score-reference), over all words and slots (columns.py).

Sizes: N sentences and positions, B sentences, T time, V words, J slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairseq.models import BaseFairseqModel
from fairseq.sequence_scorer import SequenceScorer
from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.plugin.compat.dictionaries import with_unk
from fairseq_llrnn.plugin.search.columns import has_slots, with_unknown_slots


class ColumnScorer(SequenceScorer):
    """fairseq's scorer, where a model offers slots."""

    def generate(self, models: Sequence[BaseFairseqModel], sample: dict[str, Any], **options: Any) -> Any:
        """As fairseq's: the scores of each sample's target."""
        decoder, target = next(model.decoder for model in models if has_slots(model)), sample["target"]
        bound = decoder.head.background.given(sample["net_input"]["src_tokens"])
        padded = [model if has_slots(model) else _WithSlots(model, bound, decoder.head.unk) for model in models]
        columns = bound.column_of(target)
        # what no slot of its sentence offers is <unk>
        strings = target.masked_fill(columns.eq(decoder.dictionary.unk()), decoder.dictionary.unk())
        hypotheses = super().generate(padded, sample | {"target": columns, "strings": strings}, **options)
        for row, hypothesis in zip(target, hypotheses, strict=True):
            hypothesis[0]["tokens"] = row[row != self.pad]
        return hypotheses


class _WithSlots:
    """A model without slots that answers as if it had some; the scorer asks nothing else of a model."""

    def __init__(self, model: BaseFairseqModel, bound: Background, unk: int) -> None:
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
        states = self.bound.start(batch).repeat_interleave(time, 0)
        wide = with_unknown_slots(answer.flatten(0, 1), self.bound, states, self.unk).view(batch, time, -1)
        return wide if log_probs else wide.exp()
