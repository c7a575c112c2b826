"""`llrnn train --preset`: what it adds, what an option of the user replaces, what is printed, and what is refused."""

import re
from pathlib import Path

import pytest
import torch
from shell import Shell
from tiny_world import MODEL, TRAINING, USER_DIR, World, build, read_checkpoint
from translation_world import TranslationWorld

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin import commands
from fairseq_llrnn.plugin.commands import added, preset_remarks

RUN = ["--cpu", "--num-workers", "0", "--seed", "1"]
BY_HAND = (
    "--arch llrnn_lm --decoder-hidden-size 8 --decoder-embed-dim 8 --decoder-layers 2 --tie-features --dropout 0.4 "
    "--variational-dropout --weight-drop 0.5 --activation-penalty 2 --change-penalty 1 --max-tokens 1024 "
    "--lr-scheduler reduce_lr_on_plateau --lr-shrink 0.4 --lr-patience 0 --max-epoch 3 --patience 5"
).split()
NETWORK = "--arch llrnn_lm_small"
FALLING = "--lr-scheduler reduce_lr_on_plateau --lr-shrink 0.4 --lr-patience 0"


def test_a_preset_trains_as_its_options_by_hand_and_goes_on(shell: Shell, world: World, tmp_path: Path) -> None:
    short = [world.data, "--preset", "small", "--decoder-hidden-size", 8, *RUN, "--save-dir", tmp_path / "a"]
    done = shell.run("llrnn", "train", *short, "--max-epoch", 2)
    opening, network, *_ = done.out.splitlines()
    assert f"{NETWORK} --max-tokens 1024 {FALLING} --patience 5 " in opening
    assert network == (
        "--arch llrnn_lm_small means: --arch llrnn_lm --decoder-hidden-size 256 --decoder-embed-dim 256 "
        "--decoder-layers 2 --dropout 0.4 --variational-dropout --weight-drop 0.5 --activation-penalty 2.0 "
        "--change-penalty 1.0 --tie-features (your options override these)"
    )
    assert "resumes from" in shell.run("llrnn", "train", *short, "--max-epoch", 3).out
    shell.run("llrnn", "train", world.data, *BY_HAND, *RUN, "--save-dir", tmp_path / "b")
    ours, theirs = (read_checkpoint(tmp_path / name / "checkpoint_last.pt") for name in "ab")
    assert ours["model"].keys() == theirs["model"].keys()
    assert all(torch.equal(value, theirs["model"][name]) for name, value in ours["model"].items())
    cfg = ours["cfg"]
    assert (cfg["model"]["weight_drop"], cfg["model"]["tie_features"]) == (0.5, True)
    assert (cfg["optimization"]["max_epoch"], cfg["checkpoint"]["patience"]) == (3, 5)
    measured = ["eval-lm", world.data, "--path", tmp_path / "a" / "checkpoint_best.pt", "--cpu"]
    assert "Perplexity" in shell.run("llrnn", *measured).out


