"""llrnn_encoder_decoder, llrnn_rctm and named architectures: train, search, rescore, explain, by command; resume."""

from pathlib import Path

import pytest
from fairseq.dataclass.configs import GenerationConfig
from shell import Shell
from tiny_world import EVERY_SENTENCE, build
from translation_world import TranslationWorld, assert_resumed_is_never_stopped

from fairseq_llrnn.errors import OptionError

MODELS: dict[str, tuple[str, str, list[str]]] = {
    "encoder-decoder": ("lexical", "llrnn_encoder_decoder", ["--dropout", "0.1"]),
    "RCTM I": ("lexical", "llrnn_rctm", ["--dropout", "0.1"]),
    "RCTM II": ("prior", "llrnn_rctm", ["--source-model", "cgm", "--cell", "gru"]),
    "rnnsearch": ("prior", "llrnn_rnnsearch", []),
}


@pytest.mark.parametrize("name", MODELS)
def test_train_search_score_and_explain(
    name: str, shell: Shell, translation: TranslationWorld, tmp_path: Path
) -> None:
    """One of them also with a stop; what states a resumed network has is no question of its kind."""
    prior, arch, options = MODELS[name]
    if name == "RCTM I":
        checkpoint = assert_resumed_is_never_stopped(shell, translation, tmp_path, options, prior, arch)
    else:
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
        with pytest.raises(OptionError, match="^--print-alignment: expected a model with attention on a source, found"):
            setting.task.build_generator(*asked)
