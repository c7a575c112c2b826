"""For `generate`: no sentence that its grammar cannot end within the limit of length.

    model.generate(prompt, max_new_tokens=12, logits_processor=[EndsInTime(model.lm_head, prompt, 12)])

Probabilities of what remains are not changed, as in our own searches (Background.within).
"""

from __future__ import annotations

import torch
from llrnn_gpt2 import has_ended
from torch import Tensor
from transformers import LogitsProcessor

from fairseq_llrnn import LogLinearHead
from fairseq_llrnn.errors import DataError


class EndsInTime(LogitsProcessor):
    """Forbids every word after which no complete sentence is in reach."""

    def __init__(self, head: LogLinearHead, prompt: Tensor, max_new_tokens: int) -> None:
        """prompt: (B, T).

        Raises:
            DataError: no sentence that begins so ends within max_new_tokens.
        """
        self.head, self.longest = head, prompt.size(1) - 1 + max_new_tokens  # `</s>` at the start is not counted
        state = head.advance(head.start(len(prompt)), prompt[:, 1:])
        needed = int(state.background.steps_to_end(state.states).max())
        if needed > max_new_tokens:
            raise DataError(
                f"EndsInTime: expected max_new_tokens of at least {needed}, which the grammar needs to end after this "
                f"prompt, found {max_new_tokens}; give more, or another prompt"
            )

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """input_ids: (N, T), all that is written. scores: (N, V)."""
        state = self.head.advance(self.head.start(len(input_ids)), input_ids[:, 1:]).limited(self.longest)
        out_of_reach = state.reachable.log_shares(state.states).isneginf()
        going = ~has_ended(input_ids, self.head.eos).unsqueeze(1)  # behind the end there is only <pad>
        return scores.masked_fill(out_of_reach & going, -torch.inf)
