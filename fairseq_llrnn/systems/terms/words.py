"""The words that terms are of: those of a dictionary, or, over pieces, those that a training text spells in them.

A piece that is a whole word has those features of it that are true of most of its occurrences (features/subwords.py).

Sizes: V words of the target's dictionary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.lexicon.form_analyses import RELEVANT
from fairseq_llrnn.lexicon.word_forms import WordForms
from fairseq_llrnn.prior.parts.evidence import pieces_of
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.terms.phrases import PhraseForms

MOSTLY = 0.5


def target_shares(prior: Prior) -> dict[str, float]:
    """How frequent each word of the target is, as a share of all."""
    counts = next((target for _, target in (part.text_words for part in prior.parts) if target is not None), None)
    if counts is None:
        return dict(zip(prior.symbols, np.exp(prior.log_weights).tolist(), strict=True))
    total = max(1, sum(counts.values()))
    return {word: count / total for word, count in counts.items()}


def source_words(prior: Prior) -> Iterable[str]:
    """The words of the source that are known."""
    text_words = next((source for source, _ in (part.text_words for part in prior.parts) if source is not None), None)
    return prior.source_symbols if text_words is None else sorted(text_words)


def word_features(
    prior: Prior, words: Collection[str], groups: Collection[str] | None = None
) -> dict[str, Mapping[str, float]]:
    """The features of the words of a prior: of those that the output predicts, and of those that are read.

    Args:
        words: over pieces, those of the training text; a piece that is none of them only begins or ends others.
        groups: of features; None: all.
    """
    pieces, sides = pieces_of(prior), [prior.output]
    if prior.input is not prior.output:
        sides.append(prior.input)
    tables = [side.features if groups is None else side.features.of_groups(groups) for side in sides]
    classes = zip(*(side.class_of.tolist() for side in sides), strict=True)
    features_of: dict[str, Mapping[str, float]] = {}
    for symbol, of_symbol in zip(prior.symbols, classes, strict=True):
        if symbol in SPECIALS or (pieces is not None and pieces.is_marked(symbol) != pieces.mark_begins):
            continue
        features = {k: v for table, row in zip(tables, of_symbol, strict=True) for k, v in table.row(row).items()}
        if pieces is not None:
            symbol, features = pieces.bare(symbol), {k: v for k, v in features.items() if v >= MOSTLY}
            if symbol not in words:
                continue
        features_of[symbol] = features
    return features_of


def phrase_forms(prior: Prior, forms: WordForms) -> PhraseForms:
    """What finds the forms of phrases, from those of words and what the prior knows of these."""
    shares = target_shares(prior)
    return PhraseForms(forms, shares, lambda: word_features(prior, shares, RELEVANT))
