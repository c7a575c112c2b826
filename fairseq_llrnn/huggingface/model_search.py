"""What a search with a model with the head remembers, and what it masks.

Sizes: N hypotheses, T tokens, K tokens of the model, H width.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig

from fairseq_llrnn.automata.trimming import NO_END
from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY
from fairseq_llrnn.backgrounds.states import concatenate, select
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.huggingface.background_weights import to_word_values
from fairseq_llrnn.huggingface.limited_search import requires_end
from fairseq_llrnn.huggingface.normalisation import mask_after_eos
from fairseq_llrnn.huggingface.prefix_states import PrefixStates
from fairseq_llrnn.output.records import State

NOT_READ = -1  # a token that the background does not read: padding, or the start of a text


class Search:
    """What a search remembers from one step to the next."""

    def __init__(
        self, model: Any, config: GenerationConfig, sentence: Tensor, start: Callable[[], State],
        to_read: Callable[[Tensor], Tensor],
    ) -> None:  # fmt: skip
        """
        Args:
            model: a LogLinearModel.
            config: whose max_length is known when the search begins.
            sentence: the number of each hypothesis' sentence, (N,).
            start: the states of N hypotheses that have written nothing.
            to_read: tokens (N, T) -> words, or NOT_READ.
        """
        self.model, self.head, self.config, self.sentence, self.to_read = model, model.head, config, sentence, to_read
        self.states = PrefixStates(lambda n: start(), self._advance, State.select, unread=0)
        self.end = model.token_of(model.head.eos)
        ends = [self.end] if config.eos_token_id is None else config.eos_token_id
        self.ends = torch.as_tensor(ends, device=model.device).flatten()
        size = len(model.words) if model.is_wrapped else len(model.head.prior.session.target.symbols)
        others = self.ends[self.ends.ne(self.end) & self.ends.ge(0) & self.ends.lt(size)]
        self.other_ends = others[: len(others) * model.head.background.needs_length_limit]  # end incomplete texts
        self.pad = self.end if (pad := config.pad_token_id) is None else int(pad)
        self.prompt: int | None = None  # how many tokens are there before the first step
        self.now: State  # of the step under way
        self.ended: Tensor  # (N,) bool, in this step

    def step(self, written: Tensor) -> State:
        """The states of hypotheses that have written (N, T)."""
        self.now = self.states.states_after(self.to_read(written), self.sentence)
        if self.prompt is None:
            self.prompt = written.size(1)
            self._check_length(written)
        self.ended = torch.isin(written[:, self.prompt :], self.ends).any(1)
        return self.now

    def mask(self, written: Tensor, scores: Tensor) -> Tensor:
        """Mask words after which no end is in reach, and all but padding after the end: a logits processor.

        Args:
            written: (N, T). scores: (N, K), log p of words. What stays is unchanged.
        """
        view = self.now.background.view(self.now.states, remaining=self.config.max_length - written.size(1))
        if view.remaining is not None:
            shares = to_word_values(view.log_shares, view.columns, self.head.prior)
            scores = scores.masked_fill(self.model.to_tokens(shares).isneginf(), NEGATIVE_INFINITY)
        if len(self.other_ends):
            of_ends = scores[:, self.other_ends]
            scores = scores.index_fill(1, self.other_ends, NEGATIVE_INFINITY)
            required = ~of_ends.isneginf() & (scores.amax(1).isneginf() & ~self.ended).unsqueeze(1)
            if bool(required.any()):
                raise requires_end(self.other_ends[required.any(0)].tolist(), self._spelled)
        return mask_after_eos(scores, self.ended, self.end, self.pad)

    def _spelled(self, token: int) -> str:
        word = int(self.model.words[token]) if self.model.is_wrapped else token
        symbol: str = self.head.prior.session.target.symbols[word]
        return symbol

    def _check_length(self, written: Tensor) -> None:
        """Raise DataError if nothing complete is within reach."""
        needed = int(self.now.background.steps_to_end(self.now.states).max())
        longest = self.config.max_length - written.size(1)
        if needed >= NO_END:
            raise DataError("generate: expected a prompt that the background allows, found another; give a new one")
        if needed > longest:
            raise DataError(
                f"generate: expected max_new_tokens of at least {needed}, which a complete sentence needs here, found "
                f"{longest}; give more"
            )

    def _advance(self, state: State, words: Tensor) -> State:
        is_read = words != NOT_READ
        if not bool(is_read.any()):
            return state
        after = self.head.advance(state, words.masked_fill(~is_read, self.head.pad))
        if bool(is_read.all()):
            return after
        rows = torch.arange(len(words), device=words.device) + is_read * len(words)
        try:
            states = select(concatenate([state.states, after.states]), rows)
        except ValueError:
            raise DataError(
                "generate: expected prompts of one length, since the background is a language model that reads them, "
                "found several; generate for each length by itself"
            ) from None
        return replace(after, states=states)


def limit_source_strings(head: LogLinearHead, make: Callable[[], State]) -> State:
    """Return a state of a search that writes each string of a source as often as the source has it."""
    with ExitStack() as restored:
        if (table := head.prior.offers()) is not None:
            restored.callback(setattr, table, "once", table.once)
            table.once = True
        return make()
