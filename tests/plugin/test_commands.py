"""Every command of fairseq, end to end: train, validate, eval-lm, generate, interactive."""

import math
import re
from pathlib import Path

import pytest
import torch
from shell import Shell
from tiny_world import EVERY_SENTENCE, World, batch, build, read_checkpoint

BREAKING = ["--sample-break-mode", "eos", "--tokens-per-sample", "64"]

# What is trained, with which prior. Each also decodes.
VARIANTS = {
    "sentences": (
        "prior",
        ["--dropout", "0.2", "--dropout-in", "0.1", "--variational-dropout", "--layer-norm", *BREAKING],
    ),
    "blocks": ("separate", ["--cell", "gru", "--sample-break-mode", "none", "--tokens-per-sample", "20"]),
    "window": ("flat", ["--context-window", "8", "--cell", "gru", "--layer-norm", "--start-at-background", *BREAKING]),
}


def breaking(options: list[str]) -> list[str]:
    """The options about blocks, which belong to the task and so to every command."""
    found = []
    for name in ("--sample-break-mode", "--tokens-per-sample"):
        found += options[options.index(name) : options.index(name) + 2]
    return found


@pytest.mark.parametrize("name", VARIANTS)
def test_train_validate_eval_lm_and_generate_agree(name: str, shell: Shell, world: World, tmp_path: Path) -> None:
    prior, options = VARIANTS[name]
    trained = shell.run(
        "fairseq-train", *world.train_args(prior, tmp_path), *options, "--max-epoch", 2, "--weight-decay", 0.0001
    )
    first, last = trained.json_lines("valid")
    assert max(first["valid_nats"], last["valid_nats"]) < math.log(56)
    assert last["valid_loss"] == pytest.approx(last["valid_nats"] / math.log(2), abs=1e-3)

    checkpoint = tmp_path / "checkpoint_last.pt"
    common = [*world.task_args(prior), "--path", checkpoint, "--num-workers", 0, "--log-format", "json"]
    validated = shell.run("fairseq-validate", *common, *EVERY_SENTENCE, "--max-tokens", 100, "--valid-subset", "valid")
    (again,) = validated.json_lines("valid")
    assert again["valid_nats"] == pytest.approx(last["valid_nats"], abs=2e-4)
    assert again["valid_nats_NOUN"] == pytest.approx(last["valid_nats_NOUN"], abs=2e-3)

    scored = shell.run("fairseq-eval-lm", *common, "--gen-subset", "valid", "--max-tokens", 70, *breaking(options))
    match = re.search(r"Loss \(base 2\): ([\d.]+), Perplexity: ([\d.]+)", scored.out)
    assert match is not None
    assert float(match[1]) == pytest.approx(again["valid_nats"] / math.log(2), abs=2e-4)
    assert float(match[2]) == pytest.approx(math.exp(again["valid_nats"]), rel=1e-3)

    if breaking(options) != BREAKING:
        return
    generated = shell.run(
        "fairseq-generate", *common, "--gen-subset", "test", "--batch-size", 5, "--beam", 3, "--nbest", 2,
        "--prefix-size", 2, "--max-len-b", 12, *BREAKING, *EVERY_SENTENCE,
    )  # fmt: skip
    lines = world.text("test")
    found = generated.hypotheses()
    assert sorted(found) == list(range(len(lines)))
    for number, pair in found.items():
        assert len(pair) == 2
        assert pair[0][0] >= pair[1][0]
        assert all(words.split()[:2] == lines[number].split()[:2] for _, words in pair)


def test_the_scores_of_a_search_are_the_loss_of_what_it_found(shell: Shell, world: World, trained: Path) -> None:
    """Unnormalised, without length limits that bite: H's score is log2 p of the whole sentence."""
    generated = shell.run(
        "fairseq-generate", *world.task_args(), "--path", trained / "checkpoint_best.pt", "--gen-subset", "test",
        "--batch-size", 4, "--beam", 4, "--prefix-size", 3, "--unnormalized", "--max-len-b", 40, *BREAKING,
        *EVERY_SENTENCE,
    )  # fmt: skip
    setting = build(world.train_args())
    setting.model.load_state_dict(read_checkpoint(trained / "checkpoint_best.pt")["model"])
    setting.model.eval()
    assert len(generated.hypotheses()) == 16
    found = [pairs[0] for _, pairs in sorted(generated.hypotheses().items())]
    with torch.no_grad():
        sample = batch(setting.task.dictionary, [words for _, words in found])
        losses, _, _ = setting.criterion(setting.model, sample, reduce=False)
    for (score, words), loss in zip(found, losses.sum(1).tolist(), strict=True):
        assert score == pytest.approx(-loss / math.log(2), abs=1e-3), words


def test_sampling(shell: Shell, world: World, trained: Path) -> None:
    """The same seed gives the same samples; the best of one is the greedy string."""

    def sample(*options: object) -> list[str]:
        result = shell.run(
            "fairseq-generate", *world.task_args(), "--path", trained / "checkpoint_best.pt", "--gen-subset", "test1",
            "--batch-size", 8, "--prefix-size", 1, "--max-len-b", 10, *BREAKING, *options,
        )  # fmt: skip
        return [words for _, pairs in sorted(result.hypotheses().items()) for _, words in pairs]

    sampling = ("--sampling", "--beam", 5, "--nbest", 5)
    first = sample(*sampling, "--seed", 3)
    assert len(first) == 40
    assert first == sample(*sampling, "--seed", 3)
    assert len(set(first)) > 8
    assert sample("--sampling", "--sampling-topk", 1, "--beam", 1) == sample("--beam", 1)
    few = sample(*sampling, "--sampling-topk", 2, "--temperature", 0.5)
    assert len(few) == 40
    assert few != first


def test_interactive_goes_on_from_prefixes(shell: Shell, world: World, trained: Path) -> None:
    """Like fairseq-generate from the same prefixes; words outside the dictionary are read as <unk>."""
    options = ("--path", trained / "checkpoint_best.pt", "--beam", 3, "--nbest", 3, "--max-len-b", 12)
    prefixes = ["le chat", "la", "une pomme verte tient", "le zyx voit"]
    typed = shell.run("fairseq-interactive", *world.task_args(), *options, stdin="\n".join(prefixes) + "\n")
    found = typed.hypotheses()
    assert len(found) == 4
    for prefix, best in zip(prefixes, found.values(), strict=True):
        assert len(best) == 3
        assert all(words.startswith(prefix.replace("zyx", "<unk>")) for _, words in best)
    buffered = shell.run(
        "fairseq-interactive", *world.task_args(), *options, "--buffer-size", 4, "--batch-size", 4,
        stdin="\n".join(prefixes) + "\n",
    )  # fmt: skip
    for one, other in zip(found.values(), buffered.hypotheses().values(), strict=True):
        assert [words for _, words in one] == [words for _, words in other]
        assert [score for score, _ in one] == pytest.approx([score for score, _ in other], abs=1e-4)
