"""Weights of a prior's background, whose words are tokens.

Sizes: N hypotheses, K tokens, C columns of a background, W words and strings of a session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY, BoundBackground, View
from fairseq_llrnn.backgrounds.states import repeat, select
from fairseq_llrnn.huggingface.token_weights import Row, TokenWeights
from fairseq_llrnn.prior.prior import Prior

NO_WORD = -1  # of a token that is no word of the prior


def to_word_values(values: Tensor, columns: Tensor, prior: Prior) -> Tensor:
    """Return a background's columns by the numbers of words and strings: (N, C) -> (N, W). −inf if there is none.

    Args:
        columns: the word of each column, (1, C) or (N, C): those of the dictionary, then strings that sources offer.
    """
    num_words, width = len(prior.symbols), len(prior.session.target.symbols)
    if width == values.size(1) == num_words:
        return values
    wide = nn.functional.pad(values[:, :num_words], (0, width - num_words), value=NEGATIVE_INFINITY)
    if values.size(1) == num_words:
        return wide
    strings = columns[:, num_words:].expand(len(values), -1)  # void places among them have no value
    return wide.scatter_reduce(1, strings, values[:, num_words:], "amax")


@dataclass(frozen=True)
class BackgroundStates:
    """Of N hypotheses: those of the background, and whether each has ended."""

    states: Any  # of the background
    ended: np.ndarray

    def __len__(self) -> int:
        return len(self.ended)


class BackgroundWeights(TokenWeights[BackgroundStates]):
    """A background, whose words are tokens."""

    def __init__(
        self,
        background: BoundBackground,
        words: Tensor,
        end: int,
        pad: int,
        sentences: int = 1,
        prior: Prior | None = None,
    ) -> None:
        """
        Args:
            words: the background's word of each token, (K,). NO_WORD forbids a token.
            end, pad: words that end a text, and that any other token is read as.
            sentences: to which the background is bound. Hypotheses come by sentence, as many of each.
            prior: whose strings of sources the background may have, if any.
        """
        self.background, self.words, self.end, self.pad, self.prior = background, words, end, pad, prior
        self.sentences, self.num_tokens = sentences, len(words)
        self.words_and_none = nn.functional.pad(words, (0, 1), value=NO_WORD)

    def start(self, n: int) -> BackgroundStates:
        states = self.background.start(self.sentences)
        return BackgroundStates(repeat(states, n // self.sentences), np.zeros(n, dtype=bool))

    def advance(self, states: BackgroundStates, tokens: np.ndarray) -> BackgroundStates:
        words = self.words_and_none[torch.from_numpy(tokens).to(self.words.device)]
        after = self.background.advance(states.states, words.masked_fill(words == NO_WORD, self.pad))
        return BackgroundStates(after, states.ended | words.eq(self.end).cpu().numpy())

    def select(self, states: BackgroundStates, rows: np.ndarray) -> BackgroundStates:
        index = torch.from_numpy(rows).to(self.words.device)
        return BackgroundStates(select(states.states, index), states.ended[rows])

    def rows(self, states: BackgroundStates, scores: Tensor) -> list[Row]:
        view = self.background.view(states.states)
        values = self._of_tokens(view, view.log_weights)
        values = values.to(scores.device, scores.dtype).expand(len(states), -1)
        none = Row(scores.new_zeros(0, dtype=torch.long), None)
        return [none if ended else Row(None, row) for ended, row in zip(states.ended, values, strict=True)]

    def in_reach(self, states: BackgroundStates, remaining: int) -> list[np.ndarray | None]:
        limited = self.background.view(states.states, remaining=remaining)
        if limited.remaining is None:
            return [None] * len(states)
        shares = self._of_tokens(limited, limited.log_shares)
        return list((~shares.isneginf()).expand(len(states), -1).cpu().numpy())

    def least(self, states: BackgroundStates) -> int:
        return int(self.background.steps_to_end(states.states).max())

    def _of_tokens(self, view: View, values: Tensor) -> Tensor:
        """Values of the view's columns (N or 1, C) for the model's tokens: (N or 1, K). −inf for unknown ones."""
        if self.prior is not None:
            values = to_word_values(values, view.columns, self.prior)
        return values[:, self.words.clamp_min(0)].masked_fill(self.words == NO_WORD, NEGATIVE_INFINITY)
