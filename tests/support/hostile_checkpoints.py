"""Checkpoints, damaged in their bytes, their options or their weights, and used where they are accepted."""

from __future__ import annotations

import argparse
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
from fairseq_llrnn.evaluation.texts import sum_of
from fairseq_llrnn.plugin.compat.loading import Places
from fairseq_llrnn.plugin.scoring.text_bits import load_text_scorer

Damage = Callable[[Path, random.Random], bytes]  # of a sound checkpoint
SENTENCES = ("le chat voit la mer", "", "inconnu bien")


def checkpoint_targets(checkpoint: Path, data: Path) -> dict[str, Target]:
    """Of a language model: its bytes, its options, the sizes among them, its weights."""

    def target(damage: Damage) -> Target:
        def run(place: Path, rng: random.Random) -> str:
            place.mkdir()
            path = place / "checkpoint_best.pt"
            path.write_bytes(damage(checkpoint, rng))
            return use(path, data)

        return run

    return {f"checkpoint: {name}": target(damage) for name, damage in DAMAGES.items()}


def in_bytes(checkpoint: Path, rng: random.Random) -> bytes:
    return mutate(checkpoint.read_bytes(), rng)


def in_options(checkpoint: Path, rng: random.Random) -> bytes:
    state = read_checkpoint(checkpoint)
    options = json.loads(json.dumps(state["cfg"], default=str))
    return _packed({**state, "cfg": mutate_json(options, rng)})


NUMBERS = (10**9, 10**8, 10**5, -1, 0, 1e308, float("nan"), 10**30)
SIZES: tuple[Any, ...] = (*NUMBERS, "many", "9" * 10_000, None, [], {}, [3], True)


def in_sizes(checkpoint: Path, rng: random.Random) -> bytes:
    """One option of the model or the task is out of all measure, or of another type."""
    state = read_checkpoint(checkpoint)
    part = state["cfg"][rng.choice(("model", "model", "task"))]
    options = vars(part) if isinstance(part, argparse.Namespace) else part
    options[rng.choice(sorted(options))] = rng.choice(SIZES)
    return _packed(state)


def in_weights(checkpoint: Path, rng: random.Random) -> bytes:
    state = read_checkpoint(checkpoint)
    if rng.random() < 0.1:  # no weights, or another table
        changed = mutate_json({name: None for name in state}, rng)
        return _packed({**state, **changed} if isinstance(changed, dict) else changed)
    arrays = mutate_arrays({name: np.asarray(value) for name, value in state["model"].items()}, rng)
    weights = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    return _packed({**state, "model": weights})


DAMAGES: dict[str, Damage] = {"bytes": in_bytes, "options": in_options, "sizes": in_sizes, "weights": in_weights}


def _packed(state: Any) -> bytes:
    packed = io.BytesIO()
    torch.save(state, packed)
    return packed.getvalue()


def use(path: Path, data: Path) -> str:
    """Score sentences with it."""
    try:
        scorer = load_text_scorer(str(path), 100, Places(data=str(data)))
        total = sum_of(scorer.lines(SENTENCES))
        assert total.sentences == len(SENTENCES)
        if np.isnan(total.bits):
            raise ArithmeticError("NaN bits")
    except LLRNNError as error:
        check_said(str(error))
        return "refused"
    return "accepted"
