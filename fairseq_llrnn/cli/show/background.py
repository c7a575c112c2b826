"""What `llrnn show` says of a background that knows the words before: how sentences begin, an example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairseq_llrnn.cli.tables import many, percent, printable
from fairseq_llrnn.features.dictionary import EOS
from fairseq_llrnn.prior.prior import Prior

FIRST_SHOWN = 8
SOME_WORDS, LONGEST_EXAMPLE = 4, 12  # words of the example, where it can be so


def summary(prior: Prior) -> dict[str, Any]:
    """How sentences of the background begin, where it knows the words before; {} where it does not, or fairseq must."""
    if not any(part.is_base for part in prior.parts) or any(part.needs_fairseq for part in prior.parts):
        return {}
    import torch

    with torch.no_grad():
        background, end = prior.background(has_source=False), prior.index(EOS)
        if background.constant:
            return {}
        state = background.start(1)
        shortest = int(background.steps_to_end(state)[0])
        first = background.log_weights(state)[0].softmax(0)
        values, words = first.topk(min(FIRST_SHOWN, int((first > 0).sum())))
        best = zip(words.tolist(), values.tolist(), strict=True)
        example: list[str] = []
        for left in range(max(LONGEST_EXAMPLE + 1, shortest), 0, -1):
            limited = background.within(left)
            probable = limited.log_weights(state) + torch.where(limited.log_shares(state).isneginf(), -torch.inf, 0.0)
            goes_on = bool((probable[0] > -torch.inf).sum() > 1)
            if left > 1 and (not example or (goes_on and len(example) < SOME_WORDS)):
                probable[0, end] = -torch.inf  # a sentence of some length shows more
            token = probable.argmax(1)
            if int(token) == end or bool(probable.max() == -torch.inf):
                break
            example.append(prior.symbols[int(token)])
            state = background.advance(state, token)
        return {
            "shortest": shortest - 1,
            "start": [{"word": prior.symbols[x], "probability": p} for x, p in best],
            "example": example,
        }


def summary_lines(background: Mapping[str, Any]) -> list[str]:
    """The same for people, below the background."""
    if "start" not in background:
        return []
    shown = [f"{printable(row['word'])} {percent(row['probability'])}" for row in background["start"]]
    example = " ".join(map(printable, background["example"])) or "nothing"
    lines = [f"            a sentence begins with {', '.join(shown)}"]
    lines.append(f"            and goes on, for example, as: {example}")
    if background["shortest"] > 0:
        lines.append(f"            the shortest has {many(background['shortest'], 'word')}")
    return lines
