"""llrnn_lstm and llrnn_transformer: search equals the whole sequence, the softmax case, options that are refused."""


import pytest
import torch
from dynamic_prior import LINES
from model_checks import assert_architecture, assert_sums_over_words_and_trains
from tiny_world import Setting, build, evaluated
from translation_world import TranslationWorld, assert_steps_agree, pairs

from fairseq_llrnn.errors import OptionError

VARIANTS: dict[str, list[str]] = {
    "lstm": ["llrnn_lstm"],
    "gru": ["llrnn_lstm", "--cell", "gru", "--encoder-bidirectional", "--attention", "dot", "--layer-norm"],
    "additive": ["llrnn_lstm", "--attention", "additive", "--reverse-source", "--encoder-layers", "2"],
    "Sutskever": ["llrnn_lstm", "--attention", "none", "--reverse-source"],
    "tied": ["llrnn_lstm", "--decoder-embed-dim", "16", "--tie-features"],
    "Elman": ["llrnn_lstm", "--cell", "rnn", "--encoder-bidirectional"],
    "Cho": ["llrnn_lstm", "--attention", "none", "--cell", "gru", "--context-every-step"],
    "transformer": ["llrnn_transformer"],
    "transformer over features": ["llrnn_transformer", "--feature-input", "--tie-features"],
    "pre-norm transformer": ["llrnn_transformer", "--decoder-normalize-before", "--decoder-output-dim", "12"],
}
PRIORS = {"additive": "lexical", "transformer over features": "lexical"}  # the others: `prior`


def make(translation: TranslationWorld, variant: list[str], prior: str = "prior") -> Setting:
    arch, *options = variant
    return evaluated([*translation.train_args(arch, prior), *options], scale=0.3)


@pytest.mark.parametrize("name", VARIANTS)
def test_steps_in_any_order_of_hypotheses_equal_the_whole_sequence(translation: TranslationWorld, name: str) -> None:
    """Incremental decoding, reordered (duplicated, dropped) after every step, agrees with the full forward pass."""
    setting = make(translation, VARIANTS[name], PRIORS.get(name, "prior"))
    assert_steps_agree(setting, pairs(setting.task, LINES))


@pytest.mark.parametrize("name", VARIANTS)
def test_the_criterion_is_the_sum_over_words_and_trains_everything(translation: TranslationWorld, name: str) -> None:
    setting = make(translation, VARIANTS[name], PRIORS.get(name, "prior"))
    assert_sums_over_words_and_trains(setting, pairs(setting.task, LINES))


def test_fairseqs_transformer_is_the_special_case(translation: TranslationWorld) -> None:
    """φ one-hot, b uniform: the stock Transformer with our rows as its output matrix gives our loss and gradients."""
    setting = make(translation, ["llrnn_transformer"], prior="softmax")
    arguments = translation.train_args("llrnn_transformer", "softmax")
    arguments[arguments.index("--arch") + 1] = "transformer"
    stock = build([*arguments, "--criterion", "cross_entropy"]).model.eval()
    ours = setting.model
    output = ours.decoder.head.output
    word_rows = output.composed()[0][output.class_of].detach()
    with torch.no_grad():
        output.bias.zero_()
        stock.encoder.load_state_dict(ours.encoder.state_dict())
        stock.decoder.load_state_dict(ours.decoder.body.state_dict(), strict=False)
        stock.decoder.output_projection.weight.copy_(word_rows)
        # fairseq's softmax also normalises over <s> and <pad>, which ours forbids
        forbid = torch.isneginf(ours.decoder.head.background.view(ours.decoder.head.background.start(1)).log_weights)[0]
    sample = pairs(setting.task, LINES)
    loss, _, _ = setting.criterion(ours, sample)
    whole = stock(**sample["net_input"])[0].masked_fill(forbid, float("-inf")).log_softmax(-1)
    target = sample["target"]
    expected = -whole.gather(2, target.unsqueeze(2)).squeeze(2)[target.ne(1)].sum()
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-4)
    loss.backward()
    expected.backward()
    for name, parameter in stock.encoder.named_parameters():
        torch.testing.assert_close(ours.encoder.get_parameter(name).grad, parameter.grad, rtol=1e-3, atol=1e-4)
    for name, parameter in ours.decoder.body.named_parameters():
        torch.testing.assert_close(parameter.grad, stock.decoder.get_parameter(name).grad, rtol=1e-3, atol=1e-4)