@pytest.mark.parametrize(
    ("words", "present", "absent"),
    [
        ("", f"{NETWORK} --max-tokens 1024 {FALLING} --max-epoch 60 --patience 5", "--max-tokens 2048|--max-epoch 30"),
        ("--patience 2", "--max-epoch 60", "--patience"),
        ("--max-update 5", "--max-epoch 60 --patience 5", "--max-epoch 30"),
        ("--max-epoch=7", "--patience 5", "--max-epoch"),
        ("--batch-size 4", FALLING, "--max-tokens"),
        ("--lr-scheduler fixed", "--max-epoch 60", "--lr-shrink|--lr-patience|--lr-scheduler"),
        ("--lr-shrink 0.5", FALLING, "--lr 0.4"),
        ("--arch llrnn_lbl", "--max-tokens 1024", "--arch"),
        ("-a llrnn_lbl", "--max-tokens 1024", "--arch"),
        ("--optimizer adagrad", NETWORK, "--optimizer"),
    ],
)
def test_an_option_of_the_user_replaces_that_of_the_preset(words: str, present: str, absent: str, world: World) -> None:
    found = " ".join(added("train", [str(world.data), *words.split()], str(USER_DIR), "small"))
    assert f" {present} " in f"{found} "
    assert not any(f" {option}" in found for option in absent.split("|"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--decoder-embed-dim", "8"], (8, 8, True)),
        (["--decoder-hidden-size", "8"], (8, 8, True)),
        (["--decoder-hidden-size", "8", "--decoder-embed-dim", "4"], (8, 4, False)),
        (["--decoder-hidden-size", "8", "--start-at-background"], (8, 8, False)),
    ],
)
def test_widths_that_differ_are_not_tied(words: list[str], expected: tuple[int, int, bool], world: World) -> None:
    args = [*world.task_args(), "--arch", "llrnn_lm_small", *TRAINING, "--no-save", *words]
    head = build(args).model.decoder.head
    assert (head.hidden_size, head.embed_size, head.embedding.weight is head.output.weight) == expected


@pytest.mark.parametrize(
    "option",
    ["--prefix-size 2", "--beam 3", "--nbest 2", "--constraints", "--diverse-beam-groups 2", "--diversity-rate 0.5",
     "--match-source-len"],
)  # fmt: skip
def test_options_of_beams_keep_generate_from_sampling(option: str, world: World, trained: Path) -> None:
    words = [str(world.data), "--path", str(trained / "checkpoint_best.pt")]
    assert "--sampling" in added("generate", words, str(USER_DIR))
    assert "--sampling" not in added("generate", [*words, *option.split()], str(USER_DIR))


@pytest.mark.parametrize(
    ("name", "said", "joined"),
    [
        ("smal", "--preset: expected small, found 'smal'; did you mean small?", False),
        ("", "--preset: expected small, found ''; correct it, or remove it", True),
        ("--cpu", "--preset: expected small, found '--cpu'; correct it, or remove it", False),
    ],
)
def test_a_preset_that_is_none(name: str, said: str, joined: bool, shell: Shell, world: World) -> None:
    done = shell.run("llrnn", "train", world.data, *([f"--preset={name}"] if joined else ["--preset", name]), code=2)
    assert (done.out, done.err) == ("", f"llrnn train: error: {said}\n")


@pytest.mark.parametrize("task", ["llrnn_translation", "language_modeling", "translation"])
def test_models_without_presets(task: str, translation: TranslationWorld) -> None:
    said = f"--preset small: it is for models of llrnn_language_modeling, found one of {task}; remove it"
    with pytest.raises(OptionError, match=said):
        added("train", [str(translation.data), "--task", task], str(USER_DIR), "small")


@pytest.mark.parametrize(
    ("preset", "words", "limit", "said"),
    [
        (None, [], 10**5, r"note: the training text has [\d,]+ words; for fewer than 100,000, --preset small "),
        (None, ["--max-epoch", "5"], 10**5, r"note: the training text has [\d,]+ words; for fewer than "),
        (None, MODEL[2:], 10**5, ""),
        (None, ["--arch=llrnn_lbl"], 10**5, ""),
        (None, ["--dropout", "0.1"], 10**5, ""),
        (None, [], 100, ""),
        ("small", ["-a", "llrnn_lbl"], 10**5, ""),
        ("small", ["-a", "llrnn_lbl"], 100, r"note: --preset small is for fewer than 100 words of training text, .*"),
    ],
)
def test_notes_on_the_size_of_the_text(
    preset: str | None, words: list[str], limit: int, said: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "SMALL_TEXT", limit)
    arguments = [str(world.data), *map(str, words)]
    found = preset_remarks(preset, added("train", arguments, str(USER_DIR), preset), arguments).removeprefix("\n")
    assert re.match(said, found) if said else not found
    count = sum(len(line.split()) for line in world.text("train"))
    assert not said or f" {count:,}" in found
