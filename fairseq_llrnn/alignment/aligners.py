"""Who aligns the words of a bitext, and the table t(target word | source word) that follows.

Sizes: I sentence pairs, U source words, V target words.
"""

from __future__ import annotations

import importlib.util
from collections import Counter

import numpy as np

from fairseq_llrnn.alignment.bitext import Bitext
from fairseq_llrnn.alignment.eflomal import eflomal_counts
from fairseq_llrnn.alignment.ibm1 import ibm1
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.errors import DataError, OptionError, from_checkout

ALIGNERS = ("auto", "eflomal", "ibm1")
LONGEST = 1023  # words of a sentence; eflomal reads no longer ones


def choose_aligner(asked_for: str) -> str:
    """"eflomal" or "ibm1": what `asked_for` is, and for "auto" eflomal where it is installed.

    Raises:
        OptionError: eflomal was asked for and is not there.
    """
    installed = importlib.util.find_spec("eflomal") is not None
    if asked_for == "auto":
        return "eflomal" if installed else "ibm1"
    if asked_for == "eflomal" and not installed:
        raise OptionError(
            f"--aligner eflomal: the Python module eflomal is not installed; {from_checkout('align')} (which needs a C "
            "compiler), or say --aligner ibm1"
        )
    return asked_for


def is_alignable(bitext: Bitext) -> np.ndarray:
    """(I,) bool: the sentence pairs with words on both sides, and not too many of them."""
    usable = np.ones(len(bitext.source), dtype=bool)
    for side in (bitext.source, bitext.target):
        usable &= (side.lengths > 0) & (side.lengths <= LONGEST)
    return usable


def translation_table(
    bitext: Bitext, source_words: np.ndarray, target_words: np.ndarray, top: int, aligner: str,
    workers: int | None = None,
) -> tuple[LexicalTable, Counter[str]]:  # fmt: skip
    """Estimate t(target | source), and count what a user should know about it.

    Args:
        source_words: (U,) bool, who may have translations; target_words: (V,) bool, who may be one. All others are
            left out of the bitext before it is aligned.
        top: how many translations a source word keeps. aligner: "eflomal" or "ibm1". workers: threads of ibm1 (None:
            one for each core); eflomal has its own.

    Raises:
        DataError: no pair of sentences with words on both sides; or eflomal failed.
    """
    source, target = bitext.source.with_words(source_words), bitext.target.with_words(target_words)
    usable = is_alignable(Bitext(source, target))
    notes: Counter[str] = Counter()
    if not usable.all():
        notes[f"sentence pairs not aligned: a side without words, or of more than {LONGEST:,}"] += int((~usable).sum())
    if not usable.any():
        raise DataError(
            "the bitext: expected sentence pairs with words of the dictionaries on both sides, found none among "
            f"{len(usable):,}; give the folder that fairseq-preprocess made from this language pair"
        )
    chosen = Bitext(source.with_sentences(usable), target.with_sentences(usable))
    sizes = len(source_words), len(target_words)
    pairs = eflomal_counts(chosen, *sizes) if aligner == "eflomal" else ibm1(chosen, *sizes, workers=workers)
    return LexicalTable.from_pairs(*pairs, len(source_words), top), notes
