"""Words spelled by a network, through the commands: prior, training, resuming, scores, searches, wrong options."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from model_checks import parallel
from shell import Shell
from tiny_world import World, batch, build, open_prior, randomised, read_checkpoint
from translation_world import TranslationWorld

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.open_vocabulary.open_strings import log_spelling
from fairseq_llrnn.plugin.models.log_linear_decoder import bfloat16_on

ENDS = ["--sample-break-mode", "eos", "--tokens-per-sample", "64"]
SMALL = ["--speller-embed-dim", 6, "--speller-hidden-size", 10]


@pytest.fixture(scope="module")
def opened(shell: Shell, world: World) -> str:
    """The tiny world's prior with open classes that a network spells."""
    return open_prior(shell, world, world.data, "neural", kind="neural")


@pytest.fixture(scope="module")
def model(shell: Shell, world: World, opened: str) -> Path:
    """A checkpoint after two epochs."""
    place = world.place / "neural-model"
    shell.run("fairseq-train", *world.train_args("neural", place), *SMALL, "--max-epoch", 2)
    return place / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def setting(world: World, opened: str) -> Any:
    """fairseq's task and model in float64, every parameter its own value."""
    return randomised([*world.train_args("neural"), *map(str, SMALL)], double=True)


def losses(setting: Any, lines: list[str]) -> tuple[torch.Tensor, dict[str, Any], Any]:
    sample = batch(setting.task.dictionary, lines)
    batch_of = setting.model.decoder(sample["net_input"]["src_tokens"])[1]["batch"]
    return setting.model.decoder.head.target_log_probs(batch_of, sample["target"]), sample, batch_of


def test_a_string_is_unk_and_its_spelling(setting: Any) -> None:
    """log p(<unk> | K) Σ_o r_o(K) P(w | h, o), one word after the other; other targets are as ever."""
    setting.model.eval()
    found, sample, record = losses(setting, ["le chat xyzzy voit 1999", "le Zoé"])
    head, dictionary = setting.model.decoder.head, setting.task.dictionary
    known = sample["target"].masked_fill(sample["target"] >= len(dictionary), dictionary.unk())
    of_known = head.target_log_probs(record, known)
    scores, table = record.open_scores, head.open_words.table
    strings = (sample["target"] >= len(dictionary)).nonzero().tolist()
    assert len(strings) == 3
    expected = of_known.clone()
    for row, place in strings:
        ids = sample["target"][row, place : place + 1].numpy()
        log_ngrams = torch.from_numpy(table.rows()[0][ids - table.words.num_words])
        speller, state = head.open_words.speller, record.hidden[row, place][None]
        log_strings = speller.log_strings(state, ids, log_ngrams)
        expected[row, place] += log_spelling(scores[row, place][None], log_strings)[0]
    torch.testing.assert_close(found, expected)
    grown = losses(setting, ["le chat xyzzy voit 1999"])[0]
    torch.testing.assert_close(grown[0], found[0])


def test_the_context_changes_the_spelling(setting: Any) -> None:
    setting.model.eval()
    head = setting.model.decoder.head
    spelled = head.open_words.speller.spelled.of_strings(["xyzzy"] * 2)
    hidden = torch.randn(2, head.hidden_size, dtype=torch.float64)
    one, other = head.open_words.speller.log_neural(hidden, spelled)
    assert not torch.isclose(one, other).any()


def test_every_parameter_has_a_gradient_in_every_batch(setting: Any) -> None:
    setting.model.train()
    for lines in (["le chat voit"], ["le chat xyzzy voit"], ["le xyzzy", "Zoé 12 voit"]):
        setting.model.zero_grad()
        loss, sample, _ = losses(setting, lines)
        loss[sample["target"].ne(setting.task.dictionary.pad())].sum().backward()
        missing = [name for name, p in setting.model.named_parameters() if p.grad is None]
        assert not missing
        moved = setting.model.decoder.head.open_words.speller.output.weight.grad.abs().sum() > 0
        assert bool(moved) == any(word not in setting.task.prior.symbols for line in lines for word in line.split())
    setting.model.eval()


@pytest.mark.parametrize("unused", [False, True])
def test_under_torchs_distributed_data_parallel(setting: Any, unused: bool) -> None:
    """One process of it, a batch with unknown words between two that have none."""
    from torch import distributed

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        wrapped = parallel(setting.model.train(), find_unused_parameters=unused)
        for lines in (["le chat voit"], ["le chat xyzzy voit"], ["le chat voit"]):
            sample = batch(setting.task.dictionary, lines)
            _, extra = wrapped(sample["net_input"]["src_tokens"])
            setting.model.decoder.head.target_log_probs(extra["batch"], sample["target"]).sum().backward()
    finally:
        distributed.destroy_process_group()
        setting.model.eval()


def test_bf16_products_leave_the_spelling_in_float32(world: World, opened: str) -> None:
    made = build([*world.train_args("neural"), *map(str, SMALL), "--bf16-products"])
    made.model.train()
    loss, _, record = losses(made, ["le chat xyzzy voit 1999"])
    assert record.hidden.dtype == (torch.bfloat16 if bfloat16_on("cpu") else torch.float32)
    assert loss.dtype == torch.float32
    loss.sum().backward()
    assert bool(loss.isfinite().all()) and made.model.decoder.head.open_words.speller.gate.grad.dtype == torch.float32


