"""--source-characters: encoders that read characters, alone and beside a prior of the source's words."""

from pathlib import Path

import pytest
import torch
from dynamic_prior import LINES
from shell import Shell, assert_says
from tiny_world import evaluated
from translation_world import TranslationWorld, assert_steps_agree, pairs

ARCHITECTURES = ("llrnn_lstm", "llrnn_transformer")


@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_characters_alone_and_beside_features(
    translation: TranslationWorld, source_prior: Path, arch: str, with_prior: bool
) -> None:
    options = ["--source-prior", str(source_prior)] if with_prior else []
    arguments = [*translation.train_args(arch, "lexical"), *options]
    setting = evaluated([*arguments, "--source-characters", "cnn"], scale=0.3)
    encoder, task = setting.model.encoder, setting.task
    read = encoder.network.embedding if arch == "llrnn_lstm" else encoder.embed_tokens
    known = len(task.source_dictionary)
    one, two = (task.source_dictionary.index(word) for word in ("eltnaheb", "eltnaheg"))
    assert {one, two} == {known, known + 1}, "strings that the dictionary lacks have ids of their own"
    first, second = read(torch.tensor([[one, two]]))[0]
    assert not torch.allclose(first, second)
    assert not read(torch.tensor([[task.source_dictionary.pad()]])).any()
    if with_prior:
        characters = read.characters(torch.tensor([[one]]))[0, 0]
        unknown = read.features(torch.tensor([task.source_dictionary.unk()]))[0]
        torch.testing.assert_close(first, characters + unknown)
    sample = pairs(task, [*LINES, "inconnu le"])
    assert (sample["net_input"]["src_tokens"] >= known).any()
    assert_steps_agree(setting, sample)
    loss, _, _ = setting.criterion(setting.model.train(), sample)
    loss.backward()
    idle = [name for name, p in setting.model.named_parameters() if p.grad is None and "characters" in name]
    assert not idle


def test_commands_keep_unknown_strings_for_characters(
    shell: Shell, translation: TranslationWorld, tmp_path: Path
) -> None:
    arguments = [*translation.train_args(prior="lexical", save_dir=tmp_path), "--source-characters", "cnn"]
    shell.run("fairseq-train", *arguments, "--max-update", 3, "--lr", 0.001, "--disable-validation")
    path = tmp_path / "checkpoint_last.pt"
    common = [*translation.task_args("lexical"), "--path", path, "--max-len-b", 9, "--beam", 2, "--num-workers", 0]
    typed = shell.run("fairseq-interactive", *common, stdin="leneb el\nrutas el\n")
    assert "S-0\tleneb el" in typed.out
    scores = [line.split("\t")[1] for line in typed.out.splitlines() if line.startswith("H-")]
    assert len(scores) == 2 and scores[0] != scores[1], "they are read, and not alike"
    explained = shell.run("llrnn", "explain", "--path", path, "--source", "qqq el", translation.world.text("test")[0])
    assert "qqq" in explained.out


def test_characters_beside_vectors_of_words(shell: Shell, translation: TranslationWorld) -> None:
    options = ["--source-characters", "cnn", "--encoder-embed-path", "vectors"]
    done = shell.run("fairseq-train", *translation.train_args("llrnn_transformer"), *options, code=None)
    assert_says(done, "leave out one of --encoder-embed-path and of what the encoder reads in its place")
