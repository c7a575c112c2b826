"""A background that does not look at the context: one weight per word, the same everywhere.

Sizes: V words, S signatures, N hypotheses. This is the paper's b(x): uniform, unigram, or weights from a file.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.backgrounds.explicit_words import ExplicitWeights, no_entries
from fairseq_llrnn.backgrounds.masses import class_log_sums


class StaticBackground(Background):
    """b(K, x) = b(x). Masses and shares are computed once, in float64, and kept so."""

    word_log_weight: Tensor  # (V,)
    word_log_share: Tensor  # (V,)
    class_log_mass: Tensor  # (S,)
    ranked_members: Tensor  # (V,) words by class, the largest share first inside each
    class_starts: Tensor  # (S + 1,) where each class begins in ranked_members
    class_support: Tensor  # (S,) how many members have weight
    best_of_class: Tensor  # (S,) the largest share
    constant = True

    def __init__(self, class_of: Tensor, num_classes: int, log_weights: Tensor) -> None:
        """class_of: (V,) int64. log_weights: (V,) natural logarithms; −inf forbids a word."""
        super().__init__(class_of, num_classes)
        log_weights = log_weights.double()
        exact = log_weights.unsqueeze(0)
        mass = class_log_sums(exact, class_of, num_classes)
        share = (exact - mass[:, class_of]).masked_fill(exact == NEGATIVE_INFINITY, NEGATIVE_INFINITY).squeeze(0)
        by_share = torch.argsort(share, descending=True, stable=True)
        by_class = by_share[torch.argsort(class_of[by_share], stable=True)]
        starts = torch.zeros(num_classes + 1, dtype=torch.long)
        starts[1:] = torch.bincount(class_of, minlength=num_classes).cumsum(0)
        best = share.new_full((num_classes,), NEGATIVE_INFINITY)
        for name, value in (
            ("word_log_weight", log_weights),
            ("word_log_share", share),
            ("class_log_mass", mass.squeeze(0)),
            ("ranked_members", by_class),
            ("class_starts", starts),
            ("class_support", torch.bincount(class_of[~share.isneginf()], minlength=num_classes)),
            ("best_of_class", best.scatter_reduce(0, class_of, share, "amax")),
        ):
            self.register_buffer(name, value, persistent=False)

    def start(self, n: int) -> Tensor:
        return self.class_of.new_zeros((n, 0))

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return state

    def root_log_weights(self) -> Tensor | None:
        return self.word_log_weight

    def explicit(self, state: Tensor) -> ExplicitWeights | None:
        return no_entries(len(self.class_of), self.word_log_weight, len(state))

    def log_weights_at(self, state: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
        return self.word_log_weight[tokens]

    def log_weights(self, state: Tensor) -> Tensor:
        return self.word_log_weight.unsqueeze(0)

    def log_mass(self, state: Tensor) -> Tensor:
        return self.class_log_mass.unsqueeze(0)

    def log_mass_of(self, state: Tensor, classes: Tensor) -> Tensor:
        return self.class_log_mass[classes]

    def log_shares(self, state: Tensor) -> Tensor:
        return self.word_log_share.unsqueeze(0)

    def log_share(self, state: Tensor, tokens: Tensor) -> Tensor:
        return self.word_log_share[tokens]

    def log_mass_without(self, state: Tensor, words: Tensor, taken: Tensor) -> Tensor:
        share = self.word_log_share[words].masked_fill(~taken, NEGATIVE_INFINITY)
        classes = self.class_of[words]
        # shape: (N, J, J), the words taken out of each word's class
        beside = share.unsqueeze(1).expand(-1, words.size(1), -1)
        beside = beside.masked_fill(classes.unsqueeze(2) != classes.unsqueeze(1), NEGATIVE_INFINITY)
        # from the share, which is near 0 where little is left, and has its digits there: log(1 − Σ exp share)
        lost = beside.logsumexp(2).clamp_max(-torch.finfo(share.dtype).eps)
        left = self.class_support[classes] - (~beside.isneginf()).sum(2)
        rest = self.class_log_mass[classes] + (-torch.expm1(lost)).log()
        return rest.masked_fill(left <= 0, NEGATIVE_INFINITY)

    def best_share(self, state: Tensor) -> Tensor:
        return self.best_of_class.unsqueeze(0)

    def best_members(self, state: Tensor, classes: Tensor, k: int) -> tuple[Tensor, Tensor]:
        # shape: (N, C, k), positions in ranked_members; those past the end of a class are masked
        rank = self.class_starts[classes].unsqueeze(-1) + torch.arange(k, device=classes.device)
        past = rank >= self.class_starts[classes + 1].unsqueeze(-1)
        tokens = self.ranked_members[rank.clamp(max=self.ranked_members.numel() - 1)]
        values = self.word_log_share[tokens].masked_fill(past, NEGATIVE_INFINITY)
        return values, tokens.masked_fill(past, 0)
