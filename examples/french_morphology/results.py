"""Read the output of run.py: one object per finished model."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from agreement import credits, read_pairs
from experiments import Model, models, trained_as
from pairs import Pair

from fairseq_llrnn.errors import DataError


@dataclass(frozen=True)
class Result:
    """A finished model: its settings, its measured values, and for each agreement pair whether it was right."""

    model: Model
    facts: dict[str, Any]
    answers: np.ndarray  # 1, 0 or 1/2 for each pair

    def loss(self, subset: str, ends: bool = True) -> float:
        """Return nats per token."""
        return float(self.facts["loss"][subset]["with_ends" if ends else "without_ends"])

    @property
    def test_loss(self) -> float:
        """The mean of Test1 and Test2."""
        return (self.loss("test1") + self.loss("test2")) / 2


@dataclass(frozen=True)
class Results:
    finished: dict[str, Result]  # by name, in the order of experiments.py
    missing: list[str]
    pairs: Sequence[Pair]

    def get(self, *names: str) -> list[Result]:
        return [self.finished[name] for name in names if name in self.finished]

    def group(self, group: str, mode: str | None = None) -> list[Result]:
        return [
            result
            for result in self.finished.values()
            if result.model.group == group and mode in (None, result.model.mode)
        ]

    def strongest_softmax(self) -> Result | None:
        """The best softmax on the validation text that shares only the vocabulary with our models."""
        plain = [result for result in self.group("softmax") if result.model.mode is None]
        return min(plain, key=lambda result: result.loss("valid"), default=None)

    def best(self, mode: str) -> Result | None:
        """Return the best log-linear model of a mode on the validation text, the first seed of several."""
        ours = [r for r in self.finished.values() if r.model.group != "softmax" and r.model.seed == 1]
        return min(
            (result for result in ours if result.model.mode == mode),
            key=lambda result: result.loss("valid"),
            default=None,
        )


def read_results(out: Path) -> Results:
    pairs_file = out / "pairs.jsonl"
    pairs = read_pairs(pairs_file)
    found: dict[str, Result] = {}
    missing = []
    for model in models():
        folder = model.folder(out)
        if not (folder / "result.json").exists():
            missing.append(model.name)
            continue
        try:
            log = (folder / "train.log").read_text(encoding="utf-8")
            facts = json.loads((folder / "result.json").read_text(encoding="utf-8"))
            answered = json.loads((folder / "agreement.json").read_text(encoding="utf-8"))["log_ratios"]
        except (OSError, ValueError, KeyError) as error:
            raise DataError(
                f"{folder}: expected train.log, result.json and agreement.json of run.py, found damage ({error}); "
                "remove result.json and run the model again"
            ) from error
        if not trained_as(model, log):
            missing.append(f"{model.name} (there is a result, but of other settings)")
            continue
        if len(answered) != len(pairs):
            raise DataError(
                f"{folder}/agreement.json: expected answers to the {len(pairs)} pairs of {pairs_file}, found "
                f"{len(answered)}; the pairs were mined again: remove result.json and run the model again"
            )
        found[model.name] = Result(model, facts, credits(answered))
    return Results(found, missing, pairs)
