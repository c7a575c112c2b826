"""The door to n-gram backgrounds: from an ARPA file or from text to an automaton on its root b₀.

Sizes: V words of the dictionary.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairseq_llrnn.core.automaton.automaton import Automaton
from fairseq_llrnn.core.dictionary import WordList
from fairseq_llrnn.core.ngram.sentences import Sentences


@dataclass(frozen=True)
class NGramBackground:
    """An n-gram background as a prior keeps it. In every state b is a distribution over the predictable words."""

    automaton: Automaton
    log_weights: np.ndarray  # (V,) float64, log b₀, the root; −inf for what is never predicted
    notes: Counter[str]  # what a user should know, e.g. how many words of the file the dictionary lacks


def ngram_from_file(
    path: Path | str, words: WordList, weight: float = 1.0, temperature: float = 1.0
) -> NGramBackground:
    """The n-gram model of an ARPA file (.gz too), on the words of the dictionary.

    Args:
        weight: λ, how much of each order's own say is left beside the next shorter history's; 0 is the unigram.
        temperature: T, b ∝ p^(1/T).

    Raises:
        DataError: a bad file, or one without <unk>. OptionError: a weight or temperature out of range.
    """
    raise NotImplementedError


def ngram_from_text(
    sentences: Sentences,
    words: WordList,
    order: int,
    folds: int = 10,
    weight: float = 1.0,
    temperature: float = 1.0,
    prune: tuple[int, ...] = (),
) -> NGramBackground:
    """A modified Kneser-Ney model of the order, estimated from sentences (`sentences.read_sentences`).

    Args:
        folds: K; starts[1 + k] of the automaton leads into a model that has not seen the sentences of fold k. 0: none,
            for a text that the network is not trained on.
        weight, temperature: as in `ngram_from_file`.
        prune: n-grams seen no more often than prune[n − 1] times are left out; missing orders take the last one given.

    Raises:
        DataError: no word of the dictionary in the text. OptionError: an option out of range.
    """
    raise NotImplementedError
