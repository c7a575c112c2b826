"""Architectures of the system as models: what is asked of all models, priors of the source, refused options."""

from pathlib import Path

import pytest
from dynamic_prior import LINES
from evidence_world import EvidenceWorld
from fairseq.dataclass.configs import GenerationConfig
from model_checks import (
    assert_architecture,
    assert_bfloat16_products_are_close,
    assert_reads_the_sum_of_features,
    assert_sums_over_words_and_slots_and_trains,
    assert_sums_over_words_and_trains,
)
from shell import Shell
from tiny_world import EVERY_SENTENCE, build, evaluated
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
    "layers of no n-grams": (["llrnn_rctm", "--cgm-layers", "2"], "it needs --source-model cgm, found csm"),
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


# llrnn_encoder_decoder, llrnn_rctm and named architectures: train, search, rescore, explain, by command
MODELS: dict[str, tuple[str, str, list[str]]] = {
    "encoder-decoder": ("lexical", "llrnn_encoder_decoder", ["--dropout", "0.1"]),
    "RCTM I": ("lexical", "llrnn_rctm", ["--dropout", "0.1"]),
    "RCTM II": ("prior", "llrnn_rctm", ["--source-model", "cgm", "--cell", "gru"]),
    "rnnsearch": ("prior", "llrnn_rnnsearch", []),
}


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("encoder-decoder", "RCTM II", "rnnsearch")]


@pytest.mark.parametrize("name", ["RCTM I", *SLOW])
def test_train_search_score_and_explain(
    name: str, shell: Shell, translation: TranslationWorld, tmp_path: Path
) -> None:
    prior, arch, options = MODELS[name]
    shell.run("fairseq-train", *translation.train_args(arch, prior, tmp_path), *options, "--max-epoch", 1)
    checkpoint = tmp_path / "checkpoint_last.pt"
    common = [*translation.task_args(prior), "--path", checkpoint, "--gen-subset", "test", "--max-len-b", 12]
    found = shell.run("fairseq-generate", *common, "--beam", 3, "--nbest", 3, "--num-workers", 0, *EVERY_SENTENCE)
    (tmp_path / "nbest").write_text(found.out, encoding="utf-8")
    sides = {side: translation.place / f"test.{side}" for side in ("src", "tgt")}
    rescored = shell.run(
        "llrnn", "rescore", "--path", checkpoint, "--source", sides["src"], "--nbest", tmp_path / "nbest",
        "--reference", sides["tgt"], "--out", tmp_path / "best",
    )  # fmt: skip
    assert "BLEU" in rescored.out + rescored.err
    lines = (tmp_path / "best").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(translation.source("test"))
    explained = shell.run("llrnn", "explain", "--path", checkpoint, "--source", translation.source("test")[0])
    assert "</s>" in explained.out


@pytest.mark.parametrize("arch", ["llrnn_seq2seq", "llrnn_encoder_decoder", "llrnn_rctm", "llrnn_rnnsearch"])
def test_alignments_need_attention(arch: str, translation: TranslationWorld) -> None:
    setting = build(translation.train_args(arch))
    asked = [setting.model], GenerationConfig(print_alignment="soft")
    if arch == "llrnn_rnnsearch":
        setting.task.build_generator(*asked)
    else:
        with pytest.raises(OptionError, match="^--print-alignment needs a model with attention on a source"):
            setting.task.build_generator(*asked)
