"""A Markov random field as the background of a model (systems/markov_field), through the commands."""

from __future__ import annotations

from pathlib import Path

from shell import Shell
from tiny_world import World

from llrnn_research.markov_field.training import FieldOptions, train


def test_a_model_is_trained_and_scores_with_it(shell: Shell, world: World, tmp_path: Path) -> None:
    """Through the commands, each a process of its own: the part is found where a prior names it."""
    train(FieldOptions([str(world.place / "train.txt")], width=4, words=40, iterations=10), str(tmp_path / "field"))
    shell.run(
        "llrnn", "prior", "--lexicon", world.place / "lexicon.tsv", "--dict", world.data / "dict.txt",
        "--top-words", 20, "--background", f"mrf:{tmp_path / 'field'}", "--out", world.prior("of-a-field"),
    )  # fmt: skip
    shown = shell.run("llrnn", "show", world.prior("of-a-field")).out
    assert "a Markov random field of order 2, rows of" in shown
    shell.run("fairseq-train", *world.train_args("of-a-field", save_dir=tmp_path / "save"), "--max-epoch", 1)
    done = shell.run(
        "llrnn", "score", "--path", tmp_path / "save" / "checkpoint_best.pt", "--json",
        stdin=(world.place / "test.txt").read_text(encoding="utf-8"),
    )  # fmt: skip
    assert "bits_per_word" in done.out
