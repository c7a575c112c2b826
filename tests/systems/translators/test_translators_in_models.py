"""Architectures of the system as models: what is asked of all models, priors of the source, refused options."""

from pathlib import Path

import pytest
from dynamic_prior import LINES
from evidence_world import EvidenceWorld
from model_checks import (
    assert_architecture,
    assert_bfloat16_products_are_close,
    assert_reads_the_sum_of_features,
    assert_sums_over_words_and_slots_and_trains,
    assert_sums_over_words_and_trains,
)
from tiny_world import build, evaluated
from translation_world import TranslationWorld, assert_steps_agree, pairs

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.prior.prior import Prior

DEEP = ["--encoder-layers", "2", "--decoder-layers", "2", "--decoder-output-dim", "12", "--tie-features"]
VARIANTS: dict[str, tuple[str, list[str]]] = {
    "seq2seq": ("prior", ["llrnn_seq2seq"]),
    "rnnsearch": ("prior", ["llrnn_rnnsearch"]),
    "encoder-decoder": ("lexical", ["llrnn_encoder_decoder"]),
    "deep encoder-decoder": ("prior", ["llrnn_encoder_decoder", *DEEP]),
    "RCTM I": ("prior", ["llrnn_rctm"]),
    "RCTM II": ("prior", ["llrnn_rctm", "--source-model", "cgm", "--cgm-layers", "1"]),
    "RCTM over a tree": ("prior", ["llrnn_rctm", "--output-tree", "huffman"]),
    "deep RCTM": ("prior", ["llrnn_rctm", "--source-model", "cgm", "--cell", "lstm", "--decoder-layers", "2"]),
}
WITH_EVIDENCE: dict[str, tuple[str, list[str]]] = {
    "encoder-decoder": ("lexical", ["llrnn_encoder_decoder"]),
    "RCTM I": ("lexical", ["llrnn_rctm"]),
    "RCTM II": ("static", ["llrnn_rctm", "--source-model", "cgm"]),
}
REFUSED: dict[str, tuple[list[str], str]] = {
    "layers of no n-grams": (["llrnn_rctm", "--cgm-layers", "2"], "expected --source-model cgm, found csm"),
    "no layers of n-grams": (["llrnn_rctm", "--source-model", "cgm", "--cgm-layers", "0"], "expected a number from 1"),
    "no units": (["llrnn_encoder_decoder", "--maxout-units", "0"], "--maxout-units 0: expected a number of at least 1"),
    "no width": (["llrnn_encoder_decoder", "--decoder-output-dim", "-1"], "--decoder-output-dim -1: expected a number"),
    "tying beside a thin output": (
        ["llrnn_encoder_decoder", "--tie-features"],
        "expected equal --decoder-embed-dim and --decoder-output-dim, found 12 and 10",
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_search_equals_the_whole_and_the_criterion_is_the_sum(translation: TranslationWorld, name: str) -> None:
    prior, (arch, *options) = VARIANTS[name]
    setting = evaluated([*translation.train_args(arch, prior), *options], scale=0.3)
    assert_steps_agree(setting, pairs(setting.task, LINES))
    assert_sums_over_words_and_trains(setting, pairs(setting.task, LINES))


@pytest.mark.parametrize("name", WITH_EVIDENCE)
def test_with_evidence(evidence: EvidenceWorld, name: str) -> None:
    prior, (arch, *options) = WITH_EVIDENCE[name]
    assert_sums_over_words_and_slots_and_trains(evidence, arch, prior, *options)


@pytest.mark.parametrize("arch", ["llrnn_encoder_decoder", "llrnn_rctm"])
def test_the_encoder_reads_the_sum_of_a_words_features(
    translation: TranslationWorld, source_prior: Path, arch: str
) -> None:
    args = [*translation.train_args(arch), "--source-prior", str(source_prior)]
    assert_reads_the_sum_of_features(args, Prior.load(source_prior))


@pytest.mark.parametrize(
    "variant", [["llrnn_encoder_decoder"], ["llrnn_rctm", "--source-characters", "cnn"]]  # vectors that are products
)
def test_bfloat16_products_are_close(translation: TranslationWorld, variant: list[str]) -> None:
    arch, *options = variant
    assert_bfloat16_products_are_close([*translation.train_args(arch), *options])


@pytest.mark.parametrize(
    "arch, option, value, layers",
    [
        ("llrnn_seq2seq", "attention", "none", 4),
        ("llrnn_seq2seq", "encoder_layers", 4, 4),
        ("llrnn_rnnsearch", "cell", "gru", 1),
    ],
)
def test_named_architectures(
    translation: TranslationWorld, arch: str, option: str, value: float | str, layers: int
) -> None:
    assert_architecture(translation, arch, option, value, layers)


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_are_refused(translation: TranslationWorld, name: str) -> None:
    (arch, *options), message = REFUSED[name]
    with pytest.raises(OptionError) as error:
        build([*translation.train_args(arch), *options])
    assert message in str(error.value)
