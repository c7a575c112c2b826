"""Commands that were killed, or met a full disk, go on as if nothing had happened: short form of scripts/torture.py."""

from pathlib import Path

import pytest
from evidence_world import EvidenceWorld
from fuzzing import fuzz
from hostile_checkpoints import checkpoint_targets
from hostile_models import make_model_prior, model_prior_target
from kills import Stopper, Subject, priors, rescorings, trainings
from races import race
from shell import Shell
from tiny_world import World
from translation_world import TranslationWorld

SUBJECTS = [
    pytest.param("train: mixture with a cache", marks=pytest.mark.slow), "train: evidence", "llrnn prior",
    "llrnn rescore",
]  # fmt: skip


@pytest.fixture(scope="module")
def subjects(
    shell: Shell, world: World, translation: TranslationWorld, evidence: EvidenceWorld,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Subject]:  # fmt: skip
    folder = tmp_path_factory.mktemp("subjects")
    found = [*trainings(shell, world, translation, evidence), *priors(world), *rescorings(shell, translation, folder)]
    return {subject.name: subject for subject in found}


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_kill_and_a_full_disk_lose_nothing(
    name: str, subjects: dict[str, Subject], shell: Shell, tmp_path: Path
) -> None:
    stopper = Stopper(shell, subjects[name], tmp_path)
    trials = [stopper.kill(1, 1), stopper.fill(1, 1)]
    assert not [trial for trial in trials if trial.fault]


def test_two_writers_leave_one_prior(translation: TranslationWorld, tmp_path: Path) -> None:
    assert race(translation, tmp_path / "race") == ""


def test_a_damaged_model_is_used_or_refused(shell: Shell, world: World, tmp_path: Path) -> None:
    """A checkpoint, or a prior with one inside."""
    shell.run("fairseq-train", *world.train_args(save_dir=tmp_path / "model"), "--max-update", 1)
    checkpoint = tmp_path / "model" / "checkpoint_last.pt"
    prior = make_model_prior(world, checkpoint, shell, tmp_path / "prior")
    for name, target in {**checkpoint_targets(checkpoint, world.data), **model_prior_target(prior)}.items():
        found = fuzz(target, name, 12, 1, tmp_path)
        assert not found.faults and found.counts["refused"], name
    assert found.counts["accepted"]
