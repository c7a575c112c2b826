"""Segments by Morfessor, an unsupervised model of morphology (Virpioja et al. 2013, Morfessor 2.0: Python
implementation and extensions for Morfessor Baseline): it learns from words alone which segments they are made of.

It is trained on lower-cased words of the counted text, whose counts are damped (by log₂, so that frequent words do not
stay whole for their number alone), and cuts all words, known or new, by its best segmentation (Viterbi). Its order of
words is drawn with a fixed seed: the same words and counts give the same segments.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.morphemes import Segmentation, has_morphemes

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
            "--morphemes morfessor: expected the package Morfessor, found none; pip install "
            "'fairseq-llrnn[morphemes]', or give a FILE of words cut into segments"
        ) from None
    trained: Counter[str] = Counter()
    for word, count in counts.items():
        if count > 0 and _can_cut(word):
            trained[word.lower()] += count
    if not trained:
        return {}
    state, bar = random.getstate(), morfessor.utils.show_progress_bar
    random.seed(SEED)
    morfessor.utils.show_progress_bar = False
    try:
        model = morfessor.BaselineModel()
        model.load_data(((trained[word], word) for word in sorted(trained)), count_modifier=_damped)
        model.train_batch()
    finally:
        random.setstate(state)
        morfessor.utils.show_progress_bar = bar
    return {word: (_cut(word, model.viterbi_segment(word.lower())[0]),) for word in words if _can_cut(word)}


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
