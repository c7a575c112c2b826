"""`llrnn explain` of a model with variable computation: numbers, a picture, one line for what is wrong."""

import json
import re
from pathlib import Path

import pytest
import torch
from shell import Shell
from tiny_world import World

from fairseq_llrnn.plugin.scoring.explainer import load_explainer
from fairseq_llrnn.systems.variable_computation.explain import (
    LINE,
    ReadSentence,
    draw_computation,
    lines_of,
)

SENTENCE = "le chat vert voit la mer"
PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def variable(shell: Shell, world: World) -> Path:
    place = world.place / "cli-variable"
    options = ("--cell", "vcgru", "--vc-sharpen-updates", 5, "--max-epoch", 1)
    shell.run("fairseq-train", *world.train_args(save_dir=place), *options)
    return place / "checkpoint_best.pt"


def test_the_share_is_that_of_reading_the_word(shell: Shell, variable: Path, tmp_path: Path) -> None:
    picture = tmp_path / "m.png"
    done = shell.run("llrnn", "explain", "--path", variable, "--computation", picture, "--json", SENTENCE)
    assert picture.read_bytes().startswith(PNG)
    assert "matplotlib" not in done.err
    words = json.loads(done.out)["words"]
    assert "computation" not in words[-1]  # the end is not read
    shares = [word["computation"] for word in words[:-1]]
    explainer = load_explainer(str(variable))
    decoder, dictionary = explainer.model.decoder, explainer.task.dictionary
    tokens = torch.tensor([[dictionary.eos(), *map(dictionary.index, SENTENCE.split())]])
    with torch.no_grad():
        run = decoder.network.run(decoder.head.embed(tokens))
    assert shares == pytest.approx(run.shares[0, 1:].mean(-1).tolist())

    table = shell.run("llrnn", "explain", "--path", variable, SENTENCE).out
    shown = [float(value) for value in re.findall(r"computes +([\d.]+) of its dimensions", table)]
    assert shown == pytest.approx(shares, abs=0.005)


def test_what_is_refused(shell: Shell, variable: Path, checkpoint: Path, tmp_path: Path) -> None:
    def refused(path: Path, picture: object) -> str:
        done = shell.run("llrnn", "explain", "--path", path, "--computation", picture, SENTENCE, code=2)
        assert "Traceback" not in done.err
        return done.err.strip().splitlines()[-1]

    assert "--computation m.pdf: expected the name of a PNG" in refused(variable, "m.pdf")
    assert "expected a model of --cell vcgru or vcrnn" in refused(checkpoint, tmp_path / "m.png")
    assert "m.png: expected a place in a folder, but there is no such" in refused(variable, tmp_path / "none" / "m.png")
    assert not (tmp_path / "m.png").exists()


def test_a_picture_that_cannot_be_written(shell: Shell, variable: Path, tmp_path: Path) -> None:
    picture = tmp_path / "m.png"
    command = ("llrnn", "explain", "--path", variable, "--computation", picture, "--top", 1, SENTENCE)
    done = shell.run(*command, code=2, disk=4000)
    assert "computes" in done.out and done.err.splitlines()[-1] == (
        f"llrnn: error: --computation {picture}: the result cannot be written (File too large); check the rights "
        "and the free space there"
    )
    assert "Traceback" not in done.err and not list(tmp_path.iterdir())


def test_without_matplotlib(shell: Shell, variable: Path, tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('no matplotlib')\n", encoding="utf-8")
    hidden = {"PYTHONPATH": str(tmp_path)}
    command = ("llrnn", "explain", "--path", variable, SENTENCE)
    done = shell.run(*command, "--computation", tmp_path / "m.png", code=2, variables=hidden)
    assert "expected the library matplotlib, found none; in a checkout of fairseq_llrnn: pip install " in done.err
    assert "Traceback" not in done.err
    assert "computes" in shell.run(*command, variables=hidden).out


def test_long_sentences_take_several_lines_of_the_picture(tmp_path: Path) -> None:
    tokens = ["$", "▁", "\\"] * LINE
    sentence = ReadSentence(tokens, [0.5] * len(tokens))
    lines = lines_of([sentence, ReadSentence([], [])])
    assert [len(line.tokens) for line in lines] == [LINE, LINE, LINE]
    draw_computation([sentence], tmp_path / "m.png")
    assert (tmp_path / "m.png").read_bytes().startswith(PNG)
