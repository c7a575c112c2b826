"""A trained field of words: its potentials, the bound on log Z, the future potential, and its folder.

Sizes: V words, R kinds of tokens, K order, F features, E entries of Φ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError, LLRNNError
from llrnn_research.markov_field.background import future_potential, log_probs_left_to_right
from llrnn_research.markov_field.objective import tighten
from llrnn_research.markov_field.pseudo_likelihood import log_conditionals, windows

from .folder import AGAIN, WORDS, SavedField, read_folder, write_folder
from .moments import count_moments, layout
from .objective import bound
from .potentials import Form, Potentials
from .star import MEMORY, Star
from .vocabulary import FieldText, FieldWords


@dataclass(frozen=True)
class TextScore:
    """Scores of a text, in nats."""

    words: int
    sentences: int  # that have words
    unknown: int
    tokens: int  # of the layout: words, and K separators for each sentence
    bound: float  # a lower bound on log p of the layout
    conditionals: float  # Σ over words of log p(word | neighbours)
    left_to_right: float  # Σ over words, and an end for each sentence, of log q


@dataclass(frozen=True)
class MarkovField:
    """A chain Markov random field of words."""

    words: FieldWords
    form: Form
    parameters: Mapping[str, Tensor]
    delta: Tensor  # (K, R) dual variables of its bound
    settings: Mapping[str, Any] = field(default_factory=dict)  # how it was trained
    rho: Tensor | None = None  # (R,) the future potential, once computed
    memory: int = MEMORY

    @cached_property
    def potentials(self) -> Potentials:
        return self.form.potentials(self.parameters)

    @cached_property
    def log_z(self) -> float:
        """Return log Z★ of the star."""
        return Star(self.potentials, self.memory).solve(self.delta).log_z

    @cached_property
    def next_words(self) -> Tensor:
        """Return ρ, (R,)."""
        if self.rho is not None:
            return self.rho
        marginals = Star(self.potentials, self.memory).solve(self.delta).nodes[0]
        return future_potential(self.potentials, marginals, self.memory)

    def tightened(self) -> MarkovField:
        """Return the field with the best δ and the resulting ρ."""
        result = tighten(Star(self.potentials, self.memory), self.delta)
        rho = future_potential(self.potentials, result.beliefs.nodes[0], self.memory)
        return MarkovField(self.words, self.form, self.parameters, result.delta, self.settings, rho, self.memory)

    # ---- scores of a text ---------------------------------------------------------------------------------------

    def score(self, text: FieldText) -> TextScore:
        """Return the scores of all sentences that have words."""
        order, separator = self.form.order, self.words.separator
        moments = count_moments(text.rows, text.lengths, separator, order, self.form.size)
        shares = float(text.log_shares.sum())
        window = windows(layout(text.rows, text.lengths, separator, order), order)
        is_word = self._word_places(text)
        ends = torch.from_numpy(_first_separators(text.lengths, order))
        from_left = window[:, : order + 1]
        log_q = log_probs_left_to_right(self.potentials, self.next_words, from_left[is_word | ends])
        return TextScore(
            words=len(text.rows),
            sentences=moments.sentences,
            unknown=int(text.unknown.sum()),
            tokens=moments.tokens,
            bound=moments.tokens * bound(moments, self.potentials, self.log_z) + shares,
            conditionals=float(self.conditionals(text).sum()),
            left_to_right=float(log_q.sum()) + shares,
        )

    def conditionals(self, text: FieldText) -> Tensor:
        """Return log p(word | its neighbours) of every word, (T,)."""
        order = self.form.order
        window = windows(layout(text.rows, text.lengths, self.words.separator, order), order)
        chosen = log_conditionals(self.potentials, window[self._word_places(text)])
        return chosen + torch.from_numpy(text.log_shares)

    def _word_places(self, text: FieldText) -> Tensor:
        """Return whether each token of the layout is a word, (N,) bool."""
        marks = layout(np.ones_like(text.rows), text.lengths, 0, self.form.order)
        return torch.from_numpy(marks == 1)

    def embeddings(self) -> Tensor:
        """Return rows for the comparison of kinds of tokens, (R, D'): those of both sides, normalised to unit length.

        Raises:
            DataError: the potentials are explicit.
        """
        if self.potentials.right is None:
            raise DataError("the field has explicit potentials; give one of low rank, trained e.g. with --form uw")
        sides = {id(rows): rows for rows in (*self.potentials.left, *self.potentials.right)}.values()
        return torch.nn.functional.normalize(torch.cat(list(sides), dim=1), dim=1)

    # ---- on disk ------------------------------------------------------------------------------------------------

    def save(self, folder: str, training: Mapping[str, Tensor] | None = None) -> None:
        """Write the folder. training: the state of an unfinished training. Raises DataError."""
        arrays = {f"parameter/{name}": value.numpy() for name, value in self.parameters.items()}
        arrays |= {"delta": self.delta.numpy(), "offset": self.form.offset.numpy()}
        arrays |= {"row_of": self.words.row_of, "log_share": self.words.log_share}
        if self.rho is not None:
            arrays["rho"] = self.rho.numpy()
        if self.form.features is not None:
            arrays |= {"feature_places": self.form.features.indices().numpy()}
            arrays |= {"feature_values": self.form.features.values().numpy()}
        description = {
            "form": self.form.name,
            "order": self.form.order,
            "width": self.form.width,
            "features": None if self.form.features is None else self.form.features.shape[1],
            "settings": dict(self.settings),
            "symbols": list(self.words.symbols),
        }
        steps = None if training is None else {name: value.numpy() for name, value in training.items()}
        write_folder(folder, WORDS, description, arrays, steps)

    @classmethod
    def load(cls, folder: str) -> MarkovField:
        """Read a folder without executing anything in it. Raises DataError if it is missing or damaged."""
        saved = read_folder(folder, WORDS)
        try:
            return _read(saved)
        except (KeyError, TypeError, ValueError, OverflowError, LLRNNError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{folder}: expected a field, found invalid content ({error}); {AGAIN}") from None


def _first_separators(lengths: np.ndarray, order: int) -> np.ndarray:
    """Return whether a token of the layout ends a sentence, (N,) bool. The first token ends the last sentence."""
    lengths = lengths[lengths > 0]
    first = np.zeros(int(lengths.sum()) + order * len(lengths), dtype=bool)
    first[(lengths + order).cumsum() - lengths - order] = True
    return first


def _read(saved: SavedField) -> MarkovField:
    """Return the field of checked arrays."""
    symbols, order, width = (saved.description[name] for name in ("symbols", "order", "width"))
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        raise ValueError("invalid symbols")
    if not all(type(number) is int and 0 <= number < 10_000 for number in (order, width)):
        raise ValueError(f"the order {order!r} and the width {width!r}")
    offset = torch.from_numpy(saved.array("offset", np.float64, None).copy())
    if bool(offset.isnan().any() | offset.isposinf().any()) or not bool(offset.isfinite().any()):
        raise ValueError("invalid offsets")
    row_of = saved.array("row_of", np.int64, len(symbols))
    words = FieldWords(tuple(symbols), row_of, saved.numbers("log_share", len(symbols)).numpy())
    if len(set(symbols)) < len(symbols) or row_of.min() < -1 or row_of.max() >= len(offset):
        raise ValueError("repeated words, or words of missing kinds")
    if min(row_of[words.index[name]] for name in ("</s>", "<unk>")) < 0:
        raise ValueError("no </s> or no <unk>")
    features = None
    num_features = saved.description["features"]
    if num_features is not None:
        places = saved.array("feature_places", np.int64, 2, None)
        values = saved.numbers("feature_values", places.shape[1])
        is_size = type(num_features) is int and 0 <= num_features < 1 << 31
        shape = (len(offset), num_features if is_size else 0)
        if not is_size or (places < 0).any() or (places >= np.array(shape)[:, None]).any():
            raise ValueError("features that point outside their table")
        features = torch.sparse_coo_tensor(torch.from_numpy(places.copy()), values, shape, check_invariants=True)
        features = features.coalesce()
    form = Form(str(saved.description["form"]), order, offset, width, features)
    parameters = {name: saved.numbers(f"parameter/{name}", *shape) for name, shape in form.shapes().items()}
    rho = saved.numbers("rho", len(offset)) if "rho" in saved.arrays else None
    delta = saved.numbers("delta", order, len(offset))
    return MarkovField(words, form, parameters, delta, dict(saved.description["settings"]), rho)


def bits(nats: float, per: int) -> float:
    """Return −nats in bits, divided by `per`."""
    return -nats / math.log(2) / max(1, per)
