"""`llrnn prior --background model:FILE`: a trained model inside a prior, in training, search and explanations."""

import hashlib
import json
import math
import re
import shutil
from pathlib import Path

import pytest
import torch
from shell import Shell, assert_says
from small_corpus import Done, Llrnn
from tiny_world import MODEL, TRAINING, USER_DIR, World, read_checkpoint

from fairseq_llrnn.backgrounds.language_model import ModelBackground
from fairseq_llrnn.plugin.models.frozen_lm import load_general_model
from fairseq_llrnn.prior.prior import Prior


@pytest.fixture(scope="module")
def general(shell: Shell, world: World) -> Path:
    """A model over a dictionary that says `chien` for `chat` and lacks `mer`."""
    place = world.place / "general-of-priors"
    place.mkdir()
    text = (world.place / "train.txt").read_text(encoding="utf-8").replace("chat", "chien").replace("mer", "lune")
    (place / "train.txt").write_text(text, encoding="utf-8")
    shell.run(
        "fairseq-preprocess", "--only-source", "--trainpref", place / "train.txt", "--validpref", place / "train.txt",
        "--destdir", place / "data-bin", "--workers", 1,
    )  # fmt: skip
    features = ("--lexicon", world.place / "lexicon.tsv", "--top-words", 20)
    shell.run("llrnn", "prior", "--dict", place / "data-bin" / "dict.txt", *features, "--out", place / "data-bin/prior")
    shell.run(
        "fairseq-train", place / "data-bin", *MODEL, *TRAINING, "--task", "llrnn_language_modeling", "--cpu",
        "--user-dir", USER_DIR, "--save-dir", place, "--no-epoch-checkpoints", "--max-epoch", 3,
    )  # fmt: skip
    return place / "checkpoint_last.pt"


TEST = ("--gen-subset", "test", "--max-tokens", 200, "--sample-break-mode", "eos", "--required-batch-size-multiple", 1)


def arguments(world: World, general: Path, *options: object) -> list[object]:
    features = ("--lexicon", world.place / "lexicon.tsv", "--top-words", 20)
    return ["prior", "--dict", world.data / "dict.txt", *features, "--background", f"model:{general}", *options]


@pytest.fixture(scope="module")
def built(shell: Shell, world: World, general: Path) -> tuple[Path, str]:
    """A prior with that model as its background, and what was said on stderr."""
    out = world.place / "with-model"
    options = ("--background", f"model({general}, weight=0.9, temperature=1.25)", "--out", out)
    result = shell.run("llrnn", *arguments(world, general, *options))
    return out, result.err


def test_the_prior_is_whole_without_the_places_of_the_training(
    llrnn: Llrnn, world: World, built: tuple[Path, str], tmp_path: Path
) -> None:
    out, said = built
    assert "note: 2 words that the background's model lacks: they share the probability of its <unk>" in said
    assert "note: 1 words of the background's model that --dict lacks: they are dropped" in said
    moved = tmp_path / "elsewhere"
    shutil.copytree(out, moved)
    prior = Prior.load(moved, load_general_model)
    background = prior.background()
    assert isinstance(background, ModelBackground) and background.temperature == 1.25
    assert background.bind().view(background.bind().start(2)).log_weights.dtype == torch.float32
    assert background.log_weight == math.log(0.9) and background.rest is not None
    assert prior.fingerprint == Prior.load(out).fingerprint
    assert prior.fingerprint != Prior.load(world.prior("prior")).fingerprint
    # it can take its own place, and be looked into without fairseq
    prior.save(moved)
    assert Prior.load(moved).fingerprint == prior.fingerprint
    assert "model(" in llrnn("show", moved).out


