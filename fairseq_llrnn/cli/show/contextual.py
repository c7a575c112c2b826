"""What `llrnn show` says of a background that knows the words before: its size, how sentences begin, an example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from fairseq_llrnn.cli.tables import many, percent, printable
from fairseq_llrnn.features.dictionary import EOS
from fairseq_llrnn.prior.parts import AutomatonPart
from fairseq_llrnn.prior.prior import Prior

FIRST_SHOWN = 8
SOME_WORDS, LONGEST_EXAMPLE = 4, 12  # words of the example, where it can be so


def summary(prior: Prior) -> dict[str, Any]:
    """The automaton of a prior; {} where there is none."""
    part = prior.find(AutomatonPart)
    if part is None:
        return {}
    background, end = prior.background(has_source=False), prior.symbols.index(EOS)
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
        "automaton": {
            **part.description(),
            "folds": part.folds,
            "shortest": shortest - 1,
            "start": [{"word": prior.symbols[x], "probability": p} for x, p in best],
            "example": example,
        }
    }


def summary_lines(summary: Mapping[str, Any]) -> list[str]:
    """The same for people, below the background."""
    if "automaton" not in summary:
        return []
    automaton, counts = summary["automaton"], summary["counts"]
    sizes = f"{many(counts['automaton states'], 'state')}, {many(counts['automaton arcs'], 'arc')}"
    lines = [f"            and the words before: {sizes}", *(f"            {made}" for made in _how_made(automaton))]
    shown = [f"{printable(row['word'])} {percent(row['probability'])}" for row in automaton["start"]]
    lines.append(f"            a sentence begins with {', '.join(shown)}")
    example = " ".join(map(printable, automaton["example"])) or "nothing"
    lines.append(f"            and goes on, for example, as: {example}")
    if automaton["shortest"] > 0:
        lines.append(f"            the shortest has {many(automaton['shortest'], 'word')}")
    return lines


def _how_made(automaton: Mapping[str, Any]) -> list[str]:
    """A line for each choice that was made."""
    said = []
    if automaton["folds"]:
        said.append(f"cross-fitted in training, {many(automaton['folds'], 'fold')}")
    if automaton["weight"] != 1.0:
        said.append(f"weight {automaton['weight']:g}")
    if automaton["temperature"] != 1.0:
        said.append(f"temperature {automaton['temperature']:g}")
    if automaton["made_from"] == "automaton":
        what = {"error": "an error", "skip": "left out of training", "floor": "given a little weight"}
        said.append(f"sentences it forbids are {what[automaton['on_zero']]}")
    return said
