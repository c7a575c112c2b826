"""Searches that end with complete strings, whatever the background forbids and however short the limit.

Sizes: B sentences, k hypotheses of each, N = B·k, C columns (words, or whatever the model answers with).

A background may forbid most continuations (a grammar). Then three things of the host's search go wrong: hypotheses run
into the limit of length where they may not end; --min-len forbids `</s>` to one that can do nothing else; and where all
hypotheses are finished or dead before there are k of them, the host goes on with nothing, and dies of an assertion.
Here every model of ours is told how many tokens are left (`Background.within`), so that no hypothesis goes where no end
is in reach; `</s>` is given back to a hypothesis that has nothing else; and a search without hypotheses ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.search import Sampling, Search
from fairseq.sequence_generator import (
    EnsembleModel,
    EnsembleModelWithAlignment,
    SequenceGenerator,
    SequenceGeneratorWithAlignment,
)
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.models.log_linear_decoder import EncoderOut, LogLinearDecoder
from fairseq_llrnn.plugin.models.search_memory import IncrementalState

NO_LENGTH = 1 << 30  # more than any limit of length


def may_not_end(model: BaseFairseqModel) -> bool:
    """Whether there are states in the model's background where a string cannot end."""
    decoder = model.decoder
    return isinstance(decoder, LogLinearDecoder) and decoder.head.background.within(2) is not decoder.head.background


class WithLimit(EnsembleModel):
    """Models of a search that know how long a hypothesis may become, and remember how probable the end is."""

    longest: int | None = None  # tokens of a hypothesis, </s> included
    end: Tensor | None = None  # shape: (N,), log p of </s> at the last step, −inf where something else is possible

    def set_limits(self, incremental_states: Sequence[IncrementalState]) -> None:
        """To be called before each step."""
        for model, state in zip(self.models, incremental_states, strict=True):
            if self.longest is not None and isinstance(model.decoder, LogLinearDecoder):
                model.decoder.limit_length(state, self.longest)

    def remember_end(self, log_probs: Tensor) -> None:
        """To be called after each step, with its answer (N, C), in which </s> has its place."""
        if self.longest is not None:
            eos = self.models[0].decoder.dictionary.eos()
            others = (log_probs > NEGATIVE_INFINITY).sum(1) > 1
            self.end = log_probs[:, eos].masked_fill(others, NEGATIVE_INFINITY)


class LimitedEnsemble(WithLimit, EnsembleModelWithAlignment):
    """Models of a search, ours and others, each of which is asked alone.

    What the background of the leading one forbids, the ensemble forbids, too, where there are states that cannot end. A
    subclass says what models read and how their answers are laid out (`read`, `in_columns`).
    """

    def __init__(self, models: Sequence[BaseFairseqModel], first: int) -> None:
        """first: which model leads."""
        super().__init__(models)
        self.alone = nn.ModuleList(EnsembleModel([model]) for model in models)
        self.first, self.forbids = first, may_not_end(models[first])

    def read(self, model: BaseFairseqModel, tokens: Tensor) -> Tensor:
        """The tokens (N, T) of the hypotheses as the model knows them."""
        return tokens

    def in_columns(self, answers: list[Tensor], incremental_states: list[IncrementalState]) -> list[Tensor]:
        """The models' log probabilities (N, V) in columns (N, C)."""
        return answers

    def forward_decoder(
        self,
        tokens: Tensor,
        encoder_outs: list[EncoderOut],
        incremental_states: list[IncrementalState],
        temperature: float = 1.0,
    ) -> tuple[Tensor, Tensor | None]:
        """As the host's: mean log probabilities (N, C), and the mean attention (N, L) if there is any."""
        self.set_limits(incremental_states)
        answers, attentions = [], []
        for i, model in enumerate(self.models):
            alone: Any = self.alone[i]
            answer, attention = alone.forward_decoder(
                self.read(model, tokens), encoder_outs[i : i + 1], incremental_states[i : i + 1], temperature
            )
            answers.append(answer)
            attentions += [] if attention is None else [attention]
        answers = self.in_columns(answers, incremental_states)
        mean = torch.stack(answers).logsumexp(0) - math.log(len(answers)) if len(answers) > 1 else answers[0]
        if self.forbids:
            mean = mean.masked_fill(answers[self.first].isneginf(), NEGATIVE_INFINITY)
        self.remember_end(mean)
        return mean, torch.stack(attentions).mean(0) if attentions else None


