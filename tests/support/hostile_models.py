"""Priors with a frozen model inside, damaged in themselves or in the model's files; used where accepted."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path

from fuzz_targets import Target
from hostile_checkpoints import DAMAGES
from hostile_priors import damage_in_place, use
from mutations import mutate
from shell import Shell
from tiny_world import World

from fairseq_llrnn.plugin.models.frozen_lm import load_general_model


def make_model_prior(world: World, checkpoint: Path, shell: Shell, place: Path) -> Path:
    """A prior whose background is the model of a checkpoint over the world's data."""
    features = ("--lexicon", world.place / "lexicon.tsv", "--top-words", 20)
    background = ("--background", f"model({checkpoint}, weight=0.9)")
    shell.run("llrnn", "prior", "--dict", world.data / "dict.txt", *features, *background, "--out", place)
    return place


def model_prior_target(prior: Path) -> dict[str, Target]:
    """Damage a copy, its model as often as the rest, and use it."""

    def run(place: Path, rng: random.Random) -> str:
        shutil.copytree(prior, place)
        if rng.random() < 0.5:
            damage_model(place, rng)
        else:
            damage_in_place(place, rng)
        return use(place, load_general_model)

    return {"prior: model": run}


def damage_model(prior: Path, rng: random.Random) -> None:
    """Damage the model's checkpoint, dictionary or prior; the hashes in the outer prior fit."""
    checkpoint, dictionary, inner = (prior / "model" / name for name in ("checkpoint.pt", "dict.txt", "prior"))
    which = rng.choice(("checkpoint", "dictionary", "prior", "prior"))
    if which == "checkpoint":
        checkpoint.write_bytes(DAMAGES[rng.choice(sorted(DAMAGES))](checkpoint, rng))
    elif which == "dictionary":
        dictionary.write_bytes(mutate(dictionary.read_bytes(), rng))
    else:
        damage_in_place(inner, rng)
    description = json.loads((prior / "prior.json").read_text(encoding="utf-8"))
    [model] = [part for part in description["parts"] if part["part"] == "model"]
    model["files"] = {name: _hash(prior / "model" / name) for name in model["files"]}
    (prior / "prior.json").write_text(json.dumps(description), encoding="utf-8")


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
