"""Vectors of texts are those of each text alone, whatever it is padded with."""

import pytest
import torch
from torch import nn

from fairseq_llrnn.networks.recurrent import RecurrentEncoder
from fairseq_llrnn.systems.classification.plugin.label_decoder import POOLINGS, BagOfWords, PooledStates

PAD = 1
TEXTS = [[4, 5, 6, 2], [7, 2], [2]]


def padded() -> torch.Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(text) for text in TEXTS], batch_first=True, padding_value=PAD)


class OtherTable(nn.Module):
    """Not torch's table, so that the other path is taken."""

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        self.table = table

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.table(tokens)


def test_a_bag_is_the_mean_of_its_words() -> None:
    torch.manual_seed(1)
    bag = BagOfWords(9, PAD, 5).double()
    found = bag(padded())
    expected = torch.stack([bag.embedding.weight[torch.tensor(text)].mean(0) for text in TEXTS])
    torch.testing.assert_close(found, expected)
    other = BagOfWords(9, PAD, 5, embedding=OtherTable(bag.embedding)).double()
    torch.testing.assert_close(other(padded()), expected)
    weight = torch.randn_like(found)
    grads = [torch.autograd.grad((x * weight).sum(), bag.embedding.weight)[0] for x in (found, other(padded()))]
    torch.testing.assert_close(*grads)
    assert not grads[0][PAD].any()
    bag.sparse_gradients = True
    (sparse,) = torch.autograd.grad((bag(padded()) * weight).sum(), bag.embedding.weight)
    assert sparse.is_sparse
    torch.testing.assert_close(sparse.to_dense(), grads[0])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_pooled_states(pooling: str) -> None:
    torch.manual_seed(1)
    encoder = RecurrentEncoder(9, PAD, 5, 4, 2).double()
    network = PooledStates(encoder, pooling)
    together = network(padded())
    assert together.shape == (3, 8) == (3, network.output_size)
    for row, text in zip(together, TEXTS, strict=True):
        states, last = encoder(torch.tensor([text]))
        alone = {"max": states.amax(1), "mean": states.mean(1), "last": last}[pooling]
        torch.testing.assert_close(row, alone[0])
