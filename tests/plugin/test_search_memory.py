"""What a decoder remembers of a search: made once, reordered where it has a row for each hypothesis."""

import torch
from fairseq.data import Dictionary
from small_priors import make_prior

from fairseq_llrnn.head import FeatureInput, LogLinearHead
from fairseq_llrnn.plugin.models.log_linear_decoder import IncrementalState, LogLinearDecoder


def decoder() -> LogLinearDecoder:
    return LogLinearDecoder(Dictionary(), LogLinearHead(make_prior(), 3, embedding=FeatureInput(2)))


def test_what_is_remembered_is_of_one_search_and_the_decoder_s_own() -> None:
    mine, other = decoder(), decoder()
    search: IncrementalState = {}
    rows = mine.input_rows(search)
    assert rows is not None and mine.input_rows(search) is rows
    assert mine.input_rows({}) is not rows and other.input_rows(search) is not rows
    assert mine.search(search) is mine.search(search) is not other.search(search)


def test_states_follow_their_hypotheses_and_nothing_else_does() -> None:
    mine, incremental = decoder(), IncrementalState()
    search, rows = mine.search(incremental), mine.input_rows(incremental)
    search.network = torch.tensor([[10], [11], [12]])
    search.state = mine.head.start(3, pinned=range(4))
    mine.reorder_incremental_state(incremental, torch.tensor([2, 0, 0, 1]))
    assert search.network.flatten().tolist() == [12, 10, 10, 11]
    assert len(search.state.states) == 4 and search.state.pinned is not None and search.state.pinned.shares is not None
    assert search.state.pinned.shares[0].shape == (4, 4)
    assert search.input_rows is rows
