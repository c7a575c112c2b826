"""Bilinear classifiers over the vectors of sentences (Jernite 2018, eq. 5.1 to 5.3).

Sizes: B examples, D width of a sentence's vector, R relations.

    ORDER         p(flipped | l, r) = σ(lᵀ M r)                          M (D, D)       (5.1)
    NEXT          p(i | c, p) ∝ exp(cᵀ M p_i)                            M (3D, D)      (5.2)
    CONJUNCTION   p(c | l, r) ∝ exp(lᵀ M_c r)                            M (R, D, D)    (5.3)

c is the three sentences of the context, one behind the other, so that its M has 3D rows (the text says D).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fairseq_llrnn.systems.discourse.conjunctions import RELATIONS
from fairseq_llrnn.systems.discourse.encoders import INITIAL
from fairseq_llrnn.systems.discourse.examples import CONTEXT


class Classifiers(nn.Module):
    """One matrix for each objective."""

    def __init__(self, objectives: Sequence[str], size: int) -> None:
        """size: D."""
        super().__init__()
        shapes = {"order": (size, size), "next": (CONTEXT * size, size), "conjunction": (len(RELATIONS), size, size)}
        self.matrices = nn.ParameterDict(
            {name: nn.Parameter(torch.empty(shapes[name]).uniform_(-INITIAL, INITIAL)) for name in objectives}
        )

    def forward(self, objective: str, sentences: Tensor) -> Tensor:
        """The scores of all answers, whose softmax is p: (B, sentences of an example, D) -> (B, answers)."""
        matrix = self.matrices[objective]
        if objective == "next":
            context = sentences[:, :CONTEXT].flatten(1)  # shape: (B, 3D)
            return torch.einsum("bd,bpd->bp", context @ matrix, sentences[:, CONTEXT:])
        left, right = sentences.unbind(1)
        if objective == "conjunction":
            return torch.einsum("rbd,bd->br", left @ matrix, right)
        flipped = ((left @ matrix) * right).sum(1)
        return torch.stack([torch.zeros_like(flipped), flipped], 1)