def test_train_resume_evaluate_generate_and_explain(
    shell: Shell, world: World, built: tuple[Path, str], tmp_path: Path
) -> None:
    prior, _ = built
    whole = tmp_path / "whole"
    train = [str(world.data), "--user-dir", USER_DIR, "--task", "llrnn_language_modeling", "--cpu", "--prior", prior]
    train += [*MODEL, *TRAINING, "--no-epoch-checkpoints"]
    shell.run("fairseq-train", *train, "--save-dir", whole, "--max-epoch", 2)
    state = read_checkpoint(whole / "checkpoint_last.pt")["model"]
    assert not any("background" in name for name in state)
    path = whole / "checkpoint_last.pt"
    ours = [str(world.data), "--user-dir", USER_DIR, "--task", "llrnn_language_modeling", "--cpu", "--path", path]
    evaluated = shell.run("fairseq-eval-lm", *ours, "--prior", prior, *TEST)
    (bits,) = re.findall(r"Loss \(base 2\): ([\d.]+)", evaluated.out + evaluated.err)
    lines = world.text("test")
    explained = shell.run("llrnn", "explain", "--path", path, "--json", "-", stdin="\n".join(lines) + "\n")
    words = [word for line in explained.out.splitlines() for word in json.loads(line)["words"]]
    nats = -sum(math.log(word["p"]) for word in words) / len(words)
    assert nats == pytest.approx(float(bits) * math.log(2), abs=2e-3)
    generated = shell.run(
        "fairseq-generate", *ours, "--prior", prior, "--gen-subset", "test1", "--beam", 3, "--max-len-b", 8,
        "--batch-size", 4, "--num-workers", 0, "--required-batch-size-multiple", 1, "--sample-break-mode", "eos",
    )  # fmt: skip
    assert len(re.findall(r"^H-\d+\t", generated.out, re.MULTILINE)) == len(world.text("test1"))


# ---- what a user can get wrong --------------------------------------------------------------------------------------


def assert_is_said(done: Done, said: str) -> None:
    assert done.code == 2
    *_, line = done.err.strip().splitlines()  # after what a user should know of the checkpoint
    assert line.startswith("llrnn: error: ") and said in line


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--background", "model:nowhere.pt"), "expected a checkpoint after the name, found none"),
        (("--background", "model({}, temperature=0)"), "temperature: expected a number of at least 0.01, found 0;"),
        (("--background", "model({}, weight=0)"), "weight: expected a number above 0, found 0; correct it"),
        (("--background", "model({}, folds=3)"), "there is no key folds; there are: weight, temperature, data, prior"),
        (("--background", "model({}, data=nowhere)"), "nowhere: cannot be read: No such file or directory"),
        (("--background", "model({}, prior=nowhere)"), "nowhere: cannot be read: No such file or directory"),
    ],
)
def test_bad_options(
    options: tuple[str, ...], said: str, llrnn: Llrnn, world: World, general: Path, tmp_path: Path
) -> None:
    given = arguments(world, general, *(word.format(general) for word in options), "--out", tmp_path / "prior")
    assert_is_said(llrnn(*given), said)
    assert not (tmp_path / "prior").exists()


def test_another_prior_than_that_of_its_training(llrnn: Llrnn, world: World, general: Path, tmp_path: Path) -> None:
    background = f"model({general}, prior={world.prior('softmax')})"
    given = arguments(world, general, "--background", background, "--out", tmp_path / "prior")
    assert_is_said(llrnn(*given), "the prior was made for another dictionary than")


def test_a_model_of_other_words_is_warned_of(llrnn: Llrnn, general: Path, tmp_path: Path) -> None:
    words = ["chien", "roi", *(f"word{i}" for i in range(10))]
    (tmp_path / "dict.txt").write_text("".join(f"{word} 9\n" for word in words), encoding="utf-8")
    given = ["--dict", tmp_path / "dict.txt", "--top-words", 5, "--background", f"model:{general}"]
    said = llrnn("prior", *given, "--out", tmp_path / "prior").err
    assert re.search(r"warning: the background's model has 2 of the 12 words of --dict, and \d+ other", said)


def test_a_copy_that_is_no_model(shell: Shell, world: World, built: tuple[Path, str], tmp_path: Path) -> None:
    """Of a prior whose description fits: it is found when a command builds the background."""
    broken = tmp_path / "prior"
    shutil.copytree(built[0], broken)
    checkpoint, description = broken / "model" / "checkpoint.pt", json.loads((broken / "prior.json").read_text("utf-8"))
    checkpoint.write_bytes(b"\0\1 no checkpoint")
    description["parts"][0]["files"]["checkpoint.pt"] = hashlib.sha256(checkpoint.read_bytes()).hexdigest()
    (broken / "prior.json").write_text(json.dumps(description), encoding="utf-8")
    said = shell.run("fairseq-train", *world.train_args(), "--prior", broken, "--max-update", 1, code=None)
    assert_says(
        said,
        "error: the model that is the prior's background: ",
        f"{checkpoint}: refused: expected a checkpoint that fairseq saved, found a damaged one",
    )
