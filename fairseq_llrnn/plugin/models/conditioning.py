"""The background of a batch or of a search: of its sources, with what experts say, and its states along a search.

Sizes: B batch, T time, L source length, N hypotheses.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.experts.features import ExpertFeatures
from fairseq_llrnn.plugin.models.experts import without_experts
from fairseq_llrnn.plugin.models.search_memory import BACKGROUND, SearchMemory

GIVEN, MOST = "given", "most"  # what a search keeps: its background, and its limit of length


@dataclass(frozen=True)
class Given:
    """The background of a batch of sources."""

    background: Background
    sentence: Tensor | None  # (N,) which sentence each hypothesis of a search is of; None: row i is sentence i


def given_batch(
    background: Background, experts: ExpertFeatures | None, source: Tensor | None, left_out: Tensor | None
) -> Given:
    """b(C; ·) of the batch's sources (B, L); None in a language model.

    Args:
        left_out: in training, the tokens (B, T) before the positions: all words of the targets are among them, and
            what was estimated from these is left out.
    """
    if source is not None:
        background = background.given(source, left_out)
    if left_out is not None:
        background = background.held_out(left_out)
    return Given(_bind(experts, background, source), None)


def given_search(
    background: Background, experts: ExpertFeatures | None, source: Tensor | None, memory: SearchMemory
) -> Given:
    """b(C; ·) of a search's sources (N, L). It is kept: its states, which are reordered, know the sentence."""

    def see_once() -> Given:  # a beam search repeats every sentence for its hypotheses
        if source is None:
            return Given(_bind(experts, background, None), None)
        sentences, row = torch.unique_consecutive(source, return_inverse=True, dim=0)
        return Given(_bind(experts, background.given(sentences), sentences), row)

    given: Given = memory.keep(GIVEN, see_once)
    return given


def advance(given: Given, tokens: Tensor, memory: SearchMemory) -> Tensor:
    """The background's state after the prefix `tokens` (N, t), whose first symbol only starts the sentence."""
    background, state = given.background, memory.get(BACKGROUND)
    if state is None:
        many = tokens.size(0) if given.sentence is None else int(given.sentence[-1]) + 1
        state = background.start(many)
        state = state if given.sentence is None else state[given.sentence]
        for t in range(1, tokens.size(1)):
            state = background.advance(state, tokens[:, t])
    else:
        state = background.advance(state, tokens[:, -1])
    memory.set(BACKGROUND, state)
    return state


def limit(most: int, memory: SearchMemory) -> None:
    """Hypotheses may have at most so many tokens, `</s>` included, in all."""
    memory.set(MOST, most)


def limited(background: Background, tokens: Tensor, memory: SearchMemory) -> Background:
    """The background for the step after `tokens` (N, t) of a search, whose first symbol starts the sentence."""
    most = memory.get(MOST)
    return background if most is None else background.within(most - (tokens.size(1) - 1))


def last_step(memory: SearchMemory) -> tuple[Background, Tensor]:
    """The background of a search, without experts, and its hypotheses' states in it, after the last step."""
    given: Given = memory.get(GIVEN)
    return without_experts(given.background, memory.get(BACKGROUND))


def _bind(experts: ExpertFeatures | None, background: Background, source: Tensor | None) -> Background:
    return background if experts is None else experts.bind(background, source)
