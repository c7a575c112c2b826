"""A search's memory: made once, reordered where it has a row for each hypothesis; nothing where there is no search."""

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from small_priors import make_prior

from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.plugin.models.log_linear_decoder import HEAD, NETWORK, IncrementalState, SearchMemory


def test_what_is_kept_is_made_once_a_search_and_is_the_decoder_s_own() -> None:
    decoder, other = (FairseqIncrementalDecoder(Dictionary()) for _ in range(2))
    search: IncrementalState = {}
    assert SearchMemory(decoder, search).keep("rows", lambda: 1) == 1
    assert SearchMemory(decoder, search).keep("rows", lambda: 2) == 1
    assert SearchMemory(decoder, {}).keep("rows", lambda: 2) == 2
    assert SearchMemory(other, search).keep("rows", lambda: 3) == 3
    assert SearchMemory(decoder, search).get("others") is None


def test_without_a_search_nothing_is_remembered() -> None:
    memory = SearchMemory(FairseqIncrementalDecoder(Dictionary()), None)
    assert [memory.keep("rows", lambda i=i: i) for i in (1, 2)] == [1, 2]
    memory.set(NETWORK, torch.zeros(1))
    assert memory.get(NETWORK) is None


def test_states_follow_their_hypotheses_and_nothing_else_does() -> None:
    memory = SearchMemory(FairseqIncrementalDecoder(Dictionary()), {})
    states = torch.tensor([[10], [11], [12]])
    head = LogLinearHead(make_prior(), 3)
    for name in (NETWORK, "rows"):
        memory.set(name, states)
    start = head.start(3, pinned=range(4))
    memory.set(HEAD, start)
    memory.reorder(torch.tensor([2, 0, 0, 1]))
    assert memory.get(NETWORK).flatten().tolist() == [12, 10, 10, 11]
    assert len(memory.get(HEAD).states) == 4 and memory.get(HEAD).pinned.shares[0].shape == (4, 4)
    assert memory.get("rows") is states
