"""Sources of context classes: words that have classes of their own in a sentence or at a step (context_classes.py).

Sizes: N hypotheses, B sentences, T time, J the largest number of context classes of a context.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import View

NO_WORD = -1  # padding of contexts with fewer than J context classes


class ContextClassSource:
    """A source of context classes. Subclasses set `rows` and `width`, and define `start` and `words`.

    A context is a number that `words` maps to the words of its classes. `start` returns numbers below `rows`. If
    `changes`, `advance` may return any number from 0 on, e.g. (a + 1)(V + 1) + b + 1 for the last two tokens a and b.
    The rows of the classes in the output layer are those of the `ClassSource` whose `kind` is this class.
    """

    rows: int  # the number of initial contexts of a batch; they have the first indices
    width: int  # J; may grow with new contexts
    changes = False  # whether tokens change the context
    # Set if it adds strings (ids outside the vocabulary of the background below) and mass: the word that all other such
    # strings are in the background below, alone in its class.
    unk: int | None = None

    def start(self, n: int) -> Tensor:
        """Return the initial contexts of n sentences: (n,)."""
        raise NotImplementedError

    def words(self, contexts: Tensor) -> Tensor:
        """Return the distinct words of the context classes: (…,) -> (…, J), padded with NO_WORD.

        If `unk` is None, words outside the vocabulary of the background below count as NO_WORD.
        """
        raise NotImplementedError

    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        """Return the contexts after these tokens: (N,), (N,) -> (N,)."""
        return contexts

    def per_position(self, previous: Tensor) -> Tensor:
        """Return the contexts before each position of a batch with inputs `previous`: (B, T) -> (B, T)."""
        contexts = [self.start(len(previous)).to(previous.device)]
        for t in range(1, previous.size(1)):
            contexts.append(self.advance(contexts[-1], previous[:, t]) if self.changes else contexts[0])
        return torch.stack(contexts, dim=1)

    # ---- only if it adds strings ------------------------------------------------------------------------------------

    def log_added(self, contexts: Tensor) -> Tensor:
        """Return log m of the word of each context class: (N,) -> (N, J), −inf for NO_WORD."""
        raise NotImplementedError

    def log_weights_below(self, below: View, contexts: Tensor, words: Tensor) -> Tensor | None:
        """Return log b₁ of the words of context classes, instead of that in `below`: (N, J). None: that in `below`.

        Args:
            below: the view of the background below. contexts: (N,).
            words: (N, J), those of the contexts; any word of the background below for strings and padding.
        """
        return None

    def log_unk_factor(self, contexts: Tensor) -> Tensor:
        """Return the log factor of <unk>'s weight: (N,) -> (N,)."""
        raise NotImplementedError

    def unreadable(self, contexts: Tensor) -> Tensor:
        """Return whether a network has no input row for the word of each context class: (…,) -> (…, J) bool."""
        raise NotImplementedError

    def input_id_of(self, contexts: Tensor) -> Tensor:
        """Return the network's input id for the word of each context class: (…,) -> (…, J)."""
        assert self.unk is not None
        return self.words(contexts).masked_fill(self.unreadable(contexts), self.unk)
