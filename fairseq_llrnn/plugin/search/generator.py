"""fairseq's generator over columns: the best candidates of each hypothesis, or all words and slots.

Sizes: N hypotheses, B sentences, k beam width, C columns (columns.py).

A beam search takes 2k candidates from a sentence's hypotheses, so never a word that is not among the best 2k of its
hypothesis. No step needs a tensor of the vocabulary's size. Sampling, diverse beams, ensembles and other options need
every word.

If strings may not end everywhere (a grammar), fairseq's search has three faults. Hypotheses reach the length limit
where they may not end. --min-len forbids `</s>` even if it is the only possible token. If all hypotheses are finished
or dead before there are k, fairseq continues with impossible ones. So our models get the number of tokens left
(`with_max_length`), `</s>` is allowed again, and a search without hypotheses ends. With --match-source-len, fairseq
ends each hypothesis at its source's length, allowed or not. Then sources of equal length are searched together, so that
all have the same limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.search import BeamSearch, DiverseBeamSearch, LengthConstrainedBeamSearch, Sampling, Search
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator, SequenceGeneratorWithAlignment
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, BoundBackground
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.search.columns import (
    EnsembleColumns,
    Hypotheses,
    SearchSession,
    has_slots,
    is_ours,
    may_not_end,
)
from fairseq_llrnn.plugin.search.length import check_hypotheses, check_reachable, search_by_length

# options with which fairseq needs every word of the vocabulary, or other symbols than the special ones
WHOLE_VOCABULARY = "sampling match_source_len constraints no_repeat_ngram_size print_alignment lm_path".split()
WHEN_POSITIVE = ("diverse_beam_groups", "diversity_rate")
MANY_COLUMNS = 1 << 31  # more than a step has


def choose_generator(
    models: Sequence[BaseFairseqModel], args: Any, allow_candidates: bool = True
) -> Callable[..., SequenceGenerator] | None:
    """Return the constructor of our generator, if fairseq's is impossible or slower. None: fairseq's, over all words.

    Args:
        args: fairseq's options of a search.
        allow_candidates: False if anything else needs all words.
    """
    needs_all_words = any(getattr(args, name, False) for name in WHOLE_VOCABULARY)
    diverse = any((getattr(args, name, -1) or -1) > 0 for name in WHEN_POSITIVE)
    if len(models) == 1 and is_ours(models[0]) and allow_candidates and not needs_all_words and not diverse:
        return partial(ColumnGenerator, over_candidates=True)
    if not any(has_slots(model) or may_not_end(model) for model in models):
        return None
    alignment = getattr(args, "print_alignment", None)
    return partial(AligningColumnGenerator, print_alignment=alignment) if alignment else ColumnGenerator


def count_groups_by_rows(generator: object) -> None:
    """Let diverse beams find a sentence by its row in the batch.

    fairseq keeps a row for each sentence in its groups, but looks it up by the sentence's number in the data. After the
    first batch that is an IndexError.
    """
    search = getattr(generator, "search", None)
    search = search.search if isinstance(search, ColumnSearch) else search
    if not isinstance(search, DiverseBeamSearch):
        return
    by_number, first = search.step, torch.empty(0)

    def by_row(step: int, lprobs: Tensor, scores: Any, written: Any = None, sentences: Tensor | None = None) -> Any:
        nonlocal first
        if sentences is not None:
            first = sentences if step == 0 else first
            sentences = (sentences.unsqueeze(1) == first).long().argmax(1)
        return by_number(step, lprobs, scores, written, sentences)

    search.step = by_row


class Exhausted(Exception):
    """Raised if a search has no hypothesis left to extend."""


class ColumnSearch:
    """A search of fairseq over columns that returns tokens. All other attributes are those of the search."""

    def __init__(self, search: Search, session: SearchSession) -> None:
        self.search, self.session = search, session
        search.vocab_size = MANY_COLUMNS  # constrained ones number candidates by it: beam · (vocab_size + 1) + column

    def __getattr__(self, name: str) -> Any:
        return getattr(self.search, name)

    @property
    def stop_on_max_len(self) -> bool:
        """Whether fairseq stops at the length limit with the hypotheses found so far."""
        return self.session.longest is not None or bool(self.search.stop_on_max_len)

    def step(
        self,
        step: int,
        lprobs: Tensor,
        scores: Tensor | None,
        prev_output_tokens: Tensor,
        original_batch_idxs: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Map (B, k, C) log probabilities to scores, tokens and beams of the candidates, (B, 2k) each, like fairseq.

        Raises:
            Exhausted: there is a length limit, and all hypotheses are dead.
        """
        columns, limited = self.session.current, self.session.longest is not None
        if columns.only_end is not None:
            self._let_end(lprobs, columns.only_end, prev_output_tokens)
        if limited and scores is not None and isinstance(self.search, LengthConstrainedBeamSearch):  # dead ones end
            scores = scores.masked_fill(lprobs.isneginf().all(2, keepdim=True), NEGATIVE_INFINITY)
        values, places, beams = self.search.step(step, lprobs, scores, prev_output_tokens, original_batch_idxs)
        if limited and bool(values.isneginf().all()):
            raise Exhausted
        batch, beam, _ = lprobs.shape
        first = torch.arange(0, batch * beam, beam, device=beams.device).unsqueeze(1)
        return values, columns.tokens[first + beams, places], beams

    def _let_end(self, lprobs: Tensor, only_end: Tensor, prev_output_tokens: Tensor) -> None:
        """Allow `</s>` again for hypotheses with no other token: lprobs (B, k, C), only_end (N,)."""
        nothing = lprobs.isneginf().all(2)
        end = only_end.view_as(nothing)
        if isinstance(self.search, Sampling):  # it keeps finished hypotheses, and needs a possible token in each
            finished = (prev_output_tokens[:, 1:] == self.eos).any(1).view_as(nothing)
            end = end.masked_fill(finished, 0.0)
        lprobs[:, :, self.eos] = torch.where(nothing, end, lprobs[:, :, self.eos])
        if bool(lprobs.isneginf().all()):
            raise Exhausted


