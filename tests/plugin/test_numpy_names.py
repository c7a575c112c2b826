"""compat/numpy_names.py: fairseq's modules find names that numpy has removed, and numpy is unchanged."""

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset, TokenBlockDataset, token_block_dataset
from fairseq.modules import DynamicCRF

import fairseq_llrnn.plugin  # noqa: F401


def test_numpy_is_unchanged() -> None:
    assert not hasattr(np, "float")
    assert token_block_dataset.np.arange is np.arange
    with pytest.raises(AttributeError, match="module 'numpy' has no attribute 'lost'"):
        token_block_dataset.np.lost  # noqa: B018


def test_sentences_as_blocks() -> None:
    lines = [torch.tensor([4, 5, 2]), torch.tensor([6, 2])]
    blocks = TokenBlockDataset(lines, [3, 2], block_size=None, pad=1, eos=2, break_mode="eos")
    assert [block.tolist() for block in blocks] == [[4, 5, 2], [6, 2]]


def test_buckets_of_lengths() -> None:
    words = Dictionary()
    lines, sizes = [torch.tensor([4, 5, 2]), torch.tensor([6, 2])], np.array([3, 2])
    pairs = LanguagePairDataset(lines, sizes, words, lines, sizes, words, num_buckets=2)
    assert sorted(pairs.bucketed_num_tokens) == [2, 3]


def test_conditional_random_field() -> None:
    field = DynamicCRF(num_embedding=7, low_rank=2, beam_size=3)
    emissions, targets = torch.randn(2, 4, 7), torch.randint(7, (2, 4))
    assert torch.isfinite(field(emissions, targets, torch.ones(2, 4, dtype=torch.bool))).all()
