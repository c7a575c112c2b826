"""Beam search over the exact best candidates of every hypothesis: no tensor of the vocabulary's size.

Sizes: N hypotheses, S signatures, C columns, beam width k.

The host's generator sees a matrix of C columns instead of V words: first the special symbols in the dictionary's order
(so that whatever it does to </s> and <unk> by their index is right), then the 2k and a few most probable other words of
each hypothesis (slots of its sentence among them). A beam search takes 2k candidates from a sentence's hypotheses, so
never a word that has no column. `SlotSearch` turns the columns that the host's search chose back into words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.search import Search
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY
from fairseq_llrnn.head.records import Step
from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut, LogLinearDecoder
from fairseq_llrnn.plugin.models.search_memory import IncrementalState
from fairseq_llrnn.plugin.search.length_limit import (
    LimitedGenerator,
    LimitedGeneratorWithAlignment,
    WithLimit,
    may_not_end,
)
from fairseq_llrnn.plugin.search.slot_search import (
    ColumnGenerator,
    ColumnGeneratorWithAlignment,
    ForcingGenerator,
    SlotSearch,
    has_slots,
)

# Options under which the host looks at every word of the vocabulary, or at other symbols than the special ones.
WHOLE_VOCABULARY = "sampling match_source_len constraints no_repeat_ngram_size print_alignment lm_path".split()
WHEN_POSITIVE = ("diverse_beam_groups", "diversity_rate")


def generator_class(
    models: Sequence[BaseFairseqModel], args: Any, over_candidates: bool = True
) -> type[SequenceGenerator] | None:
    """Our generators where the host's cannot do, or not as fast. None: the host's, over all words.

    Args:
        over_candidates: whether something else does not ask for all words.
    """
    whole = any(getattr(args, name, False) for name in WHOLE_VOCABULARY)
    diverse = any((getattr(args, name, -1) or -1) > 0 for name in WHEN_POSITIVE)
    ours = len(models) == 1 and isinstance(models[0].decoder, LogLinearDecoder)
    if ours and over_candidates and not whole and not diverse:
        return CandidateGenerator
    if any(map(has_slots, models)):
        return ColumnGeneratorWithAlignment if getattr(args, "print_alignment", None) else ColumnGenerator
    if any(map(may_not_end, models)):
        return LimitedGeneratorWithAlignment if getattr(args, "print_alignment", None) else LimitedGenerator
    return None


class CandidateModel(WithLimit):
    """One model of ours that answers with columns. It remembers its last answer, for the search to read."""

    def __init__(self, model: BaseFairseqModel, specials: int) -> None:
        super().__init__([model])
        self.specials = specials
        self.wanted = 1  # candidates per hypothesis, besides the special symbols
        self.words = torch.empty(0)  # shape: (N, C), the word of each column
        self._last: Step | None = None

    @property
    def columns(self) -> int:
        return self.specials + self.wanted

    def forward_decoder(
        self,
        tokens: Tensor,
        encoder_outs: list[EncoderOut],
        incremental_states: list[IncrementalState],
        temperature: float = 1.0,
    ) -> tuple[Tensor, Tensor | None]:
        """Log probabilities of the columns (N, C), and the attention on the source (N, L) if there is any."""
        decoder: LogLinearDecoder = self.single_model.decoder
        encoder_out = encoder_outs[0] if self.has_encoder() else None
        self.set_limits(incremental_states)
        _, extra = decoder(tokens, encoder_out=encoder_out, incremental_state=incremental_states[0])
        step = self._last = decoder.head.tempered(extra["step"], temperature)
        values, words = step.top_k(self.wanted)
        values = values.masked_fill(words < self.specials, NEGATIVE_INFINITY)
        if values.size(1) < self.wanted:  # a vocabulary smaller than the beam
            missing = self.wanted - values.size(1)
            values = torch.nn.functional.pad(values, (0, missing), value=NEGATIVE_INFINITY)
            words = torch.nn.functional.pad(words, (0, missing))
        special = torch.arange(self.specials, device=tokens.device).expand(len(words), -1)
        self.words = torch.cat([special, words], dim=1)
        attention = None if extra["attn"] is None else extra["attn"][0][:, -1]
        log_probs = torch.cat([step.log_probs_of_pinned(), values], dim=1)
        self.remember_end(log_probs)
        return log_probs, attention

    def log_probs_of(self, words: Tensor) -> Tensor:
        """log p of some words (N, K) for each hypothesis at the last step: (N, K)."""
        assert self._last is not None
        return self._last.log_probs_of(words)

    def force(self, words: Tensor, log_probs: Tensor) -> Tensor:
        """The columns (N,) of the words (N,): of ordinary ones the first after the special symbols, which they get."""
        assert self._last is not None
        background, states = self._last.background, self._last.state.states
        dictionary = self.single_model.decoder.dictionary
        # a string that no slot offers is <unk>, and takes its column
        unk = background.class_of[dictionary.unk()]
        nameless = (words >= len(dictionary)) & (background.classes(states, words) == unk)
        ordinary = (words >= self.specials) & ~nameless
        log_probs[ordinary, self.specials] = self.log_probs_of(words.unsqueeze(1)).squeeze(1)[ordinary]
        columns = words.clamp(max=self.specials).masked_fill(nameless, dictionary.unk())
        self.words = self.words.scatter(1, columns.unsqueeze(1), words.unsqueeze(1))
        return columns


class CandidateGenerator(ForcingGenerator):
    """The host's generator over the best candidates of one log-linear model."""

    def __init__(self, models: Sequence[BaseFairseqModel], tgt_dict: Dictionary, **options: Any) -> None:
        model = CandidateModel(models[0], tgt_dict.nspecial)
        super().__init__(model, tgt_dict, **options)
        # </s> and <unk> may be among the best as well, and have columns of their own
        model.wanted = 2 * self.beam_size + tgt_dict.nspecial
        self.vocab_size = model.columns
        self.search: Search = SlotSearch(tgt_dict, self.search, model)
        if may_not_end(models[0]):
            self.complete()
