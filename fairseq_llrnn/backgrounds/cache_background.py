"""A cache: recent words occur again (Kuhn & De Mori 1990, "A Cache-Based Natural Language Model").

Sizes: V words, N rows (hypotheses or positions), L places of the cache, E different words in the caches of all rows.
With the last L words x₁ … x_L of the row (the latest has age 0), 0 < λ < 1 and a decay 0 < δ ≤ 1,

    b(K, x)  =  (1−λ) b₀(x)  +  λ · Σ_i δ^age(i) [x = x_i] / Σ_i δ^age(i)                  (b₀ if the cache is empty)

</s> and words that b₀ forbids do not enter the cache and do not age it. Sentences of one row share the cache: a
row is a document. b is normalised if b₀ is. It lists the words of the cache. Cost: O(N L log(N L)).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.backgrounds.class_weights import ExplicitWeights, class_log_sums, log_odds
from fairseq_llrnn.backgrounds.explicit_background import ExplicitBackground

NO_WORD = -1  # an empty place of the cache
LARGEST = 100_000  # words of a cache: every hypothesis stores their ids


def check_cache(size: int, weight: float, decay: float, learned: bool) -> None:
    """Raise ValueError for numbers out of range.

    Args:
        size: L. weight, decay: λ and δ, or their initial values if they are `learned` (then δ < 1).
    """
    if not 1 <= size <= LARGEST:
        raise ValueError(f"cache of {size} words: expected 1 to {LARGEST:,}")
    if not 0.0 < weight < 1.0:
        raise ValueError(f"cache weight {weight}: expected a number between 0 and 1")
    if not 0.0 < decay <= 1.0 or (learned and decay == 1.0):
        below = "below 1 if it is learned" if learned else "at most 1"
        raise ValueError(f"cache decay {decay}: expected a number above 0 and {below}")


class Cache(ExplicitBackground):
    """b(K, x) (module docstring). A state is the last L words of each row, (N, L), padded with −1."""

    kept: Tensor  # (V,) bool, the words that enter the cache
    weight_logit: Tensor  # scalar, log λ/(1−λ); a parameter if it is learned
    decay_logit: Tensor  # scalar, log δ/(1−δ); a parameter if it is learned

    def __init__(
        self,
        class_of: Tensor,
        num_classes: int,
        log_weights: Tensor,
        size: int,
        weight: float = 0.1,
        decay: float = 1.0,
        learned: bool = False,
    ) -> None:
        """class_of, log_weights: (V,) as in StaticBackground, log b₀.

        Args:
            size: L. weight, decay, learned: as in check_cache.

        Raises:
            ValueError: one of them is out of range.
        """
        check_cache(size, weight, decay, learned)
        super().__init__(class_of, num_classes, log_weights)
        self.size = size
        exact = log_weights.double()
        self.log_total = float(exact.logsumexp(0))  # 0, unless the weights are not normalised
        kept = exact.isfinite()
        kept[END] = False
        self.keep(kept=kept)
        self.learn_share("weight_logit", weight, learned, log_weights.dtype)
        self.learn_share("decay_logit", decay, learned, log_weights.dtype)

    def start(self, n: int) -> Tensor:
        return self.class_of.new_full((n, self.size), NO_WORD)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        after = torch.cat([state[:, 1:], tokens.unsqueeze(1)], dim=1)
        return torch.where(self.kept[tokens].unsqueeze(1), after, state)

    def flat_states(self, previous: Tensor) -> Tensor:
        read = previous[:, 1:]
        before = functional.pad(self.kept[read].cumsum(1), (1, 0))  # shape: (B, T), words kept before each position
        # L empty places, then the kept words, then one place for all others
        place = torch.where(self.kept[read], before[:, 1:] - 1, read.size(1)) + self.size
        words = previous.new_full((len(previous), self.size + previous.size(1)), NO_WORD).scatter(1, place, read)
        windows = words[:, :-1].unfold(1, self.size, 1)  # shape: (B, T, L)
        return windows.gather(1, before.unsqueeze(2).expand(-1, -1, self.size)).flatten(0, 1)

    def sparse_weights(self, state: Tensor) -> ExplicitWeights:
        b0 = self.root.word_log_weight
        filled = state >= 0  # shape: (N, L)
        used = filled.any(1)
        rows, places = filled.nonzero(as_tuple=True)
        keys, order = (rows * len(self.class_of) + state[rows, places]).sort()
        keys, group = torch.unique_consecutive(keys, return_inverse=True)
        decay, _ = log_odds(self.decay_logit)
        ages = torch.arange(self.size - 1, -1, -1, device=state.device)
        of_places = torch.where(ages == 0, 0.0, ages * decay)  # shape: (L,); 0 · log 1 has no gradient
        total = of_places.expand(filled.shape).masked_fill(~(filled | ~used.unsqueeze(1)), float("-inf")).logsumexp(1)
        decays = (of_places[places] - total[rows])[order]
        log_counts = class_log_sums(decays.unsqueeze(0), group, len(keys)).squeeze(0) if len(keys) else decays
        log_weight, log_rest = log_odds(self.weight_logit)
        mixed = torch.logaddexp(b0[keys % len(self.class_of)] + log_rest, log_counts + log_weight + self.log_total)
        return ExplicitWeights(
            num_words=len(self.class_of),
            keys=keys,
            log_weights=mixed,
            constant=torch.where(used, log_rest, 0.0),
            rooted=None,
        )