# ---- the commands ---------------------------------------------------------------------------------------------------


def test_training_changes_the_spelling(model: Path) -> None:
    weights = read_checkpoint(model)["model"]
    assert weights["decoder.head.open_words.speller.output.weight"].abs().max() > 0
    assert weights["decoder.head.open_words.speller.gate"].abs().max() > 0
    assert weights["decoder.head.open_words.speller.characters.weight"].size(1) == SMALL[1]


def test_scores_of_any_text(shell: Shell, world: World, model: Path) -> None:
    """Bits of a text of known words are those of fairseq-eval-lm; unknown words are spelled."""
    text = "\n".join(world.text("test")) + "\n"
    scored = json.loads(shell.run("llrnn", "score", "--path", model, "--open", "--json", stdin=text).out)
    evaluated = shell.run("fairseq-eval-lm", *world.task_args("neural"), "--path", model, "--gen-subset", "test", *ENDS)
    assert f"Loss (base 2): {scored['bits_per_token']:.3f}"[:-1] in evaluated.err + evaluated.out
    strange = "le chat xyzzy voit Zoé\n\n<unk> <s> 1999 \U0001d11e\n"
    scored = json.loads(shell.run("llrnn", "score", "--path", model, "--open", "--json", stdin=strange).out)
    assert scored["unknown_words"] == 6 and scored["spelling_bits"] > 60
    parts = [scored[f"{name}_bits"] for name in ("known", "unknown", "spelling", "end")]
    assert sum(parts) == pytest.approx(scored["bits"]) and min(parts) > 0
    lines = shell.run("llrnn", "score", "--path", model, "--open", "--per-sentence", stdin=strange).out.splitlines()
    assert sum(float(line.split("\t")[2]) for line in lines[1:]) == pytest.approx(scored["bits"], rel=1e-4)


def test_explain_sums_to_what_scores_say(shell: Shell, model: Path) -> None:
    explained = json.loads(shell.run("llrnn", "explain", "--path", model, "--json", "le chat xyzzy voit").out)
    command = ("llrnn", "score", "--path", model, "--open", "--json")  # explain reads unknown words as strings, too
    scored = json.loads(shell.run(*command, stdin="le chat xyzzy voit\n").out)
    nats = sum(word["nats"] for word in explained["words"])
    assert nats / math.log(2) == pytest.approx(scored["bits"] - scored["spelling_bits"], rel=1e-4)


@pytest.mark.parametrize("options", [["--beam", 6, "--nbest", 6], ["--sampling", "--beam", 6, "--nbest", 6]])
def test_searches_spell_unknown_words(options: list[object], shell: Shell, world: World, model: Path) -> None:
    command = ("fairseq-interactive", *world.task_args("neural"), "--path", model, "--max-len-b", 8, *options)
    found = [shell.run(*command, "--unkpen", -4, "--log-format", "none", stdin="le xyzzy\n") for _ in range(2)]
    first, again = ([text.split() for _, text in one.hypotheses()[0]] for one in found)
    assert first == again
    assert all(text[:2] == ["le", "xyzzy"] for text in first)
    symbols = (world.data / "dict.txt").read_text(encoding="utf-8").split()
    assert {word for text in first for word in text[2:]} - set(symbols) and "<unk>" not in found[0].out


@pytest.mark.parametrize(
    ("prior", "options", "message"),
    [
        ("prior", ["--speller-hidden-size", "8"], "--speller-… needs a prior whose open vocabulary"),
        ("neural", ["--speller-hidden-size", "0"], "--speller-hidden-size 0: expected a number of at least 1"),
        ("neural", ["--speller-embed-dim", "-1"], "--speller-embed-dim -1: expected a number of at least 1"),
        ("neural", ["--speller-dropout", "1.0"], "--speller-dropout 1.0: expected a probability from 0 to below 1"),
    ],
)
def test_wrong_options(prior: str, options: list[str], message: str, world: World, opened: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        build([*world.train_args(prior), *options])


@pytest.mark.parametrize("arch", ["llrnn_lstm", pytest.param("llrnn_transformer", marks=pytest.mark.slow)])
def test_translations(arch: str, shell: Shell, translation: TranslationWorld, tmp_path: Path) -> None:
    """Trained; unknown words of translations are spelled."""
    task, place = translation.task_args("neural"), tmp_path / "model"
    shell.run(
        "llrnn", "prior", "--dict", translation.data / "dict.tgt.txt", "--top-words", 20, "--open-vocabulary", "neural",
        "--set", "open_vocabulary.types=3", "--out", translation.data / "neural",
    )  # fmt: skip
    shell.run(
        "fairseq-train", *translation.train_args(arch, "neural", place), *SMALL, "--bf16-products", "--max-epoch", 1
    )
    search = ("--path", place / "checkpoint_last.pt", "--unkpen", -6, "--beam", 4, "--max-len-b", 8)
    for more in ([], ["--sampling", "--seed", 2, "--nbest", 4]):
        out = shell.run("fairseq-interactive", *task, *search, *more, stdin="el tahc\n").out
        assert re.search(r"^H-0\t", out, re.MULTILINE) and "<unk>" not in out
