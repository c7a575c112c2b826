"""The recurrent encoder: padding changes nothing, directions and reversal are what torch's own LSTM says."""

import pytest
import torch

from fairseq_llrnn.networks.recurrent import RecurrentEncoder, flip_valid, roll_rows

PAD, WORDS, WIDTH, HIDDEN = 1, 20, 5, 4
SENTENCES = [[5, 6, 7, 2], [8, 2], [9, 10, 11, 12, 13, 2]]


def padded(left: bool, extra: int = 0) -> torch.Tensor:
    size = max(map(len, SENTENCES)) + extra
    rows = [[PAD] * (size - len(s)) + s if left else s + [PAD] * (size - len(s)) for s in SENTENCES]
    return torch.tensor(rows)


def encoder(**options: object) -> RecurrentEncoder:
    torch.manual_seed(0)
    return RecurrentEncoder(WORDS, PAD, WIDTH, HIDDEN, 2, **options).double().eval()


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_each_sentence_is_read_as_if_alone(cell: str, bidirectional: bool, reverse: bool) -> None:
    model = encoder(cell=cell, bidirectional=bidirectional, reverse=reverse)
    for tokens in (padded(left=True), padded(left=False), padded(left=True, extra=3)):
        states, summary = model(tokens)
        assert (states[tokens == PAD] == 0).all()
        for i, sentence in enumerate(SENTENCES):
            alone, its_summary = model(torch.tensor([sentence]))
            torch.testing.assert_close(states[i][tokens[i] != PAD], alone[0])
            torch.testing.assert_close(summary[i], its_summary[0])


@pytest.mark.parametrize("reverse", [False, True])
def test_one_sentence_equals_torchs_bidirectional_lstm(reverse: bool) -> None:
    """With reversal the two directions change places."""
    torch.manual_seed(0)
    model = RecurrentEncoder(WORDS, PAD, WIDTH, HIDDEN, 1, reverse=reverse).double().eval()
    torchs = torch.nn.LSTM(WIDTH, HIDDEN, batch_first=True, bidirectional=True).double()
    first, second = model.layers[0]
    for name, value in first.named_parameters():
        getattr(torchs, name + ("_reverse" if reverse else "")).data.copy_(value)
    for name, value in second.named_parameters():
        getattr(torchs, name + ("" if reverse else "_reverse")).data.copy_(value)
    tokens = torch.tensor([SENTENCES[0]])
    expected, (last, _) = torchs(model.embedding(tokens))
    states, summary = model(tokens)
    parts = expected.split(HIDDEN, dim=-1)
    torch.testing.assert_close(states, torch.cat(parts[::-1] if reverse else parts, dim=-1))
    torch.testing.assert_close(summary[0], torch.cat([last[1], last[0]] if reverse else [last[0], last[1]], dim=-1)[0])


def test_flipping_and_rolling() -> None:
    x = torch.tensor([[1, 2, 3, 0, 0], [4, 5, 6, 7, 8]])
    assert flip_valid(x, torch.tensor([3, 5])).tolist() == [[3, 2, 1, 0, 0], [8, 7, 6, 5, 4]]
    assert roll_rows(x, torch.tensor([2, -1])).tolist() == [[0, 0, 1, 2, 3], [5, 6, 7, 8, 4]]


def test_dropout_only_in_training() -> None:
    model = encoder(dropout_in=0.5, dropout_between=0.5, dropout_out=0.5)
    tokens = padded(left=True)
    assert torch.equal(model(tokens)[0], model(tokens)[0])
    model.train()
    assert not torch.equal(model(tokens)[0], model(tokens)[0])
