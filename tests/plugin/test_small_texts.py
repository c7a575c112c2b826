"""`llrnn train` with a small text: the options that it adds, which ones of the user replace them, what is printed."""

from pathlib import Path

import pytest
import torch
from shell import Shell
from tiny_world import MODEL, TRAINING, USER_DIR, World, build, read_checkpoint

from fairseq_llrnn.plugin import commands
from fairseq_llrnn.plugin.commands import added

RUN = ["--cpu", "--num-workers", "0", "--seed", "1"]
BY_HAND = (
    "--arch llrnn_lm --decoder-hidden-size 256 --decoder-embed-dim 256 --decoder-layers 2 --tie-features --dropout 0.4 "
    "--variational-dropout --weight-drop 0.5 --activation-penalty 2 --change-penalty 1 --max-tokens 1024 "
    "--lr-scheduler reduce_lr_on_plateau --lr-shrink 0.4 --lr-patience 1 --max-epoch 2 --patience 5 --lr 0.004"
).split()
NETWORK = "--arch llrnn_lm_small"
FALLING = "--lr-scheduler reduce_lr_on_plateau --lr-shrink 0.4 --lr-patience 1"


def test_a_small_text_trains_as_with_options_by_hand_and_goes_on(shell: Shell, world: World, tmp_path: Path) -> None:
    short = [world.data, *RUN, "--save-dir", tmp_path / "a"]
    done = shell.run("llrnn", "train", *short, "--max-epoch", 1)
    opening, network, larger, *_ = done.out.splitlines()
    assert f"{NETWORK} --max-tokens 1024 {FALLING} --patience 5 --lr 0.004" in opening
    assert network == (
        "fewer than 100,000 words of text: --arch llrnn_lm_small means --arch llrnn_lm --decoder-hidden-size 256 "
        "--decoder-embed-dim 256 --decoder-layers 2 --dropout 0.4 --variational-dropout --weight-drop 0.5 "
        "--activation-penalty 2.0 --change-penalty 1.0 --tie-features"
    )
    assert larger == "(for the options of larger texts, add --arch llrnn_lm)"
    assert "resumes from" in shell.run("llrnn", "train", *short, "--max-epoch", 2).out
    shell.run("llrnn", "train", world.data, *BY_HAND, *RUN, "--save-dir", tmp_path / "b")
    ours, theirs = (read_checkpoint(tmp_path / name / "checkpoint_last.pt") for name in "ab")
    assert ours["model"].keys() == theirs["model"].keys()
    assert all(torch.equal(value, theirs["model"][name]) for name, value in ours["model"].items())
    cfg = ours["cfg"]
    assert (cfg["model"]["weight_drop"], cfg["model"]["tie_features"]) == (0.5, True)
    assert (cfg["optimization"]["max_epoch"], cfg["checkpoint"]["patience"]) == (2, 5)
    measured = ["eval-lm", world.data, "--path", tmp_path / "a" / "checkpoint_best.pt", "--cpu"]
    assert "Perplexity" in shell.run("llrnn", *measured).out


@pytest.mark.parametrize(
    ("words", "present", "absent"),
    [
        ("", f"{NETWORK} --max-tokens 1024 {FALLING} --max-epoch 60 --patience 5", "--max-tokens 2048|--max-epoch 30"),
        ("--patience 2", FALLING, "--patience|--max-epoch"),
        ("--max-update 5", FALLING, "--patience|--max-epoch"),
        ("--max-epoch=7", "--patience 5", "--max-epoch"),
        ("--batch-size 4", FALLING, "--max-tokens"),
        ("--lr-scheduler fixed", "--max-epoch 60 --patience 5", "--lr-shrink|--lr-patience|--lr-scheduler"),
        ("--lr-shrink 0.5", FALLING, "--lr-shrink 0.5"),
        ("--optimizer adagrad", NETWORK, "--optimizer|--lr 0.004"),
        ("--lr 0.1", NETWORK, "--lr 0.004"),
    ],
)
def test_an_option_of_the_user_replaces_that_of_small_texts(
    words: str, present: str, absent: str, world: World
) -> None:
    found = " ".join(added("train", [str(world.data), *words.split()], str(USER_DIR)))
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
    ("words", "limit", "is_small"),
    [
        ([], 10**5, True),
        (["--task=llrnn_language_modeling", "--lr", "0.1"], 10**5, True),
        ([], 100, False),
        (MODEL[2:], 10**5, False),
        (["--arch=llrnn_lm"], 10**5, False),
        (["-a", "llrnn_lbl"], 10**5, False),
        (["--dropout", "0.1"], 10**5, False),
    ],
)
def test_which_trainings_are_small(
    words: list[str], limit: int, is_small: bool, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "SMALL_TEXT", limit)
    more = added("train", [str(world.data), *map(str, words)], str(USER_DIR))
    assert ("llrnn_lm_small" in more) is is_small
