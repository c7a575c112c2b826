"""What a source of context classes is: the words that have a class of their own in a sentence or at a step.

Sizes: N hypotheses, B sentences, T time, J context classes of the context that has most of them. What a background
makes of a source is in context_classes.py, which rows the output layer has for it in output/class_source.py.
"""

from __future__ import annotations

import torch
from torch import Tensor

NO_WORD = -1  # where a context has fewer than J context classes


class ContextClassSource:
    """What a source of context classes supplies: `rows`, `width`, `start` and `words`. Contexts are known by number."""

    rows: int  # how many contexts a batch begins with; they have the first numbers
    width: int  # J; may grow while contexts are met
    changes = False  # whether tokens lead from one context to another
    # Where it brings strings of its own (ids that the background below does not know), and mass with them: what all
    # other such strings are to the background below, a word that is alone in its class.
    unk: int | None = None

    def start(self, n: int) -> Tensor:
        """The contexts of n sentences that begin: (n,)."""
        raise NotImplementedError

    def words(self, contexts: Tensor) -> Tensor:
        """The word of each context class, different ones in a context: (…,) -> (…, J), NO_WORD where there are fewer.

        A word that the background below lacks, of a source that brings no strings, counts as NO_WORD.
        """
        raise NotImplementedError

    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        """The contexts after these tokens: (N,), (N,) -> (N,)."""
        return contexts

    def per_position(self, previous: Tensor) -> Tensor:
        """The contexts before each position of a batch whose inputs are `previous`: (B, T) -> (B, T)."""
        found = [self.start(len(previous)).to(previous.device)]
        for t in range(1, previous.size(1)):
            found.append(self.advance(found[-1], previous[:, t]) if self.changes else found[0])
        return torch.stack(found, dim=1)

    # ---- only where it brings strings -------------------------------------------------------------------------------

    def log_added(self, contexts: Tensor) -> Tensor:
        """log m of the word of each context class: (N,) -> (N, J), −inf for NO_WORD."""
        raise NotImplementedError

    def log_unk_factor(self, contexts: Tensor) -> Tensor:
        """What <unk>'s weight is multiplied by, as a logarithm: (N,) -> (N,)."""
        raise NotImplementedError

    def unreadable(self, contexts: Tensor) -> Tensor:
        """Whether the word of each context class is unknown to a network: (…,) -> (…, J) bool."""
        raise NotImplementedError

    def read_as(self, contexts: Tensor) -> Tensor:
        """What a network reads in the place of the word of each context class: (…,) -> (…, J)."""
        assert self.unk is not None
        return self.words(contexts).masked_fill(self.unreadable(contexts), self.unk)
