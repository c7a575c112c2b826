"""Makes n-gram backgrounds: from an ARPA file or from text to an automaton on its root b₀.

Sizes: V words of the dictionary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from fairseq_llrnn import defaults
from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.ngrams.arpa import read_arpa
from fairseq_llrnn.ngrams.folds import check_room, folds_of, joined, same_states
from fairseq_llrnn.ngrams.kneser_ney import LARGEST_ORDER, estimate
from fairseq_llrnn.ngrams.ngrams import Sentences
from fairseq_llrnn.ngrams.reweighing import mixed, normalised, tempered
from fairseq_llrnn.ngrams.to_automaton import Converted, ngrams_to_automaton

DEFAULT_FOLDS = defaults.FOLDS


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
        weight: λ, how much of each history's own say is left beside that of the next shorter one; 0 is the unigram.
        temperature: T, b ∝ b₀^(1 − 1/T) p^(1/T): the unigram alone where T is large.

    Raises:
        DataError: a bad file, or one without </s>, <unk> or any word of the dictionary. OptionError: a weight or
        temperature out of range.
    """
    converted = ngrams_to_automaton(read_arpa(path), words, str(path))
    automaton, log_root = _weighed(converted, weight, temperature)
    return NGramBackground(automaton, log_root, converted.notes)


def ngram_from_text(
    sentences: Sentences,
    words: WordList,
    order: int,
    folds: int = DEFAULT_FOLDS,
    weight: float = 1.0,
    temperature: float = 1.0,
    prune: tuple[int, ...] = (),
    unigrams: np.ndarray | None = None,
) -> NGramBackground:
    """A modified Kneser-Ney model of the order, estimated from sentences (`sentences.read_sentences`).

    Args:
        folds: K; starts[1 + k] of the automaton leads into a model that has not seen the sentences of fold k. 0: none,
            for a text that the network is not trained on.
        weight, temperature: as in `ngram_from_file`.
        prune: as in `kneser_ney.estimate`.
        unigrams: (V,) log b₀ of another text, which sums to one, in the place of this text's own.

    Raises:
        DataError: sentences without words, or too few for the folds; more n-grams than there is memory for.
        OptionError: an option out of range.
    """
    check_order(order)
    full = estimate(sentences, words, order, prune, unigrams)
    check_room(order, len(full), folds)
    converted = ngrams_to_automaton(full, words, f"ngram:{order}")
    automaton, log_root = _weighed(converted, weight, temperature)
    notes = converted.notes
    if folds == 0 or automaton.num_states == 1:  # a unigram has no histories to hold out
        return NGramBackground(automaton, log_root, notes)
    fold_of = folds_of(sentences, folds)

    def parts() -> Iterator[tuple[Automaton, np.ndarray]]:
        for fold in tqdm(range(folds), "n-grams without each fold", leave=False, disable=None):
            rest = sentences.chosen(fold_of != fold)
            if len(rest.tokens) == 0:
                raise DataError(
                    f"ngram:{order}: expected text for {folds} folds, found {len(sentences):,} sentences, all of them "
                    f"with words in one fold; give more text, or say ngram({order}, folds=0) if the network is trained "
                    "on another one"
                )
            model = estimate(rest, words, order, prune, unigrams=full.log_probs[: len(words)])
            part = ngrams_to_automaton(model, words, f"ngram:{order}")
            places = same_states(model, part.histories, full, converted.histories)
            yield _weighed(part, weight, temperature)[0], places

    return NGramBackground(joined(automaton, parts()), log_root, notes)


def _weighed(converted: Converted, weight: float, temperature: float) -> tuple[Automaton, np.ndarray]:
    automaton = tempered(mixed(converted.automaton, converted.log_root, weight), converted.log_root, temperature)
    return normalised(automaton, converted.log_root)


def check_order(order: int) -> None:
    """Raise OptionError where it is out of range."""
    if not 1 <= order <= LARGEST_ORDER:
        raise OptionError(
            f"--background ngram:{order}: expected an order from 1 to {LARGEST_ORDER}; longer n-grams can come from an "
            "ARPA file, as ngram:FILE"
        )