class RepeatBlocker(NGramRepeatBlock):
    """fairseq's --no-repeat-ngram-size, for tokens that are not columns."""

    def __init__(self, size: int, session: SearchSession) -> None:
        super().__init__(size)
        self.session = session

    def forward(self, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int) -> Tensor:
        columns = self.session.current.column_of(tokens[:, : step + 1])  # without padding, which is no n-gram
        return super().forward(columns, lprobs, bsz, beam_size, step)


class ColumnGenerator(SequenceGenerator):
    """fairseq's generator over columns. If strings may not end everywhere, its hypotheses are complete."""

    def __init__(
        self, models: Any, tgt_dict: Dictionary, *, over_candidates: bool = False, **options: Any
    ) -> None:  # options: fairseq's
        """over_candidates: for a single model of ours, with options that do not need all words."""
        models = list(models.models) if isinstance(models, EnsembleModel) else models
        if options.get("lm_model") is not None and any(map(has_slots, models)):
            raise OptionError(
                "--lm-path: not supported with a prior that has evidence, because a language model lacks its strings; "
                "rescore an n-best list with it instead (llrnn rescore --lm-path)"
            )
        self.session = SearchSession()
        self.limited = any(map(may_not_end, models))
        # </s> and <unk> may be among the best, too, and have their own columns
        num_candidates = 2 * options.get("beam_size", 1) + tgt_dict.nspecial if over_candidates else None
        search = options.pop("search_strategy", None) or BeamSearch(tgt_dict)
        super().__init__(
            EnsembleColumns(models, self.session, num_candidates),
            tgt_dict,
            search_strategy=ColumnSearch(search, self.session),
            **options,
        )
        size = options.get("no_repeat_ngram_size", 0)
        if size > 0:
            self.repeat_ngram_blocker: nn.Module | None = RepeatBlocker(size, self.session)

    @property
    def vocab_size(self) -> int:
        """The number of columns, which fairseq takes for the number of words."""
        columns = self.session.columns
        return len(self.tgt_dict) if columns is None else columns.tokens.size(1)

    @vocab_size.setter
    def vocab_size(self, size: int) -> None:
        """Ignore the size of the dictionary, which fairseq sets."""

    def _generate(
        self,
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> Hypotheses:
        """Search like fairseq. With a length limit, the hypotheses are sorted, and may be fewer than k.

        Raises:
            DataError: there is no complete string within the limit, or the search has found none.
        """
        net_input, longest = sample["net_input"], None
        if self.limited and self.match_source_len and len(net_input["src_lengths"].unique()) > 1:
            return search_by_length(partial(self._generate, bos_token=bos_token), sample, prefix_tokens, constraints)
        if constraints is not None:
            background = self._background(net_input)
            constraints = background.view(background.start(len(constraints))).column_of(constraints)
        if self.limited:
            longest = self._longest(net_input)
            check_reachable(self._background(net_input), sample, prefix_tokens, longest, self.pad, self.eos)
        self.session.begin(len(net_input["src_tokens"]), longest)
        try:
            hypotheses: Hypotheses = super()._generate(sample, prefix_tokens, constraints, bos_token)
        except Exhausted:
            hypotheses = [sorted(found, key=lambda h: -h["score"].item()) for found in self.session.finalized]
        if longest is not None:
            check_hypotheses(hypotheses, sample, longest)
        return hypotheses

    def _background(self, net_input: dict[str, Tensor]) -> BoundBackground:
        """Return the leading model's background for these sources."""
        background = self.model.models[self.model.leader].decoder.head.background
        bound: BoundBackground = background.bind(net_input["src_tokens"] if self.model.has_encoder() else None)
        return bound

    def _longest(self, net_input: dict[str, Tensor]) -> int:
        """Return the length limit in tokens, </s> included, by fairseq's rule."""
        if self.match_source_len:
            return int(net_input["src_lengths"].max()) + 1
        return min(int(self.max_len_a * net_input["src_tokens"].size(1) + self.max_len_b), self.max_len - 1) + 1

    def _prefix_tokens(
        self, step: int, lprobs: Tensor, scores: Tensor, tokens: Tensor, prefix_tokens: Tensor, beam_size: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Force a prefix like fairseq, which looks up its words among the columns."""
        words = prefix_tokens[:, step].repeat_interleave(beam_size)
        self.session.columns, columns = self.session.current.forced(words, lprobs)
        in_columns = prefix_tokens.clone()  # fairseq compares earlier steps with the tokens
        in_columns[:, step] = columns[::beam_size]
        return super()._prefix_tokens(step, lprobs, scores, tokens, in_columns, beam_size)

    def finalize_hypos(self, *args: Any) -> list[int]:  # the signature is fairseq's
        """Finalize like fairseq, and keep its hypotheses in the session."""
        self.session.finalized = args[5]
        return super().finalize_hypos(*args)


class AligningColumnGenerator(SequenceGeneratorWithAlignment, ColumnGenerator):
    """fairseq's generator of hypotheses with word alignments, over columns."""

    def _prepare_batch_for_alignment(self, sample: dict[str, Any], hypothesis: Hypotheses) -> tuple[Tensor, ...]:
        """Fill up each sentence to the k hypotheses that fairseq needs."""
        for hypotheses in hypothesis:
            hypotheses += hypotheses[-1:] * (self.beam_size - len(hypotheses))
        return super()._prepare_batch_for_alignment(sample, hypothesis)
