"""Checkpoints, damaged in their bytes, their options or their weights, and used where they are accepted."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzz_targets import Target, check_said
from mutations import mutate, mutate_arrays, mutate_json
from tiny_world import read_checkpoint

from fairseq_llrnn.errors import LLRNNError
from fairseq_llrnn.plugin.compat.loading import Places
from fairseq_llrnn.plugin.scoring.text import load_text_scorer

SENTENCES = ("le chat voit la mer", "", "inconnu bien")


def checkpoint_targets(checkpoint: Path, data: Path) -> dict[str, Target]:
    """Of a language model: its bytes, its options, its weights."""
    raw, state = checkpoint.read_bytes(), read_checkpoint(checkpoint)

    def target(write: Callable[[Path, random.Random], None]) -> Target:
        def run(place: Path, rng: random.Random) -> str:
            place.mkdir()
            path = place / "checkpoint_best.pt"
            write(path, rng)
            return use(path, data)

        return run

    def in_bytes(path: Path, rng: random.Random) -> None:
        path.write_bytes(mutate(raw, rng))

    def in_options(path: Path, rng: random.Random) -> None:
        options = json.loads(json.dumps(state["cfg"], default=str))
        _save({**state, "cfg": mutate_json(options, rng)}, path)

    def in_weights(path: Path, rng: random.Random) -> None:
        if rng.random() < 0.1:  # no weights, or another table
            changed = mutate_json({name: None for name in state}, rng)
            _save({**state, **changed} if isinstance(changed, dict) else changed, path)
            return
        arrays = mutate_arrays({name: np.asarray(value) for name, value in state["model"].items()}, rng)
        _save({**state, "model": {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()}}, path)

    ways = {"bytes": in_bytes, "options": in_options, "weights": in_weights}
    return {f"checkpoint: {name}": target(write) for name, write in ways.items()}


def _save(state: Any, path: Path) -> None:
    packed = io.BytesIO()
    torch.save(state, packed)
    path.write_bytes(packed.getvalue())


def use(path: Path, data: Path) -> str:
    """Score sentences with it."""
    try:
        scorer = load_text_scorer(str(path), 100, Places(data=str(data)))
        total = scorer.score(SENTENCES)
        assert total.sentences == len(SENTENCES)
        if np.isnan(total.bits):
            raise ArithmeticError("NaN bits")
    except LLRNNError as error:
        check_said(str(error))
        return "refused"
    return "accepted"
