"""What was measured: for every domain and share of its text, the losses of each system by its better recipe."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scores import best_weight, loss, mixed
from stages import FACTS, LOG_PROBS, read_json
from systems import PERCENTS, SYSTEMS, Place, System

from fairseq_llrnn.errors import OptionError

GENERAL_MODEL, MIXTURE = "general", "interpolated"


@dataclass(frozen=True)
class Outcome:
    """One system on one domain, with one share of its text. Losses in nats per token, ends included."""

    system: System
    dev: float
    test: float
    how: str  # the recipe, or what was mixed with which weight of the general model
    seconds: float  # of processor time, all recipes together
    log_probs: dict[str, np.ndarray]  # of the tokens of dev and test


Outcomes = dict[tuple[str, int], dict[str, Outcome]]


def read_outcomes(out: Path) -> tuple[Outcomes, dict[str, Any]]:
    """By domain and per cent, the systems that are finished by name; and the facts of the texts.

    Raises OptionError where nothing is finished.
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
            cell = {GENERAL_MODEL: general} | {o.system.name: o for o in _trained(place, domain, percent)}
            alone = [outcome for outcome in cell.values() if outcome.system.letter == "b"]
            if alone:
                cell[MIXTURE] = min((_mixture(general, outcome) for outcome in alone), key=lambda outcome: outcome.dev)
            found[domain, percent] = {system.name: cell[system.name] for system in SYSTEMS if system.name in cell}
    if not any(len(cell) > 1 for cell in found.values()):
        raise OptionError(f"{out}: expected finished models, found none; run `adapt.py general` and `adapt.py train`")
    return found, texts


def _trained(place: Place, domain: str, percent: int) -> Iterator[Outcome]:
    for system in SYSTEMS:
        tried = []
        for recipe in system.recipes:
            folder = place.model(f"{domain}.{percent}", f"{system.name}.{recipe}")
            if (folder / FACTS).exists():
                tried.append(_outcome(system, folder / LOG_PROBS, recipe, read_json(folder / FACTS)["seconds"]))
        if tried:
            best = min(tried, key=lambda outcome: outcome.dev)
            seconds = sum(outcome.seconds for outcome in tried)
            yield Outcome(system, best.dev, best.test, best.how, seconds, best.log_probs)


def _outcome(system: System, file: Path, how: str, seconds: float) -> Outcome:
    with np.load(file, allow_pickle=False) as arrays:
        log_probs = {split: arrays[split] for split in ("dev", "test")}
    return Outcome(system, loss(log_probs["dev"]), loss(log_probs["test"]), how, seconds, log_probs)


def _mixture(general: Outcome, alone: Outcome) -> Outcome:
    """p = w · general + (1 − w) · the domain's, with the w that is best on dev."""
    weight = best_weight(general.log_probs["dev"], alone.log_probs["dev"])
    log_probs = {s: mixed(general.log_probs[s], alone.log_probs[s], weight) for s in ("dev", "test")}
    how = f"{weight:.2f} with {alone.system.name}"
    (system,) = (system for system in SYSTEMS if system.name == MIXTURE)
    return Outcome(system, loss(log_probs["dev"]), loss(log_probs["test"]), how, 0.0, log_probs)
