"""The best members of classes under a mixture of static backgrounds that is another one in every row.

Sizes: N rows, K roots, V words, S signatures, F words of the front, E listed words, M pairs of a row and a class, W
words of the largest class asked for.

    best(n, σ)  =  max over x ∈ σ of  Σ_i exp(α[n, i]) root_i(x)

Whatever α is, a word that another member of its class beats under every root is not the best. The others are the
front: few words of each class, found once. (It may hold some that could be left out: only heavy words are compared.)
Words that a row lists have other weights; where a word of the front is listed, and weighs less by that, all words of
its class are looked at.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, ExactBuffers
from fairseq_llrnn.backgrounds.masses import expanded

WeightsAt = Callable[[Tensor, Tensor], Tensor]  # rows (M,), tokens (M,) -> log weights (M,)


class SeveralRoots(ExactBuffers):
    """The roots of a mixture's parts, by class."""

    class_of: Tensor  # (V,)
    roots: Tensor  # (K, V) log weights
    front: Tensor  # (F,) words
    place: Tensor  # (V,) where a word is in the front; −1 for others
    by_class: Tensor  # (V,) words by class
    class_starts: Tensor  # (S + 1,) where each class begins in by_class

    def __init__(self, class_of: Tensor, num_classes: int, roots: Tensor) -> None:
        """class_of: (V,). roots: log weights (K, V)."""
        super().__init__()
        self.num_classes = num_classes
        front = _front(class_of, num_classes, roots)
        sizes = torch.bincount(class_of, minlength=num_classes)
        for name, value in (
            ("class_of", class_of),
            ("roots", roots),
            ("front", front),
            ("place", torch.full_like(class_of, -1).index_copy(0, front, torch.arange(len(front)))),
            ("by_class", class_of.argsort(stable=True)),
            ("class_starts", torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])),
        ):
            self.register_buffer(name, value, persistent=False)

    def best(self, log_alpha: Tensor, keys: Tensor, listed: Tensor, weights_at: WeightsAt) -> Tensor:
        """The log weight of the best member of every class: (N, S).

        Args:
            log_alpha: (N, K), −inf in a row where a root gives nothing. keys: row · V + token of listed words, (E,).
            listed: their log weights, (E,). weights_at: those of any word.
        """
        num_words, rows = len(self.class_of), keys // len(self.class_of)
        tokens = keys % num_words
        values = torch.full((len(log_alpha), len(self.front)), NEGATIVE_INFINITY, dtype=listed.dtype).to(listed.device)
        for i, root in enumerate(self.roots[:, self.front]):
            values = torch.logaddexp(values, log_alpha[:, i : i + 1] + root)
        in_front = self.place[tokens] >= 0
        where = rows[in_front] * len(self.front) + self.place[tokens[in_front]]
        lighter = listed[in_front] < values.flatten()[where]
        values = values.flatten().index_copy(0, where, listed[in_front]).view_as(values)
        best = values.new_full((len(log_alpha), self.num_classes), NEGATIVE_INFINITY)
        best = best.scatter_reduce(1, self.class_of[self.front].expand_as(values), values, reduce="amax")
        pairs = rows * self.num_classes + self.class_of[tokens]
        best = best.flatten().scatter_reduce(0, pairs, listed, reduce="amax")
        again = pairs[in_front][lighter].unique()
        row, classes = again // self.num_classes, again % self.num_classes
        which, words = self.members(classes)
        of_words = weights_at(row[which], words)
        anew = best.new_full(again.shape, NEGATIVE_INFINITY).scatter_reduce(0, which, of_words, reduce="amax")
        return best.index_copy(0, again, anew).view(len(log_alpha), self.num_classes)

    def members(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """All words of classes (M,), and which of them each is of."""
        begins = self.class_starts[classes]
        which, places = expanded(begins, self.class_starts[classes + 1] - begins)
        return which, self.by_class[places]

    def best_members(self, rows: Tensor, classes: Tensor, k: int, weights_at: WeightsAt) -> tuple[Tensor, Tensor]:
        """The k heaviest members: rows (M,), classes (M,) -> log weights and tokens (M, k); −inf and 0 for none."""
        which, words = self.members(classes)
        sizes = self.class_starts[classes + 1] - self.class_starts[classes]
        column = torch.arange(len(which), device=which.device) - (sizes.cumsum(0) - sizes)[which]
        shape = len(classes), max(k, int(sizes.max()) if len(sizes) else 0)
        of_words = weights_at(rows[which], words)
        weights = of_words.new_full(shape, NEGATIVE_INFINITY).index_put((which, column), of_words)
        values, where = weights.topk(k, dim=1)
        tokens = words.new_zeros(shape).index_put((which, column), words).gather(1, where)
        return values, tokens.masked_fill(values.isneginf(), 0)


def _front(class_of: Tensor, num_classes: int, roots: Tensor) -> Tensor:
    """The words that no heavy member of their class beats: (F,)."""
    num_words = len(class_of)
    words = torch.arange(num_words, device=class_of.device)
    kept = ~roots.isneginf().all(0)
    for weights in (*roots, roots.clamp_min(-1e4).mean(0)):
        # the first of the heaviest members of each class
        top = weights.new_full((num_classes,), NEGATIVE_INFINITY).scatter_reduce(0, class_of, weights, reduce="amax")
        heaviest = words.masked_fill(weights < top[class_of], num_words)
        first = class_of.new_full((num_classes,), num_words).scatter_reduce(0, class_of, heaviest, reduce="amin")
        rival = first[class_of]  # shape: (V,)
        of_rival = roots[:, rival]
        beaten = (roots <= of_rival).all(0) & ((roots < of_rival).any(0) | (rival < words))
        kept &= ~beaten
    return kept.nonzero().squeeze(1)
