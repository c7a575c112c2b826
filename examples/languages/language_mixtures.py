"""Rows without a network of their own: n-grams, alone or mixed with the network of another row.

N-grams are of the row's text over its dictionary. The mixing is in example_parts/mixtures.py. Both models have <unk>.
The spelling of unknown words is the row's and is not mixed. Sizes: N tokens of a text with their ends.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from example_parts.mixtures import ORDERS, with_ngrams
from example_parts.text_units import lines_of
from example_parts.unit_bits import whole_bits
from language_rows import Row, score_command
from language_table import HELD_OUT

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.texts import LineScore, sum_of

ALONE = (2, 3, 4, 5)  # orders of n-grams without a network


def ngram_commands(row: Row, source: Path, place: Path, orders: Sequence[int] = ORDERS) -> dict[Path, tuple[str, ...]]:
    """Return the commands for the n-grams of every order, of the dictionary and text in `source`, with results in
    `place`.
    """
    text = ("--dict", str(source / "dict.txt"), "--count-text", str(source / "train.txt"), *row.prior)
    return {
        place / f"ngrams-{order}": (
            *("llrnn", "prior", "--out", str(place / f"ngrams-{order}"), *text),
            *("--background", f"ngram({order}, folds=0)"),
        )
        for order in orders
    }


def finish_ngrams(
    row: Row,
    place: Path,
    execute: Callable[[Sequence[str], Path], float],
    scored: Callable[[Sequence[str], str], str],
) -> dict[str, Any]:
    """Measure n-grams of the order that is best on the validation text.

    Args:
        place: the folder of the row, with its texts (`write_units`).
        execute: runs a command with a log, and returns seconds of processor time.
        scored: runs a command on a text, and returns its output.
    """
    commands = ngram_commands(row, place, place, ALONE)
    seconds = sum(execute(command, place / "train.log") for command in commands.values())

    def facts(prior: Path, split: str) -> dict[str, float]:
        text = (place / f"{split}.txt").read_text(encoding="utf-8")
        found: dict[str, float] = json.loads(scored(score_command(row, place, prior), text))
        return found

    valid = {order: facts(prior, "valid") for order, prior in zip(ALONE, commands, strict=True)}
    order = min(valid, key=lambda tried: valid[tried]["bits"])
    return {
        "row": row.name,
        "order": order,
        "orders": {tried: found["bits_per_character"] for tried, found in valid.items()},
        "seconds": {"llrnn": round(seconds, 1), "fairseq-train": 0.0},
        "valid": valid[order],
        "test": facts(place / f"ngrams-{order}", "test"),
        **dict.fromkeys(("epochs", "best_epoch", "parameters"), 0),
        "curve": [],
    }


def network_lines(network: Path) -> dict[str, list[LineScore]]:
    """Return the lines of the held-out texts, every token scored by the network."""
    from fairseq_llrnn.plugin.scoring.text_bits import load_text_scorer  # imports fairseq

    torch.set_num_threads(1)
    scorer = load_text_scorer(str(network / "model" / "checkpoint_best.pt"), 2048)
    return {split: list(scorer.lines(lines_of(network / f"{split}.txt"))) for split in HELD_OUT}


def with_log_probs(lines: Sequence[LineScore], log_probs: np.ndarray) -> list[LineScore]:
    """Return the lines with other log-probabilities of their tokens, (N,)."""
    ends = np.cumsum([len(line.log_probs) for line in lines])
    parts = np.split(log_probs, ends[:-1])
    return [replace(line, log_probs=part.tolist()) for line, part in zip(lines, parts, strict=True)]


def finish_mixture(
    row: Row, folder: Path, seed: int, speller: Path, execute: Callable[[Sequence[str], Path], float]
) -> dict[str, Any]:
    """Choose order and weight on the validation text, and measure the row.

    Args:
        folder: that of the language.
        speller: as in `whole_bits`.
        execute: runs a command with a log, and returns seconds of processor time.

    Raises:
        DataError: the row of the network is not finished.
    """
    network, place = folder / f"{row.network}-{seed}", folder / f"{row.name}-{seed}"
    if not (network / "result.json").exists():
        raise DataError(
            f"{network}: expected a row that `languages.py train` has finished, found none; train `{row.network}` first"
        )
    trained = json.loads((network / "result.json").read_text(encoding="utf-8"))
    commands = ngram_commands(row, network, place)
    seconds = sum(execute(command, place / "train.log") for command in commands.values())
    lines = network_lines(network)
    first = {split: np.concatenate([line.log_probs for line in found]) for split, found in lines.items()}
    texts = {split: [line.words for line in found] for split, found in lines.items()}
    mixture = with_ngrams(first, texts, dict(zip(ORDERS, commands, strict=True)))
    measured = {}
    for split, found in lines.items():
        facts = sum_of(with_log_probs(found, mixture.log_probs[split])).facts()
        measured[split] = whole_bits(row.units, facts, lines_of(folder / "text" / f"{split}.txt"), network, speller)
    seconds_of = {**trained["seconds"], "llrnn": round(seconds, 1)}
    own = {"row": row.name, "seconds": seconds_of, "order": mixture.order, "weight": mixture.weight, "curve": []}
    return {**trained, **own, **measured}
