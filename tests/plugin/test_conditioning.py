"""Which background a batch or a search asks, and what it tells it."""

from __future__ import annotations

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.plugin.models import conditioning
from fairseq_llrnn.plugin.models.search_memory import SearchMemory

CLASS_OF = torch.arange(9)
SOURCE, PREVIOUS = torch.tensor([[4, 5], [6, 7]]), torch.tensor([[2, 4], [2, 5]])


class Telling(Background):
    """Notes what it is asked for. A state is the number of the sentence, then all tokens so far."""

    def __init__(self, *told: tuple) -> None:
        super().__init__(CLASS_OF, 9)
        self.told = told

    def given(self, source: Tensor, left_out: Tensor | None = None) -> Telling:
        return Telling(*self.told, ("given", source.tolist(), None if left_out is None else left_out.tolist()))

    def held_out(self, tokens: Tensor) -> Telling:
        return Telling(*self.told, ("held out", tokens.tolist()))

    def within(self, remaining: int) -> Telling:
        return Telling(*self.told, ("within", remaining))

    def start(self, n: int) -> Tensor:
        return torch.arange(n).unsqueeze(1)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return torch.cat([state, tokens.unsqueeze(1)], dim=1)


def told(given: conditioning.Given) -> tuple:
    assert isinstance(given.background, Telling)
    return given.background.told


def test_a_batch_is_given_its_sources_and_in_training_leaves_its_own_text_out() -> None:
    source, previous = SOURCE.tolist(), PREVIOUS.tolist()
    assert told(conditioning.given_batch(Telling(), None, None, None)) == ()
    assert told(conditioning.given_batch(Telling(), None, None, PREVIOUS)) == (("held out", previous),)
    assert told(conditioning.given_batch(Telling(), None, SOURCE, None)) == (("given", source, None),)
    trained = conditioning.given_batch(Telling(), None, SOURCE, PREVIOUS)
    assert told(trained) == (("given", source, previous), ("held out", previous)) and trained.sentence is None


def test_a_search_sees_each_sentence_once_and_its_states_know_theirs() -> None:
    memory = SearchMemory(FairseqIncrementalDecoder(Dictionary()), {})
    hypotheses = SOURCE.repeat_interleave(2, 0)
    given = conditioning.given_search(Telling(), None, hypotheses, memory)
    assert told(given) == (("given", SOURCE.tolist(), None),)
    prefix = torch.tensor([[2, 4], [2, 5], [2, 6], [2, 7]])
    assert conditioning.advance(given, prefix, memory).tolist() == [[0, 4], [0, 5], [1, 6], [1, 7]]
    memory.reorder(torch.tensor([1, 1, 3, 2]))
    longer = torch.tensor([[2, 5, 8], [2, 5, 4], [2, 7, 8], [2, 6, 4]])
    assert conditioning.given_search(Telling(), None, hypotheses, memory) is given
    state = conditioning.advance(given, longer, memory)
    assert state.tolist() == [[0, 5, 8], [0, 5, 4], [1, 7, 8], [1, 6, 4]]
    background, last = conditioning.last_step(memory)
    assert background is given.background and last is state


def test_a_search_without_sources_has_one_background_for_all() -> None:
    memory, background = SearchMemory(FairseqIncrementalDecoder(Dictionary()), {}), Telling()
    given = conditioning.given_search(background, None, None, memory)
    assert given.background is background
    assert conditioning.advance(given, torch.tensor([[2], [2]]), memory).tolist() == [[0], [1]]


def test_a_limit_counts_what_was_written() -> None:
    memory, background = SearchMemory(FairseqIncrementalDecoder(Dictionary()), {}), Telling()
    assert conditioning.limited(background, torch.tensor([[2]]), memory) is background
    conditioning.limit(5, memory)
    for written, left in ((0, 5), (3, 2)):
        limited = conditioning.limited(background, torch.full((2, 1 + written), 2), memory)
        assert isinstance(limited, Telling) and limited.told == (("within", left),)