REFUSED: dict[str, tuple[list[str], str]] = {
    "embedding as output": (["llrnn_transformer", "--share-decoder-input-output-embed"], "--tie-features with"),
    "one table": (["llrnn_transformer", "--share-all-embeddings"], "--share-all-embeddings: not supported"),
    "adaptive softmax": (["llrnn_transformer", "--adaptive-softmax-cutoff", "5,10"], "replaces the softmax"),
    "tying what is not read": (["llrnn_transformer", "--tie-features"], "needs --feature-input"),
    "tying other widths": (
        ["llrnn_transformer", "--tie-features", "--feature-input", "--decoder-output-dim", "12"], "found 16 and 12",
    ),
    "a table and features": (
        ["llrnn_transformer", "--feature-input", "--decoder-embed-path", "x"], "remove --decoder-embed-path or",
    ),
    "dot of other widths": (["llrnn_lstm", "--attention", "dot"], "needs --decoder-hidden-size 8"),
    "heads": (["llrnn_transformer", "--decoder-embed-dim", "15"], "multiple of --decoder-attention-heads 2"),
    "a width": (["llrnn_transformer", "--encoder-embed-dim", "-4"], "--encoder-embed-dim -4: expected a number of at"),
    "a probability": (["llrnn_transformer", "--dropout", "1.5"], "--dropout 1.5: expected a probability"),
    "joint tables": (["llrnn_transformer", "--merge-src-tgt-embed"], "--joined-dictionary"),
    "some layers": (["llrnn_transformer", "--decoder-layers-to-keep", "1"], "with fewer --decoder-layers"),
    "tied rows": (["llrnn_transformer", "--tie-adaptive-weights"], "--tie-adaptive-weights: not supported"),
    "tied projections": (["llrnn_transformer", "--tie-adaptive-proj"], "--tie-adaptive-proj: not supported"),
    "zeros that are read": (
        ["llrnn_lstm", "--decoder-embed-dim", "16", "--tie-features", "--start-at-background"], "remove one of them",
    ),
    "no layers": (["llrnn_lstm", "--encoder-layers", "0"], "--encoder-layers 0: expected a number of at least 1"),
}  # fmt: skip


@pytest.mark.parametrize("width", [16, 256])
@pytest.mark.parametrize("options", [[], ["--feature-input"], ["--feature-input", "--tie-features"]])
def test_a_transformer_starts_with_scores_of_standard_deviation_1(
    translation: TranslationWorld, options: list[str], width: int
) -> None:
    widths = ["--encoder-embed-dim", str(width), "--decoder-embed-dim", str(width), "--decoder-output-dim", str(width)]
    setting = build([*translation.train_args("llrnn_transformer"), *widths, *options])
    decoder, sample = setting.model.eval().decoder, pairs(setting.task, LINES)
    with torch.no_grad():
        hidden, _ = setting.model(**sample["net_input"])
        torch.testing.assert_close(hidden.var(-1, correction=0), torch.ones(hidden.shape[:2]), rtol=1e-3, atol=0)
        states = torch.nn.functional.layer_norm(torch.randn(200, width), (width,))
        assert 0.7 < float(decoder.head.output.class_scores(states).std()) < 1.4
        read = decoder.body.embed_scale * decoder.body.embed_tokens(torch.arange(4, len(decoder.dictionary)))
        assert 0.7 < float(read.square().mean().sqrt()) < 1.4


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_are_refused(translation: TranslationWorld, name: str) -> None:
    variant, message = REFUSED[name]
    with pytest.raises(OptionError) as error:
        make(translation, variant)
    assert message in str(error.value)


def test_tying_needs_the_same_features(translation: TranslationWorld) -> None:
    with pytest.raises(OptionError, match="input_features"):
        make(translation, ["llrnn_transformer", "--tie-features", "--feature-input"], prior="separate")


@pytest.mark.parametrize(
    "arch, option, value, layers",
    [
        ("llrnn_lstm_multi30k", "dropout", 0.4, 1),
        ("llrnn_lstm_iwslt", "dropout", 0.3, 2),
        ("llrnn_transformer_multi30k", "encoder_embed_dim", 128, 4),
        ("llrnn_transformer_iwslt", "encoder_embed_dim", 512, 6),
    ],
)
def test_named_architectures(
    translation: TranslationWorld, arch: str, option: str, value: float | str, layers: int
) -> None:
    assert_architecture(translation, arch, option, value, layers)
