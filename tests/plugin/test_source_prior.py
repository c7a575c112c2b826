"""--source-prior: the encoder reads the source's words by their features. From the formula to every command."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from dynamic_prior import LINES
from model_checks import assert_reads_the_sum_of_features
from shell import Shell, assert_says
from small_corpus import Llrnn
from tiny_world import EVERY_SENTENCE, build, evaluated, read_checkpoint
from translation_world import TranslationWorld, assert_resumed_is_never_stopped, assert_steps_agree, pairs

from fairseq_llrnn import SourceEmbedding
from fairseq_llrnn.errors import LLRNNError, OptionError
from fairseq_llrnn.plugin.compat.loading import Places, take_places
from fairseq_llrnn.plugin.compat.loading import read_checkpoint as read_safely
from fairseq_llrnn.plugin.compat.moved_folders import fingerprint_in
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.registry import lost
from fairseq_llrnn.source_embedding import FINGERPRINT

ARCHITECTURES = {"llrnn_lstm": ["--encoder-bidirectional"], "llrnn_transformer": ["--lr", "0.003"]}


@pytest.fixture(scope="module")
def trained(shell: Shell, translation: TranslationWorld, source_prior: Path) -> Path:
    """A checkpoint, after four epochs that lowered the loss."""
    place = translation.place / "llrnn_lstm-with-source-prior"
    options = [*ARCHITECTURES["llrnn_lstm"], "--source-prior", source_prior]
    training = shell.run("fairseq-train", *translation.train_args(save_dir=place), *options, "--max-epoch", 4)
    losses = [row["train_loss"] for row in training.json_lines("train")]
    assert losses == sorted(losses, reverse=True) and losses[0] - losses[-1] > 0.3
    assert "the encoder reads" in training.err + training.out
    return place / "checkpoint_last.pt"


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_encoder_reads_the_sum_of_a_words_features(
    translation: TranslationWorld, source_prior: Path, arch: str
) -> None:
    args = [*translation.train_args(arch), *ARCHITECTURES[arch], "--source-prior", str(source_prior)]
    assert_reads_the_sum_of_features(args, Prior.load(source_prior))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_searches_equal_the_whole_sequence_and_all_weights_train(
    translation: TranslationWorld, source_prior: Path, arch: str
) -> None:
    more = [*ARCHITECTURES[arch], "--source-prior", str(source_prior)]
    setting = evaluated([*translation.train_args(arch), *more], scale=0.3)
    sample = pairs(setting.task, LINES)
    assert_steps_agree(setting, sample)
    loss, _, _ = setting.criterion(setting.model, sample)
    loss.backward()
    (gradient,) = (p.grad for name, p in setting.model.named_parameters() if name.endswith("features.weight"))
    assert gradient.abs().sum() > 0


def test_in_python(source_prior: Path) -> None:
    read = SourceEmbedding(Prior.load(source_prior), 7)
    tokens = read.encode(["el niavuo", "el"])
    vectors = read(tokens)
    assert vectors.shape == (2, 3, 7) and not vectors[1, 2].any()
    other = SourceEmbedding(Prior.load(source_prior), 7)
    other.load_state_dict(read.state_dict())
    assert torch.equal(other(tokens), vectors)


def test_a_resumed_training_is_one_never_stopped(
    shell: Shell, translation: TranslationWorld, source_prior: Path, tmp_path: Path
) -> None:
    checkpoint = assert_resumed_is_never_stopped(shell, translation, tmp_path, ["--source-prior", str(source_prior)])
    assert fingerprint_in(read_checkpoint(checkpoint), "it", FINGERPRINT) == Prior.load(source_prior).fingerprint


def test_commands_need_only_the_checkpoint(
    shell: Shell, as_typed: Llrnn, translation: TranslationWorld, trained: Path, source_prior: Path, tmp_path: Path
) -> None:
    common = [*translation.task_args(), "--path", trained, "--num-workers", 0]
    lines = translation.source("test")
    whole = [*common, "--gen-subset", "test", "--max-tokens", 400, "--max-len-b", 12, *EVERY_SENTENCE]
    found = shell.run("fairseq-generate", *whole).out
    assert found.count("H-") == len(lines)
    named = shell.run("fairseq-generate", *whole, "--source-prior", source_prior).out
    assert [line for line in named.splitlines() if line.startswith("H-")] == [
        line for line in found.splitlines() if line.startswith("H-")
    ]
    typed = shell.run("fairseq-interactive", *common, "--max-len-b", 12, stdin=f"{lines[0]}\nzzz el\n")
    assert "H-0\t" in typed.out and "H-1\t" in typed.out
    checked = shell.run("fairseq-validate", *common, "--max-tokens", 400, "--log-format", "json", *EVERY_SENTENCE)
    assert checked.json_lines("valid")[-1]["valid_loss"] > 0
    target = translation.world.text("test")[0]
    explain = ["explain", "--path", trained, "--source", lines[0], target]
    assert as_typed(*explain).out == as_typed(*explain, "--source-prior", source_prior).out != ""
    if not lost("--neighbours"):
        near = ["show", "--neighbours", target.split()[0], "--path", trained]
        assert as_typed(*near).out == as_typed(*near, "--source-prior", source_prior).out != ""
    nbest = tmp_path / "nbest"
    nbest.write_text(f"0 ||| {target} ||| lm= -1 ||| -1\n", encoding="utf-8")
    sources = tmp_path / "sources"
    sources.write_text(lines[0] + "\n", encoding="utf-8")
    best = tmp_path / "best"
    as_typed("rescore", "--path", trained, "--source", sources, "--nbest", nbest, "--out", best)
    assert best.read_text(encoding="utf-8").strip() == target


def test_a_moved_source_prior_is_found_again(
    translation: TranslationWorld, trained: Path, source_prior: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    shutil.copytree(source_prior, tmp_path / "project" / "of-the-source")
    (tmp_path / "project" / "checkpoints").mkdir()
    path = shutil.copy(trained, tmp_path / "project" / "checkpoints")
    state = read_safely(path)
    task, state["cfg"].checkpoint.save_dir = state["cfg"].task, "checkpoints"
    places, task.source_prior = Places(data=str(translation.data)), "of-the-source"
    take_places(path, task, places, state)
    assert task.source_prior == "project/of-the-source"
    found = "trained with the source prior in 'of-the-source'; 'project/of-the-source' is used instead"
    assert found in caplog.text
    shutil.rmtree(tmp_path / "project" / "of-the-source")
    shutil.copytree(translation.data / "prior", tmp_path / "project" / "of-the-source")
    task.source_prior = "of-the-source"
    with pytest.raises(OptionError) as caught:
        take_places(path, task, places, state)
    said = str(caught.value)
    assert said.startswith(f"{path}: expected the source prior of its training, found none, or another one, in")
    assert "'of-the-source'" in said and said.endswith("; name its folder with --source-prior DIR")


def test_weights_know_their_source_prior(
    translation: TranslationWorld, trained: Path, source_prior: Path, shell: Shell, tmp_path: Path
) -> None:
    """Weights beside another source prior, beside none, and without one beside one: one line each, in training too."""
    other = tmp_path / "other"
    shell.run("llrnn", "prior", "--dict", translation.data / "dict.src.txt", "--top-words", 3, "--out", other)
    for place, option, said in (
        (trained, ["--source-prior", other], "was trained with another source prior than"),
        (trained, [], "the checkpoint was trained with a prior of the source's words; pass it with "),
    ):
        arguments = [*translation.train_args(save_dir=place.parent), *ARCHITECTURES["llrnn_lstm"], *option]
        assert_says(shell.run("fairseq-train", *arguments, "--max-epoch", 7, code=None), said)
    plain = tmp_path / "plain"
    shell.run("fairseq-train", *translation.train_args(save_dir=plain), "--max-epoch", 1)
    arguments = [*translation.train_args(save_dir=plain), "--source-prior", source_prior, "--max-epoch", 2]
    said = "the checkpoint was trained without --source-prior; leave it out"
    assert_says(shell.run("fairseq-train", *arguments, code=None), said)


def test_bad_options(translation: TranslationWorld, source_prior: Path, trained: Path) -> None:
    for arch, options, message in (
        ("llrnn_lstm", ["--source-prior", translation.data / "prior"], "build it again with `llrnn prior` --dict "),
        ("llrnn_lstm", ["--source-prior", translation.place / "nowhere"], "nowhere"),
        ("llrnn_transformer", ["--source-prior", source_prior, "--encoder-embed-path", "vectors"],
         "remove --encoder-embed-path, or the option that replaces the table, such as --source-prior"),
        ("llrnn_lstm", ["--arch", "lstm", "--decoder-layers", 1, "--source-prior", source_prior],
         "--source-prior: the encoder of LSTMModel cannot read it"),
        ("llrnn_transformer", ["--source-prior", source_prior, "--share-all-embeddings"],
         "--share-all-embeddings: not supported by llrnn_transformer"),
    ):  # fmt: skip
        with pytest.raises(LLRNNError, match=re.escape(message)):
            build([*map(str, translation.train_args(arch)), *map(str, options)])
    state = read_safely(str(trained))
    state["cfg"].task.source_prior = None
    with pytest.raises(OptionError, match="--source-prior x: expected a model that was trained with a source prior"):
        take_places("it", state["cfg"].task, Places(source_prior="x"), state)
