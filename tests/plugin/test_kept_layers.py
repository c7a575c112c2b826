"""Some of the layers of a deeper Transformer, through fairseq-train and fairseq-generate; shares that are none."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from shell import Result, Shell, assert_says
from tiny_world import EVERY_SENTENCE, build, read_checkpoint
from translation_world import TranslationWorld

from fairseq_llrnn.errors import OptionError

DEEP = ["--encoder-layers", "3", "--decoder-layers", "3", "--encoder-layerdrop", "0.2", "--decoder-layerdrop", "0.2"]


@pytest.fixture(scope="module")
def deep(shell: Shell, translation: TranslationWorld) -> Path:
    """A checkpoint of three layers on either side."""
    place = translation.place / "deep"
    arguments = translation.train_args("llrnn_transformer", save_dir=place)
    shell.run("fairseq-train", *arguments, *DEEP, "--max-update", 20, "--disable-validation")
    return place / "checkpoint_last.pt"


def generate(shell: Shell, translation: TranslationWorld, path: Path, overrides: str, **expected: Any) -> Result:
    return shell.run(
        "fairseq-generate", *translation.task_args(), "--path", path, "--gen-subset", "test", "--max-tokens", 400,
        "--max-len-b", 6, "--beam", 2, "--num-workers", 0, *EVERY_SENTENCE, "--model-overrides", overrides, **expected,
    )  # fmt: skip


def hypotheses(result: Result) -> list[str]:
    return re.findall(r"^[HP]-.*$", result.out, re.MULTILINE)


def without_layers(path: Path, encoder: list[int], decoder: list[int]) -> dict[str, Any]:
    """The checkpoint that a training of the smaller model would have left, by hand."""
    state = read_checkpoint(path)
    weights = {}
    for name, value in state["model"].items():
        match = re.fullmatch(r"(encoder|decoder\.body)\.layers\.(\d)\.(.*)", name)
        kept = {"encoder": encoder, "decoder.body": decoder}[match[1]] if match else []
        if match is None:
            weights[name] = value
        elif int(match[2]) in kept:
            weights[f"{match[1]}.layers.{kept.index(int(match[2]))}.{match[3]}"] = value
    options = state["cfg"]["model"]
    options.encoder_layers, options.decoder_layers = len(encoder), len(decoder)
    return {**state, "model": weights}


@pytest.mark.parametrize(
    "overrides, encoder, decoder",
    [
        ("{'decoder_layers_to_keep': '0'}", [0, 1, 2], [0]),
        ("{'encoder_layers_to_keep': '2, 0', 'decoder_layers_to_keep': (1, 2)}", [0, 2], [1, 2]),
    ],
)
def test_a_search_without_some_layers(
    shell: Shell, translation: TranslationWorld, deep: Path, tmp_path: Path,
    overrides: str, encoder: list[int], decoder: list[int],
) -> None:  # fmt: skip
    torch.save(without_layers(deep, encoder, decoder), tmp_path / "smaller.pt")
    found = hypotheses(generate(shell, translation, deep, overrides))
    assert found == hypotheses(generate(shell, translation, tmp_path / "smaller.pt", "{}"))
    assert found != hypotheses(generate(shell, translation, deep, "{}"))


@pytest.mark.parametrize("begin", ["--finetune-from-model", "--restore-file"])
def test_training_goes_on_with_some_layers(
    shell: Shell, translation: TranslationWorld, deep: Path, tmp_path: Path, begin: str
) -> None:
    """Their weights are those of the deep model, its own checkpoint needs no list, and the same command resumes it."""
    arguments = [*translation.train_args("llrnn_transformer", save_dir=tmp_path), *DEEP, "--disable-validation"]
    keep = ["--encoder-layers-to-keep", "0,2", "--decoder-layers-to-keep", "1"]
    reset = ["--reset-optimizer", "--reset-dataloader", "--reset-meters", "--reset-lr-scheduler"]
    options = [begin, deep, *(reset if begin == "--restore-file" else [])]
    shell.run("fairseq-train", *arguments, *keep, *options, "--lr", 0, "--max-update", 1)
    last = tmp_path / "checkpoint_last.pt"
    made = read_checkpoint(last)
    expected = without_layers(deep, [0, 2], [1])["model"]
    assert made["model"].keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(made["model"][name], value, msg=name)
    told = made["cfg"]["model"]
    assert (told.encoder_layers, told.decoder_layers) == (2, 1)
    assert (told.encoder_layers_to_keep, told.decoder_layers_to_keep) == (None, None)
    assert hypotheses(generate(shell, translation, last, "{}"))
    if begin == "--finetune-from-model":
        resumed = shell.run("fairseq-train", *arguments, *keep, *options, "--max-update", 2)
        assert f"Loaded checkpoint {last}" in resumed.out + resumed.err
        assert read_checkpoint(last)["model"].keys() == expected.keys()


def test_a_smaller_model_from_the_start(shell: Shell, translation: TranslationWorld, tmp_path: Path) -> None:
    arguments = translation.train_args("llrnn_transformer", save_dir=tmp_path)
    shell.run("fairseq-train", *arguments, *DEEP, "--decoder-layers-to-keep", "0,2", "--max-update", 1)
    result = generate(shell, translation, tmp_path / "checkpoint_last.pt", "{}")
    assert len(hypotheses(result)) == 2 * len(translation.source("test"))


LISTS = {
    "0,a": "--decoder-layers-to-keep 0,a: expected numbers of layers with commas between them, e.g. 0,2, found 'a'",
    "0,,1": "--decoder-layers-to-keep 0,,1: expected numbers of layers .* found ''; fix the list",
    "-1": "--decoder-layers-to-keep -1: expected numbers of layers .* found '-1'",
    "0,5": "--decoder-layers-to-keep 0,5: expected layers from 0 to 2, since the decoder has 3, found 5; count from 0, "
    "or see whether --decoder-layers is that of the deeper model",
    "0,1,0": "--decoder-layers-to-keep 0,1,0: expected every layer once, found 0 twice; take one of them out",
}


@pytest.mark.parametrize("kept", LISTS)
def test_lists_that_are_none(translation: TranslationWorld, kept: str) -> None:
    with pytest.raises(OptionError, match=LISTS[kept]):
        build([*translation.train_args("llrnn_transformer"), *DEEP, f"--decoder-layers-to-keep={kept}"])


def test_lists_that_are_none_through_the_commands(
    shell: Shell, translation: TranslationWorld, deep: Path
) -> None:
    arguments = [*translation.train_args("llrnn_transformer"), *DEEP]
    result = shell.run("fairseq-train", *arguments, "--encoder-layers-to-keep", "0,a", code=None)
    assert_says(result, "--encoder-layers-to-keep 0,a: expected numbers of layers", "found 'a'; fix the list")
    result = generate(shell, translation, deep, "{'decoder_layers_to_keep': '5'}", code=None)
    assert_says(result, "--decoder-layers-to-keep 5: expected layers from 0 to 2, since the decoder has 3, found 5")


def test_a_checkpoint_without_such_layers(shell: Shell, translation: TranslationWorld, deep: Path) -> None:
    arguments = [*translation.train_args("llrnn_transformer"), *DEEP, "--encoder-layers", 9]
    options = ["--encoder-layers-to-keep", "0,7", "--finetune-from-model", deep, "--max-update", 1]
    result = shell.run("fairseq-train", *arguments, *options, code=None)
    assert_says(
        result, "--encoder-layers-to-keep 0,7: expected layers of the checkpoint, whose encoder has 3, found 7; name "
        "some from 0 to 2",
    )  # fmt: skip


@pytest.mark.parametrize("option", ["--relu-dropout", "--encoder-layerdrop", "--decoder-layerdrop"])
@pytest.mark.parametrize("value", ["1.5", "1.0", "-0.1", "nan"])
def test_shares_of_what_is_left_out(translation: TranslationWorld, option: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"{option} {value}: expected a probability from 0 to below 1"):
        build([*translation.train_args("llrnn_transformer"), f"{option}={value}"])


def test_shares_through_the_command(shell: Shell, translation: TranslationWorld) -> None:
    result = shell.run(
        "fairseq-train", *translation.train_args("llrnn_transformer"), "--decoder-layerdrop", 1.2, code=None
    )
    assert_says(result, "--decoder-layerdrop 1.2: expected a probability from 0 to below 1")
