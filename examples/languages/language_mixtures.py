"""Rows that train no network: that of another row, mixed with n-grams of its own text, token by token.

    p(x | K) = w · p_network(x | K) + (1 − w) · p_ngrams(x | the last words of K)

The n-grams are those of `llrnn prior --background ngram:ORDER` (interpolated modified Kneser-Ney) over the row's own
dictionary. ORDER and w are those with the fewest bits on the validation text. Both models speak of <unk>; how an
unknown word is spelled is the row's own matter and not mixed.

Sizes: T words of a sentence, N tokens of a text with their ends, V words of the dictionary.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from example_parts.mixtures import best_weight, loss, mixed
from example_parts.text_units import lines_of
from example_parts.unit_bits import whole_bits
from language_rows import Row
from language_table import HELD_OUT

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.texts import LineScore, sum_of
from fairseq_llrnn.features.dictionary import EOS, UNK
from fairseq_llrnn.prior.prior import Prior

ORDERS = (3, 5)  # of the n-grams that are tried


def ngram_commands(row: Row, network: Path, place: Path) -> dict[Path, tuple[str, ...]]:
    """What makes the n-grams of every order, and where: in the row's own folder, `place`, from the network's."""
    text = ("--dict", str(network / "dict.txt"), "--count-text", str(network / "train.txt"), *row.prior)
    return {
        place / f"ngrams-{order}": (
            *("llrnn", "prior", "--out", str(place / f"ngrams-{order}"), *text),
            *("--background", f"ngram({order}, folds=0)"),
        )
        for order in ORDERS
    }


@torch.inference_mode()
def ngram_log_probs(prior: Prior, sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """log b(x | K) of every word, or of <unk> in its place, and of every end: (N,) in nats; b sums to one."""
    background, end = prior.background(), prior.index(EOS)
    number = {symbol: i for i, symbol in enumerate(prior.symbols)}
    found = []
    for words in sentences:
        ids = [*(number.get(word, number[UNK]) for word in words), end]
        targets, previous = torch.tensor(ids), torch.tensor([[end, *ids[:-1]]])  # shape: (T + 1,), (1, T + 1)
        states, masses = background.along(previous)
        classes = background.classes(states, targets)
        of_class = masses.dense().log_softmax(-1).gather(1, classes.unsqueeze(1)).squeeze(1)
        found.append((of_class + background.log_share(states, targets)).double().numpy())
    return np.concatenate(found)


def network_lines(network: Path) -> dict[str, list[LineScore]]:
    """The lines of the held-out texts, every token scored by the network."""
    from fairseq_llrnn.plugin.scoring.text import load_text_scorer  # imports fairseq

    torch.set_num_threads(1)
    scorer = load_text_scorer(str(network / "model" / "checkpoint_best.pt"), 2048)
    return {split: list(scorer.lines(lines_of(network / f"{split}.txt"))) for split in HELD_OUT}


def with_log_probs(lines: Sequence[LineScore], log_probs: np.ndarray) -> list[LineScore]:
    """The lines with other probabilities of their tokens, (N,)."""
    ends = np.cumsum([len(line.log_probs) for line in lines])
    parts = np.split(log_probs, ends[:-1])
    return [replace(line, log_probs=part.tolist()) for line, part in zip(lines, parts, strict=True)]


def finish_mixture(
    row: Row, folder: Path, seed: int, speller: Path, execute: Callable[[Sequence[str], Path], float]
) -> dict[str, Any]:
    """Choose order and weight on the validation text, and measure the row.

    Args:
        folder: that of the language.
        speller: as `whole_bits`.
        execute: a command and its log -> seconds of processor time.

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
    tried = []
    for order, prior in zip(ORDERS, map(Prior.load, commands), strict=True):
        second = {split: ngram_log_probs(prior, [line.words for line in found]) for split, found in lines.items()}
        weight = best_weight(first["valid"], second["valid"])
        both = {split: mixed(first[split], second[split], weight) for split in HELD_OUT}
        tried.append((loss(both["valid"]), order, weight, both))
    _, order, weight, log_probs = min(tried, key=lambda one: one[0])
    measured = {}
    for split, found in lines.items():
        facts = sum_of(with_log_probs(found, log_probs[split])).facts()
        measured[split] = whole_bits(row.units, facts, lines_of(folder / "text" / f"{split}.txt"), network, speller)
    seconds_of = {**trained["seconds"], "llrnn": round(seconds, 1)}
    own = {"row": row.name, "seconds": seconds_of, "order": order, "weight": weight, "curve": []}
    return {**trained, **own, **measured}
