"""Context classes of sentences: which words they are is known when a batch begins, and no token changes it.

Sizes: B sentences of a batch, J classes of the sentence that has most.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fairseq_llrnn.output.context_classes import ContextClassSource


class SentenceClasses(ContextClassSource):
    """Tables with a row for each sentence: a sentence is a context."""

    def __init__(
        self,
        words: Tensor,
        unk: int | None = None,
        log_added: Tensor | None = None,
        log_unk_factor: Tensor | None = None,
        unreadable: Tensor | None = None,
    ) -> None:
        """
        Args:
            words: (B, J), different ones in a sentence, NO_WORD where there are fewer; J is at least 1, so that a
                model's weights for them take part in every step.
            unk: <unk> of the target, where the words get mass; then the others are given, too, as the methods of these
                names say: log_added and unreadable (B, J), log_unk_factor (B,).
        """
        self.rows, self.width = words.shape
        self.unk, self._words = unk, words
        if unk is not None:
            assert log_added is not None and log_unk_factor is not None and unreadable is not None
            self._log_added, self._log_unk_factor, self._unreadable = log_added, log_unk_factor, unreadable

    def start(self, n: int) -> Tensor:
        return torch.arange(n, device=self._words.device)

    def words(self, contexts: Tensor) -> Tensor:
        return self._words[contexts]

    def log_added(self, contexts: Tensor) -> Tensor:
        return self._log_added[contexts]

    def log_unk_factor(self, contexts: Tensor) -> Tensor:
        return self._log_unk_factor[contexts]

    def unreadable(self, contexts: Tensor) -> Tensor:
        return self._unreadable[contexts]
