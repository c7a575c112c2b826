"""What a network makes of the open classes: how probable a word outside the dictionary is, and which one.

Sizes: N positions, O open classes, F features, H hidden width, S signatures. The background gives <unk> the weight
b(K, <unk>), of which class o has the share π_o. So Z has a term b(K, <unk>) π_o exp(aᵀφ(o)) for each, and with

    s(K)    =  log Σ_o π_o exp(aᵀφ(o))                   the score of <unk>, in the place of aᵀφ(<unk>)
    r_o(K)  =  π_o exp(aᵀφ(o)) / exp s(K)

    p(<unk> | K)  =  b(K, <unk>) exp s(K) / Z            p(w | K)  =  p(<unk> | K) Σ_o r_o(K) P_o(w)

To the rest of the output layer, <unk> is a signature like any other, whose score is no product of a row and the hidden
state: any background, evidence and any search work with it unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.backgrounds.sparse_mass import Corrections
from fairseq_llrnn.open_vocabulary.vocabulary import OpenVocabulary
from fairseq_llrnn.output.feature_weights import SparseRows, at_least_float32, row_scores
from fairseq_llrnn.output.log_linear import SlotScores

# Added to the score that <unk>'s own row would have, which no longer counts: its exponential is 0 in any precision.
OUT_OF_REACH = -1e5


class OpenMixture(nn.Module):
    """The open classes beside an output layer, with whose weights they are scored."""

    log_shares: Tensor  # (O,)

    def __init__(self, vocabulary: OpenVocabulary, unk_class: int) -> None:
        """unk_class: the signature of <unk>, which it has alone."""
        super().__init__()
        self.rows = SparseRows(vocabulary.features)
        self.unk_class = unk_class
        self.register_buffer("log_shares", torch.from_numpy(vocabulary.log_shares.copy()).float(), persistent=False)

    def composed(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (O, H) and biases log π + Φc (O,) of the classes; of weight (F, H) and bias (F,) of LogLinearOutput."""
        own = self.rows.compose(at_least_float32(bias).unsqueeze(1)).squeeze(1)
        return self.rows.compose(weight), own + self.log_shares.to(own.dtype)

    def without_unk(self, composed: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The rows and biases of LogLinearOutput.composed, with <unk> out of reach."""
        rows, bias = composed
        place = torch.tensor([self.unk_class], device=bias.device)
        return rows, bias.index_fill(0, place, OUT_OF_REACH)

    def scores(self, hidden: Tensor, composed: tuple[Tensor, Tensor]) -> Tensor:
        """log π_o + aᵀφ(o): (…, H) -> (…, O), at least float32."""
        return row_scores(hidden, *composed)

    def with_unk(self, class_scores: Tensor, scores: Tensor) -> Tensor:
        """Scores of the signatures (…, S) with s(K) at <unk>, from the scores of the open classes (…, O)."""
        place = torch.tensor([self.unk_class], device=scores.device)
        return class_scores.index_copy(-1, place, scores.logsumexp(-1, keepdim=True).to(class_scores.dtype))

    def mean_features(self, scores: Tensor, names: Sequence[str]) -> dict[str, float]:
        """E_r[φ] of <unk> at one position, by name (F): what kind of unknown word it stands for. scores: (O,)."""
        shares = scores.double().softmax(-1)
        mean = (shares @ self.rows.dense().to(shares)).tolist()
        return {name: value for name, value in zip(names, mean, strict=False) if value != 0.0}

    def as_slot(
        self, scores: Tensor, mass: Tensor, classes: Tensor, slots: SlotScores | None, static: int
    ) -> SlotScores:
        """The slots of N positions, and <unk> as one slot more, for LogLinearOutput.target_log_prob.

        Args:
            scores: of the open classes, (N, O). mass: log b(K, <unk>), (N,).
            classes: of the targets, (N,); those of slots from S on. slots: what there is besides. static: S.
        """
        column = scores.logsumexp(-1, keepdim=True)
        mass = mass.to(column.dtype).unsqueeze(1)
        if slots is not None:
            column, mass = torch.cat([slots.scores, column], dim=1), torch.cat([slots.log_mass, mass], dim=1)
        return SlotScores(column, mass, classes.masked_fill(classes == self.unk_class, static + column.size(1) - 1))


def class_mass(masses: Tensor | Corrections, of_class: int) -> Tensor:
    """log B of one class: (…, S) -> (…), or corrections of N rows -> (N,)."""
    if not isinstance(masses, Corrections):
        return masses[..., of_class]
    return masses.of_classes(torch.full_like(masses.constant, of_class, dtype=torch.int64))


def log_spelling(scores: Tensor, log_strings: Tensor) -> Tensor:
    """log Σ_o r_o P_o(w): scores (N, O) of `OpenMixture.scores`, log P_o(w) (N, O) -> (N,)."""
    return (functional.log_softmax(scores, dim=-1) + log_strings.to(scores.dtype)).logsumexp(-1)
