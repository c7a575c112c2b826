"""Products and temperatures in their fastest form: where they are atoms again, they are as fast as one.

Sizes: V words. The product of a static background with an automaton is the automaton whose arcs and root weigh the
words as well; at a temperature T all its weights, failures included, are divided by T:

    arc (q, x):  log w + log s(x)      root:  log b₀(x) + log s(x)          failures keep their cost
    arc (q, x):  log w / T             root:  log b₀(x) / T                 failures: log cost / T

The product of a static background with a mixture is the mixture of its products with the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.backgrounds.algebra import Product, Tempered, check_parts
from fairseq_llrnn.backgrounds.automaton import AutomatonBackground
from fairseq_llrnn.backgrounds.base import Background, StaticBackground
from fairseq_llrnn.backgrounds.mixture import Mixture


def product(parts: Sequence[Background]) -> Background:
    """The product of backgrounds over the same words: one of the parts' kinds where that is possible, else `Product`.

    Raises:
        ValueError: as Product.
    """
    check_parts("Product", parts)
    flat = [each for part in parts for each in (part.each() if isinstance(part, Product) else [part])]
    static = [part for part in flat if type(part) is StaticBackground]
    others = [part for part in flat if type(part) is not StaticBackground]
    if static:
        log_weights = torch.stack([part.word_log_weight for part in static]).sum(0)
        which = next((i for i, part in enumerate(others) if isinstance(part, (AutomatonBackground, Mixture))), None)
        if which is None:
            others.append(StaticBackground(parts[0].class_of, parts[0].num_classes, log_weights))
        else:
            others[which] = _reweighed(others[which], log_weights)
    return others[0] if len(others) == 1 else Product(others)


def tempered(part: Background, temperature: float) -> Background:
    """b^(1/T): one of the part's kind where that is possible, else `Tempered`.

    Raises:
        ValueError: as Tempered.
    """
    background = Tempered(part, temperature)
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
    return background


def _reweighed(part: Background, log_weights: Tensor) -> Background:
    """An automaton or a mixture times static weights (V,)."""
    if isinstance(part, Mixture):
        static = StaticBackground(part.class_of, part.num_classes, log_weights)
        weights = part.weight_logits.detach().double().softmax(0).tolist()
        return Mixture([product([each, static]) for each in part.each()], weights, part.weighting)
    assert isinstance(part, AutomatonBackground)
    automaton, factors = part.automaton, log_weights.double().cpu().numpy()
    kept = np.isfinite(factors[automaton.tokens])  # an arc on a forbidden word goes
    before = np.concatenate([[0], kept.cumsum()])
    changed = replace(
        automaton,
        offsets=before[automaton.offsets],
        tokens=automaton.tokens[kept],
        nexts=automaton.nexts[kept],
        log_weights=(automaton.log_weights + factors[automaton.tokens])[kept],
    )
    return _on_root(part, changed, part.root.word_log_weight + log_weights)


def _on_root(part: AutomatonBackground, automaton: Automaton, root: Tensor) -> AutomatonBackground:
    background = AutomatonBackground(part.class_of.cpu(), part.num_classes, root.cpu(), automaton)
    return background.to(root.device)
