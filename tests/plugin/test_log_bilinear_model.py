"""llrnn_lbl: searches that step, sentences, resuming, scoring, generating, explaining, and what it refuses."""

import math
import re
from pathlib import Path

import pytest
import torch
from shell import Shell, assert_says
from tiny_world import EVERY_SENTENCE, TRAINING, World, batch, build, randomise, read_checkpoint

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.scoring.text import load_text_scorer

LINES = ["le chat voit la mer", "une pomme verte tient la tour"]
CHARACTERS = ["--input-characters", "cnn", "--character-filters", "1:4,2:4"]


def arguments(world: World, *options: object, save_dir: Path | None = None, prior: str = "prior") -> list[object]:
    sizes = ["--arch", "llrnn_lbl", "--decoder-embed-dim", "16", "--decoder-hidden-size", "16"]
    saving = ["--no-save"] if save_dir is None else ["--save-dir", save_dir, "--no-epoch-checkpoints"]
    return [*world.task_args(prior), *sizes, *TRAINING, *saving, *options]


@pytest.mark.parametrize(
    "options", [[], ["--context-size", "1"], ["--context-size", "9", "--tie-features"], CHARACTERS]
)
def test_steps_of_a_search_equal_the_whole_sequence(world: World, options: list[str]) -> None:
    setting = build(arguments(world, *options), double=True)
    randomise(setting.model)
    decoder = setting.model.eval().decoder
    tokens = batch(setting.task.dictionary, LINES)["net_input"]["src_tokens"]
    whole = decoder.head.word_log_probs(decoder(tokens)[1]["batch"])
    state: dict = {}
    for end in (2, 3, 4, 5, 6):  # the first step reads a prefix
        output = decoder(tokens[:, :end], incremental_state=state)
        found = decoder.get_normalized_probs(output, log_probs=True)
        torch.testing.assert_close(found[:, 0], whole[:, end - 1])
        order = torch.tensor([1, 0])
        tokens, whole = tokens[order], whole[order]
        decoder.reorder_incremental_state(state, order)


def test_it_sees_four_words(world: World) -> None:
    setting = build(arguments(world))
    decoder = setting.model.eval().decoder
    assert decoder.network.context == 4
    (first, second) = batch(setting.task.dictionary, ["le chat vert voit la mer", "le roi vert voit la mer"])[
        "net_input"
    ]["src_tokens"]  # they differ in the third token that is read, </s> being the first
    hidden = decoder(torch.stack([first, second]))[0]
    same = [bool(torch.equal(*pair)) for pair in hidden.unbind(1)]
    assert same == [True, True, False, False, False, False, True]


def test_it_begins_as_the_background(world: World) -> None:
    setting = build(arguments(world, "--start-at-background"))
    assert not setting.model.decoder.head.output.weight.any()


def test_training_resumes_scores_generates_and_explains(shell: Shell, world: World, tmp_path: Path) -> None:
    """Straight or stopped and resumed: the same weights; then every command that reads a checkpoint."""
    options = ["--dropout", "0.1", "--optimizer", "adagrad", "--lr", "0.1"]

    def train(place: str, epochs: int) -> float:
        args = arguments(world, *options, "--max-epoch", epochs, save_dir=tmp_path / place)
        return shell.run("fairseq-train", *args).json_lines("valid")[-1]["valid_nats"]

    nats = train("straight", 3)
    train("stopped", 1)
    train("stopped", 3)
    straight, resumed = (read_checkpoint(tmp_path / name / "checkpoint_last.pt") for name in ("straight", "stopped"))
    for name, value in straight["model"].items():
        assert torch.equal(value, resumed["model"][name]), name
    assert nats < math.log(56)

    path = tmp_path / "straight" / "checkpoint_last.pt"
    breaking = ["--sample-break-mode", "eos", "--tokens-per-sample", 64]
    common = [*world.task_args(), "--path", path, "--num-workers", 0, *breaking]
    scored = shell.run("fairseq-eval-lm", *common, "--gen-subset", "valid")
    found = re.search(r"Perplexity: ([\d.]+)", scored.out)
    assert found is not None and float(found[1]) == pytest.approx(math.exp(nats), rel=1e-3)

    of_text = load_text_scorer(str(path), 4000).score(world.text("valid"))
    bits = (of_text.known_bits + of_text.end_bits) / (of_text.words + of_text.sentences)
    assert bits * math.log(2) == pytest.approx(nats, abs=2e-3)

    generated = shell.run(
        "fairseq-generate", *common, "--gen-subset", "test", "--beam", 3, "--prefix-size", 2, "--max-len-b", 12,
        *EVERY_SENTENCE,
    )  # fmt: skip
    written = re.findall(r"^H-(\d+)\t\S+\t(.*)$", generated.out, re.MULTILINE)
    lines = world.text("test")
    assert len(written) == len(lines)
    assert all(words.split()[:2] == lines[int(number)].split()[:2] for number, words in written)
    assert "le" in shell.run("llrnn", "explain", "--path", path, "le chat").out


@pytest.mark.parametrize(
    "options, message",
    [
        (["--context-size", "0"], r"--context-size 0: expected a number of at least 1"),
        (["--dropout", "1"], r"--dropout 1\.0: expected a probability"),
        (["--decoder-hidden-size", "0"], r"--decoder-hidden-size 0: expected a number of at least 1"),
        (["--tie-features", "--decoder-embed-dim", "8"], r"--tie-features: expected equal --decoder-embed-dim"),
    ],
)
def test_what_is_refused(world: World, options: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(arguments(world, *options))


def test_a_command_refuses_in_one_line(shell: Shell, world: World) -> None:
    said = shell.run("fairseq-train", *arguments(world, "--context-size", -1), code=None)
    assert_says(said, "--context-size -1: expected a number of at least 1")
