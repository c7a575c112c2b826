"""The best members of classes under a mixture of static backgrounds with different weights in every row.

Sizes: N rows, K roots, V words, S signatures, E listed words, M pairs of a row and a class, F words of the front.

    best(n, σ)  =  max over x ∈ σ of  Σ_i exp(α[n, i]) root_i(x)

For any α, a word that another member of its class beats under every root is not the best. The other words are the
front: few words of each class, found once. (It may contain a few beaten words, because only heavy words are compared.)
Listed words have other weights. If a word of the front is listed with a smaller weight, all words of its class are
compared.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, expanded
from fairseq_llrnn.backgrounds.exact_buffers import ExactBuffers

WeightsAt = Callable[[Tensor, Tensor], Tensor]  # tokens (M,), rows (M,) -> log weights (M,)


class SeveralRoots(ExactBuffers):
    """The roots of a mixture's parts, by class."""

    class_of: Tensor  # (V,)
    roots: Tensor  # (K, V) log weights
    front: Tensor  # (F,) words
    place: Tensor  # (V,) place of a word in the front; −1 for others
    by_class: Tensor  # (V,) words by class
    class_starts: Tensor  # (S + 1,) offsets of the classes in by_class

    def __init__(self, class_of: Tensor, num_classes: int, roots: Tensor) -> None:
        """class_of: (V,). roots: log weights (K, V)."""
        super().__init__()
        self.num_classes = num_classes
        front = _front(class_of, num_classes, roots)
        sizes = torch.bincount(class_of, minlength=num_classes)
        self.keep(
            class_of=class_of,
            roots=roots,
            front=front,
            place=torch.full_like(class_of, -1).index_copy(0, front, torch.arange(len(front))),
            by_class=class_of.argsort(stable=True),
            class_starts=torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]),
        )

    def best(self, log_alpha: Tensor, keys: Tensor, listed: Tensor, weights_at: WeightsAt) -> Tensor:
        """Return the log weight of the best member of every class: (N, S).

        Args:
            log_alpha: (N, K), −inf if a root has no weight in a row. keys: row · V + token of listed words, (E,).
            listed: their log weights, (E,). weights_at: the log weights of any words.
        """
        num_words, rows = len(self.class_of), keys // len(self.class_of)
        tokens = keys % num_words
        values = torch.full((len(log_alpha), len(self.front)), NEGATIVE_INFINITY, dtype=listed.dtype).to(listed.device)
        for i, root in enumerate(self.roots[:, self.front]):
            values = torch.logaddexp(values, log_alpha[:, i : i + 1] + root)
        in_front = self.place[tokens] >= 0
        place = rows[in_front] * len(self.front) + self.place[tokens[in_front]]
        lighter = listed[in_front] < values.flatten()[place]
        values = values.flatten().index_copy(0, place, listed[in_front]).view_as(values)
        best = values.new_full((len(log_alpha), self.num_classes), NEGATIVE_INFINITY)
        best = best.scatter_reduce(1, self.class_of[self.front].expand_as(values), values, reduce="amax")
        pairs = rows * self.num_classes + self.class_of[tokens]
        best = best.flatten().scatter_reduce(0, pairs, listed, reduce="amax")
        stale = pairs[in_front][lighter].unique()
        row, classes = stale // self.num_classes, stale % self.num_classes
        index, words = self.members(classes)
        of_words = weights_at(words, row[index])
        fresh = best.new_full(stale.shape, NEGATIVE_INFINITY).scatter_reduce(0, index, of_words, reduce="amax")
        return best.index_copy(0, stale, fresh).view(len(log_alpha), self.num_classes)

    def members(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        """Return all words of classes (M,), and the index of each word's class."""
        begins = self.class_starts[classes]
        index, places = expanded(begins, self.class_starts[classes + 1] - begins)
        return index, self.by_class[places]

    def heaviest(self, classes: Tensor, k: int, rows: Tensor, weights_at: WeightsAt) -> tuple[Tensor, Tensor]:
        """Return the k heaviest members: classes (M,), rows (M,) -> log weights and tokens (M, k), padded with
        −inf and 0.
        """
        index, words = self.members(classes)
        sizes = self.class_starts[classes + 1] - self.class_starts[classes]
        column = torch.arange(len(index), device=index.device) - (sizes.cumsum(0) - sizes)[index]
        shape = len(classes), max(k, int(sizes.max()) if len(sizes) else 0)
        of_words = weights_at(words, rows[index])
        weights = of_words.new_full(shape, NEGATIVE_INFINITY).index_put((index, column), of_words)
        values, best = weights.topk(k, dim=1)
        tokens = words.new_zeros(shape).index_put((index, column), words).gather(1, best)
        return values, tokens.masked_fill(values.isneginf(), 0)


def _front(class_of: Tensor, num_classes: int, roots: Tensor) -> Tensor:
    """Return the words that no heavy member of their class beats: (F,)."""
    num_words = len(class_of)
    words = torch.arange(num_words, device=class_of.device)
    in_front = ~roots.isneginf().all(0)
    for weights in (*roots, roots.clamp_min(-1e4).mean(0)):
        # the first of the heaviest members of each class
        top = weights.new_full((num_classes,), NEGATIVE_INFINITY).scatter_reduce(0, class_of, weights, reduce="amax")
        heaviest = words.masked_fill(weights < top[class_of], num_words)
        first = class_of.new_full((num_classes,), num_words).scatter_reduce(0, class_of, heaviest, reduce="amin")
        rival = first[class_of]  # shape: (V,)
        of_rival = roots[:, rival]
        beaten = (roots <= of_rival).all(0) & ((roots < of_rival).any(0) | (rival < words))
        in_front &= ~beaten
    return in_front.nonzero().squeeze(1)