class WrappedSearch(Search):
    """One of the host's searches, with something done before or after each step."""

    def __init__(self, dictionary: Dictionary, search: Search, model: Any) -> None:
        super().__init__(dictionary)
        self.search = search
        self.of_model = [model]  # in a list: no sub-module, it is the generator's already
        self.supports_constraints = search.supports_constraints
        self.stop_on_max_len = search.stop_on_max_len
        self.needs_src_lengths = getattr(search, "needs_src_lengths", False)

    def set_src_lengths(self, src_lengths: Tensor) -> None:
        self.search.set_src_lengths(src_lengths)

    def init_constraints(self, batch_constraints: Tensor | None, beam_size: int) -> None:
        self.search.init_constraints(batch_constraints, beam_size)

    def prune_sentences(self, batch_idxs: Tensor) -> None:
        self.search.prune_sentences(batch_idxs)

    def update_constraints(self, active_hypos: Tensor) -> None:
        self.search.update_constraints(active_hypos)


class Exhausted(Exception):
    """A search has no hypothesis left that could go on."""


class CompletingSearch(WrappedSearch):
    """A search of the host that lets hypotheses end where they can do nothing else. Raises Exhausted."""

    def __init__(self, dictionary: Dictionary, search: Search, model: WithLimit) -> None:
        super().__init__(dictionary, search, model)
        self.stop_on_max_len = True  # with what was found by then
        innermost: Any = search
        while isinstance(innermost, WrappedSearch):
            innermost = innermost.search
        self.samples = isinstance(innermost, Sampling)

    def step(
        self,
        step: int,
        lprobs: Tensor,
        scores: Tensor | None,
        prev_output_tokens: Tensor | None = None,
        original_batch_idxs: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As the host's: (batch, beam, columns) log probabilities -> scores, tokens and beams of the candidates."""
        end = self.of_model[0].end
        assert end is not None and prev_output_tokens is not None
        nothing = lprobs.isneginf().all(2)
        last = end.view_as(nothing)
        if self.samples:  # it goes on with hypotheses that are finished, and cannot draw from nothing
            finished = (prev_output_tokens[:, 1:] == self.eos).any(1).view_as(nothing)
            last = last.masked_fill(finished, 0.0)
        lprobs[:, :, self.eos] = torch.where(nothing, last, lprobs[:, :, self.eos])
        if bool(lprobs.isneginf().all()):
            raise Exhausted
        values, columns, beams = self.search.step(step, lprobs, scores, prev_output_tokens, original_batch_idxs)
        if bool(values.isneginf().all()):
            raise Exhausted
        return values, columns, beams


class Completing(SequenceGenerator):
    """A generator of the host, with a model WithLimit, whose hypotheses are complete strings of the background."""

    found: list[list[dict[str, Tensor]]]  # the host's list of finished hypotheses

    def complete(self) -> None:
        """To be called when the generator is made, if any of its models needs it (`may_not_end`)."""
        self.search: Search = CompletingSearch(self.tgt_dict, self.search, self.model)

    def _generate(
        self,
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[list[dict[str, Tensor]]]:
        """As the host's; the best first, and less than k where there are fewer.

        Raises:
            DataError: there is no complete string within the limit, or the search has found none.
        """
        if not isinstance(self.search, CompletingSearch):
            found: list[list[dict[str, Tensor]]] = super()._generate(sample, prefix_tokens, constraints, bos_token)
            return found
        longest = self._longest(sample["net_input"])
        self._check_start(sample, prefix_tokens, longest)
        self.model.longest, self.found = longest, [[] for _ in sample["net_input"]["src_tokens"]]
        try:
            found = super()._generate(sample, prefix_tokens, constraints, bos_token)
        except Exhausted:
            found = [sorted(hypotheses, key=lambda h: -h["score"].item()) for hypotheses in self.found]
        for row, hypotheses in enumerate(found):
            if not hypotheses:
                raise DataError(
                    f"{_place(sample, row)}: expected a string that the background allows, found none of up to "
                    f"{longest - 1:,} words that the other options of the search allow, too; leave out --min-len, "
                    "--no-repeat-ngram-size, --match-source-len or constraints, or raise --max-len-b"
                )
        if isinstance(self, SequenceGeneratorWithAlignment):  # which needs k of them
            found = [hypotheses + hypotheses[-1:] * (self.beam_size - len(hypotheses)) for hypotheses in found]
        return found

    def finalize_hypos(self, *args: Any) -> list[int]:  # the signature is the host's
        """As the host's; notes where it keeps the hypotheses."""
        self.found = args[5]
        finished: list[int] = super().finalize_hypos(*args)
        return finished

    def _longest(self, net_input: dict[str, Tensor]) -> int:
        """The most tokens of a hypothesis, </s> included, by the host's rule."""
        source = net_input["src_tokens"]
        if self.match_source_len:
            return int(net_input["src_lengths"].max()) + 1
        return min(int(self.max_len_a * source.size(1) + self.max_len_b), self.max_len - 1) + 1

    def _check_start(self, sample: dict[str, Any], prefix: Tensor | None, longest: int) -> None:
        """Raise DataError unless an end is in reach of every sentence, after what it is forced to begin with."""
        source = sample["net_input"]["src_tokens"]
        prefix = source[:, :0] if prefix is None else prefix[:, : longest - 1]
        decoder = next(model.decoder for model in self.model.models if may_not_end(model))
        background = decoder.head.background.given(source) if self.model.has_encoder() else decoder.head.background
        state = background.start(len(source))
        going = torch.ones_like(source[:, 0], dtype=torch.bool)
        left = torch.full_like(source[:, 0], longest)
        for tokens in prefix.unbind(1):
            going = going & (tokens != self.pad) & (tokens != self.eos)
            each = going.view(-1, *[1] * (state.dim() - 1))
            state = torch.where(each, background.advance(state, tokens), state)
            left = left - going.long()
        needed = background.steps_to_end(state)
        ended = (prefix == self.eos).any(1)
        bad = (needed > left) & ~ended
        if bool(bad.any()):
            row = int(bad.long().argmax())
            given = longest - int(left[row])  # words that it must begin with
            begun = f", the {given:,} given included," if given else ""
            shortest = int(needed[row]) + given - 1
            advice = (
                "the background allows none of any length there; mend its grammar or automaton, or the beginning"
                if shortest >= NO_LENGTH
                else f"the shortest one has {shortest:,}; raise --max-len-b"
            )
            raise DataError(
                f"{_place(sample, row)}: expected a complete string of at most {longest - 1:,} words{begun} that the "
                f"background allows, found none: {advice}"
            )


def _place(sample: dict[str, Any], row: int) -> str:
    ids = sample.get("id")
    return f"sentence {int(ids[row]) + 1 if isinstance(ids, Tensor) and len(ids) > row else row + 1} of the search"


class LimitedGenerator(Completing):
    """The host's generator over the whole vocabulary, with complete strings."""

    def __init__(self, models: Any, tgt_dict: Dictionary, **options: Any) -> None:
        models = list(models.models) if isinstance(models, EnsembleModel) else models
        first = next(i for i, model in enumerate(models) if may_not_end(model))
        super().__init__(LimitedEnsemble(models, first), tgt_dict, **options)
        self.complete()


class LimitedGeneratorWithAlignment(SequenceGeneratorWithAlignment, LimitedGenerator):
    """The host's generator of hypotheses with word alignments, with complete strings."""
