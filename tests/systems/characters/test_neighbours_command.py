"""`llrnn show --neighbours` on trained models."""

import json
from pathlib import Path

import pytest
from shell import Shell
from tiny_world import World

SMALL = ["--input-characters", "cnn", "--character-embed-dim", "4", "--character-filters", "1:3,3:5"]


@pytest.fixture(scope="module")
def model(shell: Shell, world: World) -> Path:
    place = world.place / "neighbour-model"
    shell.run("fairseq-train", *world.train_args(save_dir=place), *SMALL, "--max-epoch", 1)
    return place / "checkpoint_last.pt"


def test_of_words_seen_or_not(shell: Shell, world: World, model: Path) -> None:
    args = ["llrnn", "show", "--neighbours", "rose", "--neighbours", "rosette", "--path", model]
    done = shell.run(*args)
    lines = done.out.splitlines()
    assert lines[0] == "rose" and "rosette   (not in the dictionary)" in lines
    kinds = [line.split("  ")[1] for line in lines if line.startswith("  ") and line[2] != " "]
    assert kinds == ["before highway", "after highway"] * 2
    found = json.loads(shell.run(*args, "--json").out)
    assert [(word["word"], word["known"]) for word in found["words"]] == [("rose", True), ("rosette", False)]
    for word in found["words"]:
        assert list(word["neighbours"]) == ["before highway", "after highway"]
        for near in word["neighbours"].values():
            assert len(near) == 8 and all(-1 <= one["cosine"] <= 1 for one in near)
            assert word["word"] not in [one["word"] for one in near]
    named = shell.run(*args, "--prior", world.prior("prior"), "--data", world.data)
    assert named.out == done.out


def test_of_a_model_without_characters(shell: Shell, trained: Path) -> None:
    done = shell.run("llrnn", "show", "--path", trained / "checkpoint_last.pt", "--neighbours", "rose")
    assert done.out.splitlines()[1].split()[0] == "features"
    assert "note: this model reads words by their features" in done.err


def test_what_is_refused(shell: Shell, world: World, model: Path, evidence_models: dict[str, Path]) -> None:
    for args, said in (
        (["--neighbours", "rose"], "--neighbours: it needs --path FILE, found none"),
        (["--path", model], f"--path {model}: it needs --neighbours WORD, found none"),
        ([], "expected PRIOR, the folder of a prior, or --neighbours WORD"),
        (["--path", model, "--neighbours", ""], "--neighbours '': expected one word without blanks"),
        (["--path", world.place / "no.pt", "--neighbours", "rose"], "no.pt: expected a checkpoint, found no such file"),
        (["--source-prior", world.data], f"--source-prior {world.data}: it needs --neighbours WORD, found none"),
        ([world.data / "prior", "--path", model, "--neighbours", "rose"], "expected no PRIOR and no words of it"),
        (["--source", "pink", "--path", model, "--neighbours", "rose"], "expected no PRIOR and no words of it"),
        (["--path", model, "--neighbours", "rose", "--source-prior", "x"], "leave --source-prior out"),
        (["--path", evidence_models["transformer"], "--neighbours", "rose"], "found one with a table of words"),
        (["--path", evidence_models["stock"], "--neighbours", "rose"], "expected a model of ours"),
    ):
        done = shell.run("llrnn", "show", *args, code=2)
        assert said in done.err and "Traceback" not in done.err and not done.out
