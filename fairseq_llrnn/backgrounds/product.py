"""A product of backgrounds: every one must allow a word, and each has its say (grammar × statistics).

Sizes: N hypotheses, V words, E words listed in all rows.

    b(K, x)  =  Π_i b_i(K, x)                                             not normalised: p(x | K) is

Where a part lists all words that it allows (a grammar), only these are looked at: the others are asked for their
weights of E words. Else, where all parts have a root, the product of the roots is the root, and listed is what any part
lists.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.combined import Combined, check_parts
from fairseq_llrnn.backgrounds.explicit_words import ExplicitWeights, side_by_side


class Product(Combined):
    """Π b_i.

    `steps_to_end` is the most that any part needs: exact where no more than one part (a grammar) cares when a string
    ends, and a lower bound where several do, for the words that end one need not be those that end the other.
    """

    def __init__(self, parts: Sequence[Background]) -> None:
        """parts: over the same words and signatures; they may be products, mixtures, … themselves.

        Raises:
            ValueError: no parts, or parts over other words or signatures.
        """
        check_parts("Product", parts)
        closed = [part for part in parts if part.lists_all and part.root_log_weights() is not None]
        roots = [part.root_log_weights() for part in (closed[:1] or parts)]
        known = [root for root in roots if root is not None]
        super().__init__(parts, torch.stack(known).sum(0) if known and len(known) == len(roots) else None)
        self.lists_all = bool(closed)

    # ---- weights ----------------------------------------------------------------------------------------------------

    def explicit(self, state: Tensor) -> ExplicitWeights | None:
        if self.root is None:
            return None
        parts = self.of_parts(state)
        if self.lists_all:
            return self._of_the_closed(parts)
        found = [weights for part, own in parts if (weights := part.explicit(own)) is not None]
        roots = [root for part, _ in parts if (root := part.root_log_weights()) is not None]
        keys, log_weights = side_by_side(found, roots)
        rooted = [weights.rooted for weights in found if weights.rooted is not None]
        return ExplicitWeights(
            num_words=len(self.class_of),
            keys=keys,
            log_weights=torch.stack(log_weights).sum(0),
            constant=torch.stack([weights.constant for weights in found]).sum(0),
            rooted=torch.stack(rooted).all(0) if rooted else None,
        )

    def _of_the_closed(self, parts: list[tuple[Background, Tensor]]) -> ExplicitWeights | None:
        """What the first part allows that lists all of its words, weighed by the others, too."""
        which = next(i for i, (part, _) in enumerate(parts) if part.lists_all)
        part, own = parts[which]
        weights = part.explicit(own)
        assert weights is not None
        rows, tokens = weights.rows, weights.tokens
        others = [p.log_weights_at(s, rows, tokens) for i, (p, s) in enumerate(parts) if i != which]
        log_weights = sum(others, weights.log_weights)
        return ExplicitWeights(weights.num_words, weights.keys, log_weights, weights.constant, weights.rooted)

    def dense_log_weights(self, state: Tensor) -> Tensor:
        weights = [part.log_weights(own) for part, own in self.of_parts(state)]
        return sum(weights[1:], weights[0]).expand(len(state), -1)

    # ---- limits of length -------------------------------------------------------------------------------------------

    def steps_to_end(self, state: Tensor) -> Tensor:
        return torch.stack([part.steps_to_end(own) for part, own in self.of_parts(state)]).amax(0)

    def within(self, remaining: int) -> Background:
        if all(part.within(remaining) is part for part in self.each()):
            return self
        made = self.copied()
        made.remaining = remaining
        return made
