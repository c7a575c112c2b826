"""Softmax is the special case φ = one-hot, b = uniform: fairseq's own cross_entropy agrees, to float precision."""


import pytest
import torch
from tiny_world import Setting, World, batch, randomised

LINES = ["le chat voit la mer", "une pomme verte tient bien", "le roi", "la tour froide rend un petit pont"]


@pytest.fixture(scope="module")
def softmax(world: World) -> Setting:
    """A log-linear model over the prior that `llrnn prior --softmax` made."""
    return randomised(world.train_args("softmax"))


def host_criterion(setting: Setting) -> torch.nn.Module:
    from fairseq.criterions.cross_entropy import CrossEntropyCriterion

    return CrossEntropyCriterion(setting.task, sentence_avg=False)


def gradients(model: torch.nn.Module, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("prior", ["softmax", "prior", "separate"])
def test_fairseqs_criterion_gives_our_loss_and_gradients(world: World, prior: str) -> None:
    """Any log-linear model is a distribution over words: cross_entropy over its V log-probabilities is our loss."""
    setting = randomised(world.train_args(prior))
    sample = batch(setting.task.dictionary, LINES)
    ours, our_size, _ = setting.criterion(setting.model, sample)
    theirs, their_size, _ = host_criterion(setting)(setting.model, sample)
    assert our_size == their_size == sample["ntokens"]
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-5)
    expected = gradients(setting.model, theirs)
    found = gradients(setting.model, ours)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=2e-5, msg=lambda m, n=name: f"{n}: {m}")


def test_the_stock_lstm_with_the_same_weights_gives_our_loss_and_gradients(softmax: Setting) -> None:
    from fairseq.models.lstm import LSTMDecoder
    from fairseq.models.lstm_lm import LSTMLanguageModel

    dictionary, ours = softmax.task.dictionary, softmax.model.decoder
    stock = LSTMLanguageModel(
        LSTMDecoder(
            dictionary, embed_dim=16, hidden_size=16, out_embed_dim=16, num_layers=2, dropout_in=0.0, dropout_out=0.0,
            attention=False, encoder_output_units=0,
        )
    )  # fmt: skip
    decoder = stock.decoder
    # row v of fairseq's matrices is the row of the one feature of word v in ours
    feature = ours.head.output.rows.indices[ours.head.output.class_of]
    read = ours.head.embedding.rows.indices[ours.head.embedding.class_of]
    forbidden = torch.isneginf(ours.head.background.word_log_weight)  # as no next word here can be
    assert {dictionary[i] for i in forbidden.nonzero().flatten()} == {"<s>", "<pad>", "madeupword0000"}
    with torch.no_grad():
        decoder.embed_tokens.weight.copy_(ours.head.embedding.weight[read])
        decoder.fc_out.weight.copy_(ours.head.output.weight[feature])
        decoder.fc_out.bias.copy_(ours.head.output.bias[feature].masked_fill(forbidden, float("-inf")))
        for cell, layer in zip(decoder.layers, ours.network.layers, strict=True):
            for name, parameter in cell.named_parameters():
                parameter.copy_(getattr(layer, f"{name}_l0"))
    sample = batch(dictionary, LINES)
    our_loss, _, _ = softmax.criterion(softmax.model, sample)
    their_loss, _, _ = host_criterion(softmax)(stock, sample)
    torch.testing.assert_close(our_loss, their_loss, rtol=1e-6, atol=1e-5)

    found, expected = gradients(softmax.model, our_loss), gradients(stock, their_loss)
    pairs = {
        "decoder.fc_out.weight": found["decoder.head.output.weight"][feature],
        "decoder.fc_out.bias": found["decoder.head.output.bias"][feature],
        "decoder.embed_tokens.weight": found["decoder.head.embedding.weight"][read],
    }
    for i in range(2):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            pairs[f"decoder.layers.{i}.{name}"] = found[f"decoder.network.layers.{i}.{name}_l0"]
    assert pairs.keys() == expected.keys()
    for name, gradient in pairs.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=2e-5, msg=lambda m, n=name: f"{n}: {m}")
