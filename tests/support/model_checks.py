"""What is asked of translation models of every architecture, those of systems too."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import positions
import pytest
import torch
from dynamic_prior import LINES
from evidence_world import PREFIXES, SENTENCES, EvidenceWorld, batch, make
from shell import Shell
from tiny_world import EVERY_SENTENCE, Setting, World, build, evaluated, randomised
from translation_world import TranslationWorld, pairs

from fairseq_llrnn import SourceEmbedding
from fairseq_llrnn.evaluation.texts import sum_of
from fairseq_llrnn.plugin.models.log_linear_decoder import bfloat16_on
from fairseq_llrnn.plugin.scoring.text_bits import load_text_scorer
from fairseq_llrnn.prior.prior import Prior

_KEPT: list[torch.nn.Module] = []


def parallel(model: torch.nn.Module, **options: bool) -> torch.nn.Module:
    """torch's DistributedDataParallel, kept until this process ends.

    Its end waits, with Python's lock, for threads of gloo that may still wait for the lock to forget the last update.
    """
    from torch.nn.parallel import DistributedDataParallel

    _KEPT.append(DistributedDataParallel(model, **options))
    return _KEPT[-1]


def assert_every_weight_has_a_gradient(setting: Setting) -> None:
    idle = {name for name, p in setting.model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0}
    # a key's bias moves all scores of a query alike
    assert all(name.endswith("k_proj.bias") for name in idle), idle


def assert_sums_over_words_and_trains(setting: Setting, sample: dict[str, Any]) -> None:
    """The criterion is the sum over words, and trains all weights."""
    loss, size, log = setting.criterion(setting.model, sample)
    with torch.no_grad():
        output = setting.model(**sample["net_input"])
        whole = setting.model.get_normalized_probs(output, log_probs=True)
    target = sample["target"]
    expected = -whole.gather(2, target.unsqueeze(2)).squeeze(2)[target.ne(setting.task.target_dictionary.pad())].sum()
    torch.testing.assert_close(log["nll_loss"], expected, rtol=1e-5, atol=1e-4)
    of_length = log.get("mean_of_length", torch.tensor(0.0))
    torch.testing.assert_close(loss - of_length, expected, rtol=1e-5, atol=1e-4)
    assert size == sample["ntokens"]
    loss.backward()
    assert_every_weight_has_a_gradient(setting)


def assert_sums_over_words_and_slots_and_trains(evidence: EvidenceWorld, arch: str, prior: str, *options: str) -> None:
    """The same with evidence."""
    setting = make(evidence, arch, prior, *options)
    sample = batch(setting.task, SENTENCES, PREFIXES)
    _, size, log = setting.criterion(setting.model, sample)
    with torch.no_grad():
        output = setting.model(**sample["net_input"])
        whole = setting.model.get_normalized_probs(output, log_probs=True)  # shape: (B, T, V + J)
    target = sample["target"]
    columns = positions.columns(output[1]["batch"], target).unsqueeze(2)
    mask = target.ne(setting.task.target_dictionary.pad())
    torch.testing.assert_close(log["nll_loss"], -whole.gather(2, columns).squeeze(2)[mask].sum(), rtol=1e-5, atol=1e-4)
    assert size == sample["ntokens"] and log["count_evidence"] == 6
    setting.criterion(setting.model.train(), sample)[0].backward()
    assert_every_weight_has_a_gradient(setting)
    assert all(bool(p.grad.isfinite().all()) for p in setting.model.parameters())


def assert_every_command_reads_it(shell: Shell, world: World, path: Path, nats: float) -> None:
    """The same perplexity by validate, eval-lm and score; then searches, and explanations."""
    breaking = ["--sample-break-mode", "eos", "--tokens-per-sample", 64]
    common = [*world.task_args(), "--path", path, "--num-workers", 0]
    validated = shell.run("llrnn", "validate", world.data, "--path", path, "--valid-subset", "valid", "--cpu")
    assert float(re.search(r"nats ([\d.]+)", validated.out)[1]) == pytest.approx(nats, abs=1e-3)  # type: ignore[index]
    scored = shell.run("fairseq-eval-lm", *common, *breaking, "--gen-subset", "valid")
    perplexity = re.search(r"Perplexity: ([\d.]+)", scored.out)
    assert perplexity is not None and float(perplexity[1]) == pytest.approx(math.exp(nats), rel=2e-3)
    of_text = sum_of(load_text_scorer(str(path), 4000).lines(world.text("valid")))
    bits = (of_text.known_bits + of_text.end_bits) / (of_text.words + of_text.sentences)
    assert bits * math.log(2) == pytest.approx(nats, abs=2e-3)
    lines = world.text("test")
    options = ["--beam", 3, "--max-len-b", 12, *EVERY_SENTENCE]
    generated = shell.run(
        "fairseq-generate", *common, *breaking, "--gen-subset", "test", "--prefix-size", 2, *options
    ).best()
    assert len(generated) == len(lines)
    assert all(words.split()[:2] == lines[number].split()[:2] for number, words in generated.items())
    typed = shell.run("fairseq-interactive", *common, *options, stdin="le chat\nune pomme verte\n").best()
    assert [words.split()[:2] for words in typed.values()] == [["le", "chat"], ["une", "pomme"]]
    said = shell.run("llrnn", "explain", "--path", path, "le chat voit la mer").out
    assert all(word in said for word in ("chat", "voit", "</s>"))


def assert_bfloat16_products_are_close(args: Sequence[object]) -> None:
    losses: list[float] = []
    for options in ([], ["--bf16-products"]):
        setting = evaluated([*args, *options], scale=0.3)
        setting.model.train()
        torch.manual_seed(0)
        loss, _, _ = setting.criterion(setting.model, pairs(setting.task, LINES))
        assert loss.dtype == torch.float32
        losses.append(loss.item())
    assert (losses[0] != losses[1]) == bfloat16_on("cpu")
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def assert_architecture(translation: TranslationWorld, arch: str, option: str, value: object, layers: int) -> None:
    """Its sizes, which an option of the same name overrules."""
    arguments = [*translation.task_args(), "--arch", arch, "--criterion", "log_linear", "--optimizer", "adam"]
    arguments += ["--max-tokens", "128"]
    setting = build(arguments)
    assert getattr(setting.cfg.model, option) == value and setting.cfg.model.decoder_layers == layers
    assert build([*arguments, "--decoder-layers", "3"]).cfg.model.decoder_layers == 3
    loss, _, _ = setting.criterion(setting.model, pairs(setting.task, LINES))
    assert loss.isfinite()


def assert_reads_the_sum_of_features(args: Sequence[object], prior: Prior) -> None:
    """What an encoder with --source-prior reads, and its gradient, by the definition."""
    setting = randomised(args, scale=0.3)
    setting.model.eval().double()
    encoder = setting.model.encoder
    read = encoder.network.embedding if hasattr(encoder, "network") else encoder.embed_tokens
    assert isinstance(read, SourceEmbedding)
    weight = read.features.weight
    tokens = torch.tensor([list(range(len(prior.symbols))), [prior.index("<pad>")] * len(prior.symbols)])
    vectors = read(tokens)
    expected = torch.zeros_like(vectors)
    for i in range(len(prior.symbols)):
        for name, value in prior.input.features.row(int(prior.input.class_of[i])).items():
            if i != prior.index("<pad>"):
                expected[0, i] = expected[0, i] + value * weight[prior.input.features.index[name]]
    torch.testing.assert_close(vectors, expected)
    upstream = torch.randn_like(vectors)
    slow, fast = (torch.autograd.grad(x, weight, upstream, retain_graph=True)[0] for x in (expected, vectors))
    torch.testing.assert_close(slow, fast)
    beyond = torch.tensor([[len(prior.symbols) + 7]])
    assert torch.equal(read(beyond)[0, 0], vectors[0, prior.index("<unk>")]), "read as <unk>"
