"""What the criterion logs, and what its penalty does."""

import math

import pytest
import torch
from shell import Shell
from tiny_world import World, batch, build, randomise


def test_the_validation_log_adds_up(shell: Shell, world: World, trained: object) -> None:
    """nats, base 2, perplexity, ‖a‖; the loss by kind, weighted by the kinds' counts, is the whole."""
    counts = {"end": 0, "NOUN": 0, "DET": 0, "ADJ": 0, "VERB": 0, "mixed": 0}
    kinds = {}
    for row in (world.place / "lexicon.tsv").read_text(encoding="utf-8").splitlines():
        word, _, upos, _ = row.split("\t")
        kinds[word] = upos if word not in kinds else "mixed"
    for line in world.text("valid"):
        counts["end"] += 1
        for word in line.split():
            counts[kinds[word]] += 1
    validated = shell.run(
        "fairseq-validate", *world.task_args(), "--path", f"{trained}/checkpoint_last.pt", "--max-tokens", 60,
        "--required-batch-size-multiple", 1, "--log-format", "json", "--num-workers", 0,
    )  # fmt: skip
    (log,) = validated.json_lines("valid")
    assert {key.removeprefix("valid_nats_") for key in log if key.startswith("valid_nats_")} == set(counts)
    total = sum(log[f"valid_nats_{kind}"] * count for kind, count in counts.items())
    assert total / sum(counts.values()) == pytest.approx(log["valid_nats"], abs=1e-3)
    assert log["valid_loss"] == log["valid_nll_loss"] == pytest.approx(log["valid_nats"] / math.log(2), abs=1e-3)
    assert log["valid_ppl"] == pytest.approx(math.exp(log["valid_nats"]), abs=0.05)
    assert log["valid_adaptor_norm"] > 0


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_the_loss_is_the_likelihood_and_the_penalty(world: World, p: float) -> None:
    setting = build([*world.train_args(), "--adaptor-penalty", "0.3", "--adaptor-norm", str(p)], double=True)
    setting.criterion.double()
    randomise(setting.model)
    decoder = setting.model.decoder
    sample = batch(setting.task.dictionary, world.text("test1"))
    loss, size, log = setting.criterion(setting.model, sample)
    hidden, _ = setting.model(**sample["net_input"])
    real = sample["target"] != setting.task.dictionary.pad()
    adaptor = (hidden @ decoder.head.output.weight.T + decoder.head.output.bias)[real]
    norms = torch.linalg.vector_norm(adaptor, ord=p, dim=-1)
    assert size == int(real.sum()) == sample["ntokens"]
    assert loss.item() == pytest.approx(log["nll_loss"].item() + 0.3 * norms.sum().item(), rel=1e-9)
    assert log["loss"].item() == pytest.approx(loss.item())
    setting.model.eval()
    details = setting.criterion(setting.model, sample)[2]
    euclid = torch.linalg.vector_norm(adaptor, dim=-1).sum().item()
    assert details["adaptor_norm"].item() == pytest.approx(euclid, rel=1e-9)
    assert details["loss"].item() == pytest.approx(log["nll_loss"].item())  # validation has no penalty
    setting.model.train()
    per_position = setting.criterion(setting.model, sample, reduce=False)[0]
    assert per_position.shape == sample["target"].shape
    assert per_position.sum().item() == pytest.approx(loss.item(), rel=1e-9)


def test_smoothed_labels_with_a_uniform_background_are_the_usual_ones_over_words(world: World) -> None:
    setting = build([*world.train_args("softmax"), "--label-smoothing", "0.1"], double=True)
    setting.criterion.double()
    randomise(setting.model)
    sample = batch(setting.task.dictionary, world.text("test1"))
    loss, _, log = setting.criterion(setting.model, sample)
    output = setting.model(**sample["net_input"])
    log_p = setting.model.get_normalized_probs(output, log_probs=True)  # shape: (B, T, V)
    real = sample["target"] != setting.task.dictionary.pad()
    words = ~torch.isneginf(log_p[0, 0]) & (torch.arange(log_p.size(2)) >= setting.task.dictionary.nspecial)
    nll = -log_p.gather(2, sample["target"].unsqueeze(2)).squeeze(2)[real]
    everywhere = -log_p[real][:, words].mean(-1)
    assert loss.item() == pytest.approx((0.9 * nll + 0.1 * everywhere).sum().item(), rel=1e-6)
    assert log["nll_loss"].item() == pytest.approx(nll.sum().item(), rel=1e-6)


def test_smoothing_spreads_over_all_words_alike_whatever_the_background(world: World) -> None:
    setting = build([*world.train_args(), "--label-smoothing", "0.1"], double=True)
    setting.criterion.double()
    randomise(setting.model)
    sample = batch(setting.task.dictionary, world.text("test1"))
    log_p = setting.model.get_normalized_probs(setting.model(**sample["net_input"]), log_probs=True)
    real = sample["target"] != setting.task.dictionary.pad()
    words = ~torch.isneginf(log_p[0, 0]) & (torch.arange(log_p.size(2)) >= setting.task.dictionary.nspecial)
    nll = -log_p.gather(2, sample["target"].unsqueeze(2)).squeeze(2)[real]
    expected = (0.9 * nll - 0.1 * log_p[real][:, words].mean(-1)).sum()  # but for a constant: the background
    weights = [weight for weight in setting.model.parameters() if weight.requires_grad]
    wanted = torch.autograd.grad(expected, weights)
    found = torch.autograd.grad(setting.criterion(setting.model, sample)[0], weights)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-8)
