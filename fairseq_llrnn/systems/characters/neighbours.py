"""Nearest neighbours of a word by the cosine of vectors (Jernite 2018, Table 2.6).

Sizes: V words, D width of the vectors, k neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import PADDING_ENTRY, SPECIALS
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.head.inputs import WordFeatures
from fairseq_llrnn.systems.characters.input import CharacterWords

BEFORE, AFTER, FEATURES = "before highway", "after highway", "features"


@dataclass(frozen=True)
class Neighbours:
    """The nearest words of one word among vectors of one kind."""

    kind: str  # BEFORE, AFTER or FEATURES
    words: list[tuple[str, float]]  # with their cosines, nearest first


def nearest(vector: Tensor, rows: Tensor, possible: Tensor, k: int) -> list[tuple[int, float]]:
    """Return the k possible (V,) rows of (V, D) with the highest cosine with a vector (D,), and the cosines."""
    cosines = torch.nn.functional.cosine_similarity(rows.double(), vector.double().unsqueeze(0), dim=1)
    best = cosines.masked_fill(~possible, -torch.inf).topk(min(k, int(possible.sum())))
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))


@torch.no_grad()
def neighbours(head: LogLinearHead, word: str, k: int) -> list[Neighbours]:
    """Return the nearest words of the dictionary by the network's input, for each kind of input of the head.

    A word outside the dictionary has characters, but no features.

    Raises:
        OptionError: invalid word, a head without embedding, or an unknown word in a model with features only.
    """
    if word.split() != [word]:
        raise OptionError(f"--neighbours {word!r}: expected one word without blanks; give one")
    symbols = head.prior.symbols
    index = symbols.index(word) if word in symbols else None
    if index is not None and index < len(SPECIALS):
        raise OptionError(f"--neighbours {word}: expected a word, found a special symbol; give a word")
    ordinary = [i >= len(SPECIALS) and not PADDING_ENTRY.fullmatch(symbol) for i, symbol in enumerate(symbols)]
    possible = torch.tensor([is_word and i != index for i, is_word in enumerate(ordinary)])
    lists: list[Neighbours] = []

    def add(kind: str, vector: Tensor, rows: Tensor) -> None:
        best = nearest(vector, rows, possible.to(rows.device), k)
        lists.append(Neighbours(kind, [(symbols[i], cosine) for i, cosine in best]))

    characters = head.embedding if isinstance(head.embedding, CharacterWords) else None
    read = head.embedding if characters is None else characters.features
    features = read if isinstance(read, WordFeatures) else None
    if characters is not None:
        vectors = characters.before_and_after([*symbols, word])
        for kind, rows in zip((BEFORE, AFTER), vectors, strict=True):
            add(kind, rows[-1], rows[:-1])
    if features is not None and (index is not None or not lists):
        if index is None:
            raise OptionError(
                f"--neighbours {word}: not in the dictionary, and this model reads features only; give another word, "
                "or train with --input-characters cnn"
            )
        rows = features.rows.compose(features.weight)[features.class_of[: len(symbols)]]  # shape: (V, D)
        add(FEATURES, rows[index], rows)
    if not lists:
        raise OptionError(
            "--neighbours: expected a model that reads features or characters, found one with a separate table of "
            "words; train it with --feature-input or --input-characters cnn"
        )
    return lists


def as_json(word: str, in_dictionary: bool, lists: Sequence[Neighbours]) -> dict[str, object]:
    """Return one word's neighbours in the format of `llrnn show --json`."""
    kinds = {kind.kind: [{"word": neighbour, "cosine": cosine} for neighbour, cosine in kind.words] for kind in lists}
    return {"word": word, "known": in_dictionary, "neighbours": kinds}
