"""--sampled-classes in models: a sample of all classes is the exact loss, training learns, validation is exact."""

import re
from pathlib import Path

import pytest
import torch
from dynamic_prior import LINES
from evidence_world import PREFIXES, SENTENCES, EvidenceWorld
from evidence_world import batch as evidence_batch
from shell import Shell
from tiny_world import World, batch, build, evaluated, open_prior
from translation_world import TranslationWorld, pairs

from fairseq_llrnn.errors import OptionError


@pytest.mark.parametrize("kind", ["language model", "translation", "lexical", "evidence"])
def test_a_sample_of_all_classes_is_the_exact_loss_and_validation_is_exact(
    kind: str, world: World, translation: TranslationWorld, evidence: EvidenceWorld
) -> None:
    args = {
        "language model": world.train_args(),
        "translation": translation.train_args("llrnn_transformer"),
        "lexical": translation.train_args(prior="lexical"),
        "evidence": evidence.train_args(prior="lexical"),
    }[kind]
    losses, gradients = [], []
    for sampled in ("0", "100000", "5"):
        setting = evaluated([*args, "--sampled-classes", sampled], scale=0.3)
        if kind == "evidence":
            sample = evidence_batch(setting.task, SENTENCES, PREFIXES)
        else:
            sample = batch(setting.task.dictionary, LINES) if kind == "language model" else pairs(setting.task, LINES)
        setting.criterion.set_normaliser(setting.model.train().decoder.head)
        torch.manual_seed(1)
        loss, _, _ = setting.criterion(setting.model, sample)
        loss.backward()
        gradients.append({name: p.grad for name, p in setting.model.named_parameters()})
        setting.model.eval()
        losses.append((loss.detach(), setting.criterion(setting.model, sample)[0].detach()))
    (exact, valid), (whole, _), (some, also_valid) = losses
    torch.testing.assert_close(whole, exact, rtol=1e-5, atol=1e-4)
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(also_valid, valid)
    assert abs(float(some - exact)) > 1e-3


def test_sampled_training_learns(shell: Shell, world: World, tmp_path: Path) -> None:
    result = shell.run(
        "fairseq-train", *world.train_args(save_dir=tmp_path), "--sampled-classes", 12, "--max-epoch", 3
    )
    nats = [float(found) for found in re.findall(r'"valid_nats": "([\d.]+)"', result.out + result.err)]
    assert len(nats) == 3 and nats[-1] < nats[0] - 0.1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--sampled-classes", "-1"], r"--sampled-classes -1: expected 0 \(all\) or a number, e.g. 1000"),
        (["--sampled-classes", "5", "--label-smoothing", "0.1"], "not supported with --label-smoothing"),
    ],
)
def test_senseless_samples_are_refused(world: World, more: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build([*world.train_args(), *more])


def test_a_sample_of_all_classes_beside_those_of_unknown_words(
    shell: Shell, world: World, translation: TranslationWorld
) -> None:
    opened = open_prior(shell, world, translation.data, "open-sampled")
    setting = evaluated([*translation.train_args(prior=opened), "--sampled-classes", "100000"], scale=0.3)
    sample = pairs(setting.task, ["le chat xyzzy voit", "la vache verte"])
    assert (sample["target"] >= len(setting.task.target_dictionary)).any()
    exact = setting.criterion(setting.model, sample)[0]
    setting.criterion.set_normaliser(setting.model.decoder.head)
    torch.testing.assert_close(setting.criterion(setting.model.train(), sample)[0], exact)
