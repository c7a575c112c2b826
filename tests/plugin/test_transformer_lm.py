"""llrnn_transformer_lm: steps of a search, every background, presets, all commands, and what it refuses."""

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from every_kind import TRANSFORMER
from model_checks import assert_every_command_reads_it, assert_every_weight_has_a_gradient
from shell import Shell
from tiny_grammar import grammar
from tiny_world import TRAINING, World, assert_prefixes_agree, batch, build, randomised

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.recipe import OpenOptions, Recipe
from fairseq_llrnn.registry import lost

LINES = ["le chat voit la mer", "une pomme verte tient la tour"]
PRE_NORM, TIED = "--decoder-normalize-before", "--tie-features"


def arguments(world: World, *options: object, prior: str = "prior", save_dir: Path | None = None) -> list[object]:
    saving = ["--no-save"] if save_dir is None else ["--save-dir", save_dir, "--no-epoch-checkpoints"]
    return [*world.task_args(prior), *TRANSFORMER, *TRAINING, *saving, *options]


# ---- the network -----------------------------------------------------------------------------------------------------


BACKGROUNDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "uniform": {"background": "uniform"},
    "ngram(3, folds=2)": {},
    "cache(20, learned)": {},
    "automaton:GRAMMAR": {},
    "0.7 ngram:2 plus 0.3 cache:20 with weights learned": {},
    "ngram:2 plus uniform with weights per position": {},
    "ngram:2 times uniform at temperature 2": {},
    "unigram plus cache:9": {"open_vocabulary": OpenOptions(types=3)},
}


@pytest.mark.parametrize("options", [[], [PRE_NORM, TIED]], ids=["post", "pre tied"])
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_steps_of_a_search_equal_the_whole_sequence(
    world: World, background: str, options: list[str], tmp_path: Path
) -> None:
    """Also of a sentence of another length, where the search begins with a prefix."""
    (tmp_path / "grammar.txt").write_text(grammar(), encoding="utf-8")
    recipe = Recipe(
        text=world.place / "train.txt", words=LexiconOptions(lexicon=world.place / "lexicon.tsv"), top_words=9,
        **{"background": background.replace("GRAMMAR", str(tmp_path / "grammar.txt")), **BACKGROUNDS[background]},
    )  # fmt: skip
    prior = build_prior(build(arguments(world)).task.dictionary.symbols, recipe)
    setting = randomised(arguments(world, *options), prior, scale=0.3, double=True)
    for first in (1, 2):
        assert_prefixes_agree(setting, LINES, first=first, rtol=1e-6, atol=1e-9)


def test_a_tree_has_the_same_steps(world: World) -> None:
    options = ["--output-tree", "huffman"]
    if lost(options[0]):
        pytest.skip("systems/output_trees is not there")
    assert_prefixes_agree(randomised(arguments(world, *options), scale=0.3, double=True), LINES, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("norm", [[], [PRE_NORM]], ids=["post", "pre"])
def test_where_it_normalises(world: World, norm: list[str]) -> None:
    """Hidden states and first scores have unit variance; only a pre-norm decoder normalises after its last block."""
    setting = build(arguments(world, "--decoder-embed-dim", "64", *norm))
    model = setting.model.eval()
    assert (model.decoder.body.layer_norm is not None) == bool(norm)
    hidden, extra = model(**batch(setting.task.dictionary, world.text("train"))["net_input"])
    torch.testing.assert_close(hidden.var(-1, correction=0), torch.ones(hidden.shape[:2]), rtol=1e-3, atol=0)
    read = model.decoder.body.embed_scale * model.decoder.head.embed(torch.arange(4, len(setting.task.dictionary)))
    scores = model.decoder.head.output.class_scores(hidden[extra["condition"].previous.ne(1)])
    for each in (read, scores):
        assert each.square().mean().sqrt().item() == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize(
    "arch, sizes",
    [
        ("llrnn_transformer_lm_small", (256, 1024, 2, 4, False)),
        ("llrnn_transformer_lm", (512, 2048, 6, 8, False)),
        ("llrnn_transformer_lm_big", (1024, 4096, 12, 16, True)),
    ],
)
def test_presets(world: World, arch: str, sizes: tuple[int, int, int, int, bool]) -> None:
    """An option of the same name overrules one of a preset."""

    def found(*options: str) -> tuple[Any, ...]:
        model = build([*world.task_args(), "--arch", arch, *TRAINING, "--no-save", *options]).model
        cfg = model.decoder.body.cfg.decoder
        assert model.decoder.head.hidden_size == model.decoder.head.embed_size == cfg.embed_dim == cfg.output_dim
        assert len(model.decoder.body.layers) == cfg.layers
        return cfg.embed_dim, cfg.ffn_embed_dim, cfg.layers, cfg.attention_heads, cfg.normalize_before

    with torch.device("meta") if sizes[0] > 512 else nullcontext():  # 150 million numbers
        assert found() == sizes
    assert found("--decoder-layers", "1", "--decoder-ffn-embed-dim", "8") == (sizes[0], 8, 1, *sizes[3:])


def test_no_sentence_is_too_long(world: World) -> None:
    """Sinusoids go on behind the table that the model begins with."""
    setting = build(arguments(world))
    line = " ".join(["le chat voit la mer"] * 300)
    sample = batch(setting.task.dictionary, [line])
    assert setting.model.max_positions() > sample["target"].size(1) > 1024
    with torch.no_grad():
        assert setting.criterion(setting.model.eval(), sample)[0].isfinite()


def test_every_weight_is_trained(world: World) -> None:
    for options in ([], [PRE_NORM, TIED]):
        setting = build(arguments(world, *options))
        setting.criterion(setting.model.train(), batch(setting.task.dictionary, world.text("train")))[0].backward()
        assert_every_weight_has_a_gradient(setting)


# ---- commands --------------------------------------------------------------------------------------------------------


def test_every_command_reads_a_trained_model(shell: Shell, world: World, tmp_path: Path) -> None:
    """With dropout and a rate that rises first."""
    options = [PRE_NORM, "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 10]
    done = shell.run("fairseq-train", *arguments(world, *options, save_dir=tmp_path), "--max-epoch", 3)
    first, *_, last = (line["valid_nats"] for line in done.json_lines("valid"))
    assert last < math.log(56) and last <= first
    assert_every_command_reads_it(shell, world, tmp_path / "checkpoint_last.pt", last)


@pytest.mark.parametrize(
    "options, message",
    [
        (
            ["--decoder-attention-heads", "3"],
            r"--decoder-embed-dim 16: expected a multiple of --decoder-attention-heads 3",
        ),
        (["--decoder-layers", "0"], r"--decoder-layers 0: expected a number of at least 1"),
        (["--decoder-embed-dim", "0"], r"--decoder-embed-dim 0: expected a number of at least 1"),
        (["--dropout", "1"], r"--dropout 1\.0: expected a probability"),
        (["--attention-dropout", "-1"], r"--attention-dropout -1\.0: expected a probability"),
        ([TIED, "--start-at-background"], "--start-at-background and --tie-features exclude each other"),
    ],
)
def test_what_is_refused(world: World, options: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(arguments(world, *options))
