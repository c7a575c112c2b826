"""`llrnn prior --background mrf:DIR`: a trained field as a part of a prior.

Sizes: V words of the prior, R kinds of tokens of the field, K order, D width.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fairseq_llrnn.backgrounds.background import Background
from fairseq_llrnn.features.dictionary import EOS, UNK
from fairseq_llrnn.files.numbers import LARGEST_LOG, LARGEST_STORED_LOG
from fairseq_llrnn.prior.named_backgrounds import Inputs, register_background
from fairseq_llrnn.prior.part import BuildContext, Part, PriorView, SavedPart, register_part

from .background import MarkovBackground
from .folder import JSON_FILE
from .model import MarkovField
from .potentials import Potentials


@register_part("markov_field")
@dataclass(frozen=True)
class MarkovFieldPart(Part):
    """The field's potentials, and the row of each word of the prior."""

    row_of: np.ndarray  # (V,) int64
    log_share: np.ndarray  # (V,) float64
    unary: np.ndarray  # (R,) float64, θ⁰ + ρ; −inf forbids
    left: np.ndarray  # (K, R, D) float32, or (K, R, R) if explicit
    right: np.ndarray | None  # (K, R, D) float32
    separator: int

    is_base = True

    def arrays(self) -> dict[str, np.ndarray]:
        saved = {"row_of": self.row_of, "log_share": self.log_share, "unary": self.unary, "left": self.left}
        return saved if self.right is None else {**saved, "right": self.right}

    def description(self) -> dict[str, Any]:
        return {"order": len(self.left), "separator": self.separator}

    @classmethod
    def read(cls, saved: SavedPart) -> MarkovFieldPart:
        row_of, log_share = saved.array("row_of", np.int64), saved.array("log_share", np.float64)
        unary, left, right = saved.array("unary", np.float64), saved.arrays["left"], saved.arrays.get("right")
        order, separator = saved.description["order"], saved.description["separator"]
        rows, words = len(unary), len(saved.prior.symbols)
        sound = (
            len(row_of) == len(log_share) == words
            and left.ndim == 3
            and left.shape[:2] == (order, rows)
            and left.dtype == np.float32
            and (left.shape[2] == rows if right is None else right.shape == left.shape and right.dtype == np.float32)
            and type(separator) is int
            and 0 <= separator < rows
            and row_of.min() >= 0
            and row_of.max() < rows
        )
        if not sound:
            raise ValueError("the Markov random field's arrays do not fit together")
        finite = all(bool(np.isfinite(array).all()) for array in (left, log_share, *([] if right is None else [right])))
        if not finite or np.isnan(unary).any() or np.isposinf(unary).any():
            raise ValueError("the Markov random field has numbers that are not finite")
        largest = ((LARGEST_STORED_LOG, (unary, log_share)), (LARGEST_LOG, (left, left if right is None else right)))
        if any(np.abs(array[np.isfinite(array)]).max(initial=0.0) > most for most, rows in largest for array in rows):
            raise ValueError("the Markov random field has numbers that are too large")
        if np.isneginf(unary[row_of]).any() or log_share.max() > 1e-6:
            raise ValueError("the Markov random field forbids words, or gives them shares above 1")
        return cls(row_of, log_share, unary, left, right, separator)

    def background(self, below: Background, context: BuildContext) -> Background:
        allowed = context.log_weights.isfinite()
        share = torch.from_numpy(self.log_share.copy()).masked_fill(~allowed, -torch.inf)
        right = None if self.right is None else tuple(torch.from_numpy(self.right.copy()))
        field = Potentials(torch.from_numpy(self.unary.copy()), tuple(torch.from_numpy(self.left.copy())), right)
        rows = torch.from_numpy(self.row_of.copy())
        return MarkovBackground(context.class_of, context.num_classes, rows, share, field, self.separator)

    def lines(self, prior: PriorView) -> list[str]:
        form = "explicit potentials" if self.right is None else f"rows of {self.left.shape[2]} numbers"
        return [f"a Markov random field of order {len(self.left)}, {form}"]

    def counts(self) -> dict[str, int]:
        return {"kinds of tokens of the field": len(self.unary)}


def _is_field(source: str) -> bool:
    if not os.path.isfile(os.path.join(source, JSON_FILE)):
        raise ValueError(f"expected a field (a folder with {JSON_FILE}), found none; make one with `llrnn mrf train`")
    return True


@register_background("mrf", MarkovFieldPart, example="mrf:field", is_file=_is_field)
def read(source: str, prior: PriorView, inputs: Inputs) -> tuple[Part, Mapping[str, int]]:
    """Return the field in the folder `source`, for the words that the prior allows. Raises DataError."""
    field = MarkovField.load(source)
    words = field.words
    unknown = words.index[UNK]
    ids = words.ids(prior.symbols)
    ids[[prior.index(symbol) for symbol in ("<s>", "<pad>")]] = words.index[EOS]  # never predicted; as context, an end
    lacking = (ids == unknown) & prior.allowed
    lacking[prior.index(UNK)] = True
    share = words.log_share[ids] - np.where(ids == unknown, np.log(lacking.sum()), 0.0)
    potentials, right = field.potentials, None
    if potentials.right is not None:
        right = torch.stack(potentials.right).float().numpy()
    part = MarkovFieldPart(
        words.row_of[ids], share, (potentials.unary + field.next_words).numpy(),
        torch.stack(potentials.left).float().numpy(), right, words.separator,
    )  # fmt: skip
    notes = {"words that the field lacks: they share the weight of <unk>": int(lacking.sum()) - 1}
    return part, {name: count for name, count in notes.items() if count}
