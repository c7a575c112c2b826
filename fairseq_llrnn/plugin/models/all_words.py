"""Probabilities of all words and slots, for the host's scorers and searches.

Sizes: B batch, T time, V words, S signatures, J slots.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from fairseq_llrnn.backgrounds.positions import Along
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.output.log_linear import LogLinearOutput


def word_log_probs(output: LogLinearOutput, scores: Tensor, extra: dict[str, Any]) -> Tensor:
    """Scores (B, T, S + J) -> log p (B, T, V + J), T = 1 in a search; `extra` comes with the scores.

    Raises:
        OptionError: some of the positions, of a background that is another one at each of them.
    """
    background = extra["background"]
    if "state" in extra:
        classes = output.class_log_probs(scores[:, -1], extra["masses"])
        result: Tensor = background.word_log_probs(classes, extra["state"]).unsqueeze(1)
        return result
    along: Along = extra["along"]
    if scores.shape[:2] != along.previous.shape and along.log_mass.shape[:2].numel() > 1:
        raise OptionError(
            "--softmax-batch: not supported with this prior, whose background is another one at every "
            "position; leave it out, or say --max-tokens with a smaller number"
        )
    result = background.word_log_probs_along(output.class_log_probs(scores, along.log_mass), along.previous)
    return result
