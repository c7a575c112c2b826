"""Segments by Morfessor, an unsupervised model of morphology (Virpioja et al. 2013, Morfessor 2.0: Python
implementation and extensions for Morfessor Baseline): it learns from words alone which segments they are made of.

It is trained on lower-cased words of the counted text, whose counts are damped (by log₂, so that frequent words do not
stay whole for their number alone), and cuts all words, known or new, by its best segmentation (Viterbi). Its order of
words is drawn with a fixed seed: the same words and counts give the same segments.

A word that it was trained on may be a segment of its own, and stay whole; a new word never. A model of which training
shows only such words would learn that words cut as new ones are do not come. So a word that the text shows once, as
most new words would be (Good 1953), is cut by a Morfessor that was trained without it: one half of these words by one
that knows the other half, and vice versa (cross-fitted).
"""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from fairseq_llrnn.errors import OptionError, from_checkout
from fairseq_llrnn.lexicon.morphemes import Segmentation, has_morphemes

SEED = 1
LONGEST = 100  # characters; Morfessor's time grows with their square, and longer strings are no words


def segment_by_morfessor(counts: Mapping[str, int], words: Iterable[str]) -> dict[str, tuple[Segmentation, ...]]:
    """The segmentation of each word that has a letter and is not too long; {} where training has no such word.

    Args:
        counts: how often the training text has each word. words: those to be cut, in any case.

    Raises:
        OptionError: Morfessor is not installed.
    """
    try:
        import morfessor
    except ImportError:
        raise OptionError(
            "words.morphemes=morfessor: expected the package Morfessor, found none; "
            f"{from_checkout('morphemes')}, or give a FILE of words cut into segments"
        ) from None
    trained: Counter[str] = Counter()
    for word, count in counts.items():
        if count > 0 and _can_cut(word):
            trained[word.lower()] += count
    if not trained:
        return {}
    once = [word for word, count in trained.items() if count == 1]
    halves = [{word for word in once if _half(word) == half} for half in range(2)]
    state, bar = random.getstate(), morfessor.utils.show_progress_bar
    morfessor.utils.show_progress_bar = False
    try:
        models = [_trained({w: c for w, c in trained.items() if w not in half}) for half in (*halves, set())]
    finally:
        random.setstate(state)
        morfessor.utils.show_progress_bar = bar

    def segments(word: str) -> list[str]:
        which = next((i for i, half in enumerate(halves) if word in half), -1)
        found: list[str] = models[which].viterbi_segment(word)[0]
        return found

    return {word: (_cut(word, segments(word.lower())),) for word in words if _can_cut(word)}


def _trained(counts: Mapping[str, int]) -> Any:
    """Morfessor's model of these words."""
    from morfessor import BaselineModel

    random.seed(SEED)
    model = BaselineModel()
    model.load_data(((counts[word], word) for word in sorted(counts)), count_modifier=_damped)
    if counts:
        model.train_batch()
    return model


def _half(word: str) -> int:
    """0 or 1, by the word alone."""
    return hashlib.sha256(word.encode()).digest()[0] % 2


def _can_cut(word: str) -> bool:
    return has_morphemes(word) and len(word) <= LONGEST


def _damped(count: int) -> int:
    return round(math.log2(count + 1))


def _cut(word: str, lowered: list[str]) -> Segmentation:
    """The word as it is written, cut as its lower-cased form is, where both have the same number of characters."""
    if sum(map(len, lowered)) != len(word):
        return tuple(lowered)
    ends = [0]
    for segment in lowered:
        ends.append(ends[-1] + len(segment))
    return tuple(word[a:b] for a, b in zip(ends, ends[1:], strict=False))
