"""The measured losses of each system for every domain and fraction of its text, with its best recipe."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from stages import FACTS, LOG_PROBS, read_json
from systems import PERCENTS, SYSTEMS, TRAINED, Place, System

from fairseq_llrnn.comparison.mixtures import best_weight, loss, mixed
from fairseq_llrnn.errors import OptionError

GENERAL_MODEL = "general"


@dataclass(frozen=True)
class Outcome:
    """One system on one domain, with one fraction of its text. Losses in nats per token, ends included."""

    system: System
    dev: float
    test: float
    how: str  # the recipe, or what was mixed with which weight of the model that is not of the domain alone
    seconds: float  # of processor time, all recipes together
    log_probs: dict[str, np.ndarray]  # of the tokens of dev and test


Outcomes = dict[tuple[str, int], dict[str, Outcome]]


def read_outcomes(out: Path) -> tuple[Outcomes, dict[str, Any]]:
    """Return the finished systems by domain, per cent and name, and the facts of the texts.

    Raises OptionError if nothing is finished.
    """
    place = Place(out.resolve())
    if not (place.out / "texts.json").exists():
        raise OptionError(f"{out}: expected what `adapt.py prepare` wrote, found none; run that first")
    texts = read_json(place.out / "texts.json")
    domains = [name.removesuffix(".test") for name in texts["texts"] if name.endswith(".test")]
    found: Outcomes = {}
    for domain in domains:
        file = place.model(GENERAL_MODEL) / f"{domain}.{LOG_PROBS}"
        if not file.exists():
            continue
        general = _outcome(SYSTEMS[0], file, "", 0.0)
        for percent in PERCENTS:
            tried = _tried(place, domain, percent)
            cell = {GENERAL_MODEL: general} | {name: _best(outcomes) for name, outcomes in tried.items()}
            alone = [outcome for outcomes in tried.values() for outcome in outcomes if outcome.system.letter == "b"]
            for system in SYSTEMS:
                if alone and system.mixed in cell:  # any recipe: what is best alone need not be best in a mixture
                    mixtures = (_mixture(system, cell[system.mixed], outcome) for outcome in alone)
                    cell[system.name] = min(mixtures, key=lambda outcome: outcome.dev)
            found[domain, percent] = {system.name: cell[system.name] for system in SYSTEMS if system.name in cell}
    if not any(len(cell) > 1 for cell in found.values()):
        raise OptionError(f"{out}: expected finished models, found none; run `adapt.py general` and `adapt.py train`")
    return found, texts


def _tried(place: Place, domain: str, percent: int) -> dict[str, list[Outcome]]:
    """Return the finished outcomes of every trained system, with each of its recipes."""
    tried: dict[str, list[Outcome]] = {}
    for system in TRAINED:
        for recipe in system.recipes:
            folder = place.model(f"{domain}.{percent}", f"{system.name}.{recipe}")
            if (folder / FACTS).exists():
                seconds = read_json(folder / FACTS)["seconds"]
                tried.setdefault(system.name, []).append(_outcome(system, folder / LOG_PROBS, recipe, seconds))
    return tried


def _best(tried: list[Outcome]) -> Outcome:
    """Return the outcome that is best on the dev text, with the time of all."""
    best = min(tried, key=lambda outcome: outcome.dev)
    return replace(best, seconds=sum(outcome.seconds for outcome in tried))


def _outcome(system: System, file: Path, how: str, seconds: float) -> Outcome:
    with np.load(file, allow_pickle=False) as arrays:
        log_probs = {split: arrays[split] for split in ("dev", "test")}
    return Outcome(system, loss(log_probs["dev"]), loss(log_probs["test"]), how, seconds, log_probs)


def _mixture(system: System, one: Outcome, alone: Outcome) -> Outcome:
    """Return p = w · one + (1 − w) · the domain's, with the w that is best on dev."""
    weight = best_weight(one.log_probs["dev"], alone.log_probs["dev"])
    log_probs = {s: mixed(one.log_probs[s], alone.log_probs[s], weight) for s in ("dev", "test")}
    how = f"{weight:.2f} with {alone.system.name}"
    return Outcome(system, loss(log_probs["dev"]), loss(log_probs["test"]), how, 0.0, log_probs)
