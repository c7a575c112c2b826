"""A background that is another trained model: its next-word probabilities, frozen (domain adaptation; paper, §4).

Sizes: V words, N hypotheses, B batch, T time. The model answers for a prefix as a whole, so a hypothesis' state is all
that it has emitted, start symbol first: (N, t), one longer after every word. A batch of training is one call.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fairseq_llrnn.core.backgrounds.contract import NEGATIVE_INFINITY, Background, class_log_sums

# previous words (B, T), of which [:, 0] is the start symbol -> log p of every word at every position, (B, T, V)
NextWords = Callable[[Tensor], Tensor]


class ModelBackground(Background):
    """b(K, x) = p(x | prefix) of another model, for every word that b₀ allows.

    Every answer needs all V weights of a position; those of the last prefixes are kept for the next question.
    """

    allowed: Tensor  # (V,) bool

    def __init__(
        self, class_of: Tensor, num_classes: int, log_weights: Tensor, start_symbol: int, next_words: NextWords
    ) -> None:
        """class_of: (V,). log_weights: (V,) b₀, whose forbidden words stay forbidden."""
        super().__init__(class_of, num_classes)
        self.register_buffer("allowed", log_weights.isfinite(), persistent=False)
        self.start_symbol = start_symbol
        self._next_words = (next_words,)  # in a tuple: a module of torch would become a part of the new model
        self._last: tuple[Tensor, Tensor] | None = None

    def start(self, n: int) -> Tensor:
        return self.class_of.new_full((n, 1), self.start_symbol)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return torch.cat([state, tokens.unsqueeze(1)], dim=1)

    def log_weights(self, state: Tensor) -> Tensor:
        return self._log_weights_along(state)[:, -1]

    def _log_weights_along(self, previous: Tensor) -> Tensor:
        """(B, T) -> (B, T, V); what stands in the first column is no word, but where the sentence starts."""
        if self._last is None or self._last[0] is not previous:
            read = torch.cat([self.start(len(previous)), previous[:, 1:]], dim=1)
            with torch.no_grad():
                answer = self._next_words[0](read).float()
            self._last = previous, answer.masked_fill(~self.allowed, NEGATIVE_INFINITY)
        return self._last[1]

    # ---- a whole sequence at once: one call of the model ------------------------------------------------------------

    def log_mass_along(self, previous: Tensor) -> Tensor:
        weights = self._log_weights_along(previous)
        return class_log_sums(weights.flatten(0, 1), self.class_of, self.num_classes).view(*previous.shape, -1)

    def log_shares_along(self, previous: Tensor) -> Tensor:
        weights = self._log_weights_along(previous)
        mass = self.log_mass_along(previous)[..., self.class_of]
        return (weights - mass).masked_fill(weights.isneginf(), NEGATIVE_INFINITY)

    def log_share_along(self, previous: Tensor, targets: Tensor) -> Tensor:
        return self.log_shares_along(previous).gather(2, targets.unsqueeze(2)).squeeze(2)
