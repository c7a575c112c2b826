"""Scores of the open classes from a hidden state: how probable a word outside the dictionary is, and which one.

Sizes: N positions, O open classes, F features, H hidden width, S signatures. The background gives <unk> the weight
b(K, <unk>), of which class o has the share π_o. So Z has a term b(K, <unk>) π_o exp(aᵀφ(o)) for each, and with

    s(K)    =  log Σ_o π_o exp(aᵀφ(o))                   the score of <unk>, in the place of aᵀφ(<unk>)
    r_o(K)  =  π_o exp(aᵀφ(o)) / exp s(K)

    p(<unk> | K)  =  b(K, <unk>) exp s(K) / Z            p(w | K)  =  p(<unk> | K) Σ_o r_o(K) P_o(w)

To the rest of the output layer, <unk> is a class like any other, whose score is no product of a row and the hidden
state: any background, evidence and any search work with it unchanged. It is a context class that is there in every
context: its one member leaves its signature, where it is alone, for a class of the same mass and another score. As
nothing but the score changes, no background needs to know of it (output/context_classes.py would give every state
masses of its own, where a background has few entries): the head puts the score in the place of the signature's.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.open_vocabulary.vocabulary import OpenVocabulary
from fairseq_llrnn.output.feature_weights import SparseRows, at_least_float32, row_scores


class OpenMixture(nn.Module):
    """<unk> as the open classes: `scores` are log π_o + aᵀφ(o)."""

    log_shares: Tensor  # (O,)

    def __init__(self, vocabulary: OpenVocabulary, unk_class: int) -> None:
        """The classes of an open vocabulary.

        Args:
            unk_class: the signature of <unk>, which no other word has.
        """
        super().__init__()
        self.rows = SparseRows(vocabulary.features)
        self.of_class = unk_class
        self.register_buffer("log_shares", torch.from_numpy(vocabulary.log_shares.copy()).float(), persistent=False)

    def composed(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (O, H') and biases (O,) of the classes; of weight (F, H') and bias (F,) of LogLinearOutput."""
        biases = self.rows.compose(at_least_float32(bias).unsqueeze(1)).squeeze(1)
        return self.rows.compose(weight), biases + self.log_shares.to(biases.dtype)

    def scores(self, hidden: Tensor, composed: tuple[Tensor, Tensor]) -> Tensor:
        """Those of the O classes: (…, H') -> (…, O), at least float32."""
        return row_scores(hidden, *composed)

    def mean_features(self, scores: Tensor, names: Sequence[str]) -> dict[str, float]:
        """E_r[φ] of <unk> at one position, by name (F): the features that its word probably has. scores: (O,)."""
        shares = scores.double().softmax(-1)
        mean = (shares @ self.rows.dense().to(shares)).tolist()
        return {name: value for name, value in zip(names, mean, strict=False) if value != 0.0}


def log_spelling(scores: Tensor, log_strings: Tensor) -> Tensor:
    """log Σ_o r_o P_o(w): scores (N, O) of `OpenMixture.scores`, log P_o(w) (N, O) -> (N,)."""
    return (functional.log_softmax(scores, dim=-1) + log_strings.to(scores.dtype)).logsumexp(-1)
