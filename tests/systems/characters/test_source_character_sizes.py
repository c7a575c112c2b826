"""The sizes of the network that reads source words by characters: options and commands."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from available import is_there
from dynamic_prior import LINES
from shell import Shell
from tiny_world import build, evaluated
from translation_world import TranslationWorld, assert_resumed_is_never_stopped, assert_steps_agree, pairs

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.systems.characters.input import CharacterWords
from fairseq_llrnn.systems.characters.network import (
    LARGE,
    SMALL,
    CharacterEmbedding,
    CharacterNetwork,
    CharacterOptions,
    format_filters,
)

SOURCE = ["--source-characters", "cnn"]
INPUT = ["--input-characters", "cnn"]
SIZES = ["--character-embed-dim", "4", "--character-filters", "1:3,3:5", "--highway-layers", "2"]
PLACE = "encoder.network.embedding.network."  # of the weights, in llrnn_lstm


def reader_of(model: Any) -> CharacterEmbedding:
    """What the encoder reads with."""
    read = model.encoder.embed_tokens if hasattr(model.encoder, "embed_tokens") else model.encoder.network.embedding
    assert isinstance(read, CharacterEmbedding)
    return read


def sizes_of(network: CharacterNetwork) -> CharacterOptions:
    filters = tuple((f.width, f.linear.out_features) for f in network.filters)
    size = network.projection.out_features if isinstance(network.projection, torch.nn.Linear) else None
    return CharacterOptions(network.embedding.embedding_dim, filters, len(network.layers), size)


# ---- options --------------------------------------------------------------------------------------------------------


ARCHITECTURES = ["llrnn_lstm", "llrnn_encoder_decoder", "llrnn_rctm", "llrnn_transformer"]


@pytest.mark.parametrize("arch", list(filter(is_there, ARCHITECTURES)))
def test_the_options_of_sizes_hold_for_the_source(translation: TranslationWorld, arch: str) -> None:
    model = build([*translation.train_args(arch), *SOURCE, *SIZES]).model
    read = reader_of(model)
    assert sizes_of(read.network) == CharacterOptions(4, ((1, 3), (3, 5)), 2, read.embedding_dim)
    assert not isinstance(model.decoder.head.embedding, CharacterWords)


@pytest.mark.parametrize(("filters", "layers"), [(SMALL, 1), (LARGE, 2)])
def test_both_sides_have_the_sizes_of_the_thesis(
    translation: TranslationWorld, filters: tuple[tuple[int, int], ...], layers: int
) -> None:
    given = ["--character-filters", format_filters(filters), "--highway-layers", layers] if filters != SMALL else []
    model = build([*translation.train_args(), *INPUT, *SOURCE, *given]).model
    assert sizes_of(reader_of(model).network) == CharacterOptions(15, filters, layers, 12)
    assert sizes_of(model.decoder.head.embedding.network) == CharacterOptions(15, filters, layers)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (SIZES, "--character-embed-dim 4: it needs --input-characters cnn or --source-characters cnn; add one"),
        ([*SOURCE, "--character-mode", "add"], "--character-mode add: it needs --input-characters cnn"),
        ([*SOURCE, "--character-filters", "3"], "--character-filters 3: expected widths and their numbers of filters"),
        ([*SOURCE, "--highway-layers", "11"], "--highway-layers 11: expected a number from 0 to 10"),
    ],
)
@pytest.mark.parametrize("arch", ["llrnn_lstm", "llrnn_transformer"])
def test_what_makes_no_sense_is_refused(
    translation: TranslationWorld, arch: str, options: list[str], said: str
) -> None:
    with pytest.raises(OptionError, match=re.escape(said)):
        build([*translation.train_args(arch), *options])


# ---- through the commands -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["llrnn_lstm", "llrnn_transformer"])
def test_a_model_is_trained_resumed_and_searched(
    shell: Shell, translation: TranslationWorld, arch: str, tmp_path: Path
) -> None:
    checkpoint = assert_resumed_is_never_stopped(shell, translation, tmp_path, [*SOURCE, *SIZES], arch=arch)
    common = [*translation.task_args(), "--path", checkpoint, "--beam", 2, "--max-len-b", 9, "--num-workers", 0]
    shell.run("fairseq-generate", *common, "--gen-subset", "test", "--max-tokens", 400)
    typed = shell.run("fairseq-interactive", *common, stdin="leneb el\nrutas el\n").out
    scores = [line.split("\t")[1] for line in typed.splitlines() if line.startswith("H-")]
    assert len(scores) == 2 and scores[0] != scores[1], "unknown words are read, and not alike"


@pytest.fixture(scope="module")
def small(shell: Shell, translation: TranslationWorld) -> Path:
    """The checkpoint of a small network on both sides."""
    place = translation.place / "small-source"
    shell.run("fairseq-train", *translation.train_args(save_dir=place), *INPUT, *SOURCE, *SIZES, "--max-update", 2)
    return place / "checkpoint_last.pt"


def test_other_sizes_than_those_of_the_training_are_refused(
    shell: Shell, translation: TranslationWorld, small: Path, tmp_path: Path
) -> None:
    args = [*translation.train_args(save_dir=tmp_path), *INPUT, *SOURCE, "--max-update", 3]
    done = shell.run("fairseq-train", *args, "--restore-file", small, code=1)
    assert "found one of another model (--character-embed-dim 4, --character-filters 1:3,3:5" in done.err
    assert "Traceback" not in done.err


# --source-characters: encoders that read characters, alone and beside a prior of the source's words
@pytest.mark.parametrize(("arch", "with_prior"), [("llrnn_lstm", True), ("llrnn_transformer", False)])
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
    shell: Shell, translation: TranslationWorld, small: Path
) -> None:
    common = [*translation.task_args(), "--path", small, "--max-len-b", 9, "--beam", 2, "--num-workers", 0]
    typed = shell.run("fairseq-interactive", *common, stdin="leneb el\nrutas el\n")
    assert "S-0\tleneb el" in typed.out
    scores = [line.split("\t")[1] for line in typed.out.splitlines() if line.startswith("H-")]
    assert len(scores) == 2 and scores[0] != scores[1], "they are read, and not alike"
    explained = shell.run("llrnn", "explain", "--path", small, "--source", "qqq el", translation.world.text("test")[0])
    assert "qqq" in explained.out


def test_characters_beside_vectors_of_words(translation: TranslationWorld) -> None:
    options = ["--source-characters", "cnn", "--encoder-embed-path", "vectors"]
    with pytest.raises(OptionError, match="remove --encoder-embed-path, or the option that replaces the table"):
        build([*translation.train_args("llrnn_transformer"), *options])
