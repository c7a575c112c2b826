"""Products and temperatures that are atoms again: what a static background or an automaton becomes is one, as fast.

Sizes: V words. The product of a static background with an automaton is the automaton whose arcs and root weigh the
words as well; at a temperature T all its weights, failures included, are divided by T:

    arc (q, x):  log w + log s(x)      root:  log b₀(x) + log s(x)          failures keep their cost
    arc (q, x):  log w / T             root:  log b₀(x) / T                 failures: log cost / T
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.backgrounds.automaton import AutomatonBackground
from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.backgrounds.product import Product
from fairseq_llrnn.backgrounds.static import StaticBackground
from fairseq_llrnn.backgrounds.tempered import Tempered


def product(parts: Sequence[Background]) -> Background:
    """The product of backgrounds over the same words: one of the parts' kinds where that is possible, else `Product`.

    Raises:
        ValueError: as Product.
    """
    checked = Product(parts)
    static = [part for part in parts if type(part) is StaticBackground]
    others = [part for part in parts if type(part) is not StaticBackground]
    if not static or len(parts) == 1:
        return parts[0] if len(parts) == 1 else checked
    log_weights = torch.stack([part.word_log_weight for part in static]).sum(0)
    if not others:
        return StaticBackground(checked.class_of, checked.num_classes, log_weights)
    automata = [i for i, part in enumerate(others) if isinstance(part, AutomatonBackground)]
    if automata:
        others[automata[0]] = _reweighed(others[automata[0]], log_weights)
        return others[0] if len(others) == 1 else Product(others)
    merged = StaticBackground(checked.class_of, checked.num_classes, log_weights)
    return checked if len(static) == 1 else Product([*others, merged])


def tempered(part: Background, temperature: float) -> Background:
    """b^(1/T): one of the part's kind where that is possible, else `Tempered`.

    Raises:
        ValueError: as Tempered.
    """
    checked = Tempered(part, temperature)
    if temperature == 1.0:
        return part
    if type(part) is StaticBackground:
        return StaticBackground(part.class_of, part.num_classes, part.word_log_weight / temperature)
    if isinstance(part, AutomatonBackground):
        automaton = replace(
            part.automaton,
            log_weights=part.automaton.log_weights / temperature,
            back_off=part.automaton.back_off / temperature,
        )
        return _on_root(part, automaton, part.root.word_log_weight / temperature)
    return checked


def _reweighed(part: Background, log_weights: Tensor) -> Background:
    """An automaton times static weights (V,)."""
    assert isinstance(part, AutomatonBackground)
    automaton, static = part.automaton, log_weights.double().cpu().numpy()
    kept = np.isfinite(static[automaton.tokens])  # an arc on a forbidden word goes
    before = np.concatenate([[0], kept.cumsum()])
    changed = replace(
        automaton,
        offsets=before[automaton.offsets],
        tokens=automaton.tokens[kept],
        nexts=automaton.nexts[kept],
        log_weights=(automaton.log_weights + static[automaton.tokens])[kept],
    )
    return _on_root(part, changed, part.root.word_log_weight + log_weights)


def _on_root(part: AutomatonBackground, automaton: Automaton, root: Tensor) -> AutomatonBackground:
    made = AutomatonBackground(part.class_of.cpu(), part.num_classes, root.cpu(), automaton)
    return made.to(root.device)
