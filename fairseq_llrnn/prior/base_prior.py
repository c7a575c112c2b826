"""A prior without parts: dictionary, lexicon and counts give features, signatures and b₀.

Sizes: V words of the dictionary, M words with an indicator feature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from tqdm import tqdm

from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.features.feature_table import (
    FeatureTable,
    Signatures,
    TopWords,
    WordRows,
    group_equal_rows,
    identity_rows,
    restrict_groups,
    words_with_identity,
)
from fairseq_llrnn.features.spelling_features import UserPatterns, iter_suffix_features, shape_features
from fairseq_llrnn.features.subwords import CONVENTIONS, PieceText, piece_features
from fairseq_llrnn.files.reading import name_of
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.morphemes import GROUPS as MORPHEME_GROUPS
from fairseq_llrnn.prior.background_terms import options_of, static_log_weights
from fairseq_llrnn.prior.expression import Atom
from fairseq_llrnn.prior.named_backgrounds import Inputs
from fairseq_llrnn.prior.parts.static import UnigramOptions
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe


def plain_prior(
    words: WordList,
    counts: np.ndarray,
    lexicon: Lexicon,
    recipe: Recipe,
    patterns: UserPatterns | None = None,
    sources: Sequence[str] = (),
    text: PieceText | None = None,
    unused_patterns: bool = False,
    morphemes: Mapping[str, Mapping[str, float]] | None = None,
    below: Atom | None = None,
) -> tuple[Prior, Counter[str]]:
    """Build a prior of features and static weights, and notes for the user with counts.

    Args:
        words: the dictionary.
        counts: (V,) counts that rank the words and give the unigram.
        lexicon: features by word. Words that it lacks have only their indicator or `NOTTOP`, and surface features.
        recipe: only its keys about features are used.
        sources: the files of lexicon and counts, for the prior's JSON.
        text: with `recipe.pieces`, the text whose words give pieces their features (None: pieces get none).
        unused_patterns: whether a pattern may match no word of the dictionary, because it is also meant for source
            words.
        morphemes: features of words by their morphemes.
        below: the background b₀ (None: that of the recipe).

    Raises:
        OptionError, DataError: as the parts do.
    """
    notes: Counter[str] = Counter(lexicon.notes)
    symbols = words.ordinary
    if patterns is not None and not unused_patterns:
        patterns.check_used(symbols if recipe.pieces is None else map(CONVENTIONS[recipe.pieces].bare, symbols))
    rows = _word_rows(words, lexicon, recipe, patterns, text, morphemes or {})
    if text is not None and (num_missing := len(set(symbols) - text.pieces())):
        notes["pieces without features of words, because the text of --count-text lacks them"] += num_missing
    is_known = [w in lexicon for w in (symbols if text is None else text.words())]
    if len(lexicon) and not all(is_known):
        what = "dictionary words" if text is None else "words of the text"
        notes[f"{what} that the lexicon lacks"] += is_known.count(False)
    ordinary = ~words.specials
    surface = {"Shape": recipe.shapes, "Suffix": recipe.suffixes is not None, "Pattern": patterns is not None}
    surface["Piece"] = recipe.pieces is not None and recipe.features != ()
    requested = [group for group, is_requested in surface.items() if is_requested]
    if morphemes is not None and not set(MORPHEME_GROUPS) & set(recipe.features or ()):
        requested += MORPHEME_GROUPS  # a choice among them leaves the others out
    output = _signatures(words, rows, ordinary, counts, recipe, recipe.identities, recipe.features, "", requested)
    if recipe.input_features is None and recipe.input_top_words is None:
        input_signatures = output
    else:
        groups = recipe.features if recipe.input_features is None else recipe.input_features
        requested_input = requested if recipe.input_features is None else ()
        top = recipe.identities if recipe.input_top_words is None else recipe.input_top_words
        input_signatures = _signatures(words, rows, ordinary, counts, recipe, top, groups, "input_", requested_input)
    below, analyser = below or Atom(recipe.background), recipe.words.morphemes
    options = options_of(below)
    unigram = options if isinstance(options, UnigramOptions) else UnigramOptions()
    has_morphemes = analyser is not None or bool(morphemes)
    segmenter = name_of(analyser) if isinstance(analyser, (str, Path)) else "given" if has_morphemes else None
    settings = {
        "top_words": recipe.identities,
        "features": recipe.features,
        "input_features": recipe.input_features,
        "input_top_words": recipe.input_top_words,
        "shapes": recipe.shapes,
        "suffix_floor": recipe.suffixes,
        "background": below.text,
        "pieces": recipe.pieces,
        "identity_floor": recipe.identity_floor,
        "morphemes": segmenter,
        "morpheme_floor": None if analyser is None else recipe.words.morpheme_floor,
        "smoothing": unigram.smoothing,
        "pseudo_count": unigram.added,
        "patterns": patterns.names if patterns else None,
        "lexicon_entries": len(lexicon),
        "sources": list(sources),
    }
    prior = Prior(words.symbols, output, input_signatures, np.zeros(len(words)), settings)
    return replace(prior, log_weights=static_log_weights(below, prior, Inputs(words, counts, (), options))), notes


def _word_rows(
    words: WordList,
    lexicon: Lexicon,
    recipe: Recipe,
    patterns: UserPatterns | None,
    text: PieceText | None,
    morphemes: Mapping[str, Mapping[str, float]],
) -> WordRows:
    """Return every a-priori feature of every word, without indicators. Special symbols have none."""
    ordinary = words.ordinary
    floor, spelt = recipe.suffixes, ordinary
    rows: Iterable[dict[str, float]] = (dict(lexicon.features(word)) for word in ordinary)
    if recipe.pieces is not None:
        convention = CONVENTIONS[recipe.pieces]
        spelt = [convention.bare(piece) for piece in ordinary]
        rows = piece_features(ordinary, convention, text, lexicon, floor)
    elif floor is not None:
        rows = (row | suffixes for row, suffixes in zip(rows, iter_suffix_features(ordinary, floor), strict=True))
    pairs = zip(spelt, rows, strict=True)

    def row_of(special: bool) -> dict[str, float]:
        if special:
            return {}
        word, row = next(pairs)
        if recipe.shapes:
            row |= shape_features(word)
        if patterns is not None:
            row |= patterns.features(word)
        return row | dict(morphemes.get(word, {}))

    return WordRows.of(map(row_of, tqdm(words.specials, "features", unit=" words", leave=False, disable=None)))


def _signatures(
    words: WordList,
    rows: WordRows,
    ordinary: np.ndarray,
    counts: np.ndarray,
    recipe: Recipe,
    top: TopWords,
    groups: Sequence[str] | None,
    side: Literal["", "input_"],
    requested: Sequence[str] = (),
) -> Signatures:
    """Return the classes of φ or of ψ. The names of ψ's settings begin with `side`."""
    option = "input_top_words" if side else "--top-words"
    chosen = words_with_identity(counts, ordinary, top, recipe.identity_floor, option)
    # words without an indicator and with equal features are one signature, represented by the first of them
    has_identity = ~ordinary
    has_identity[chosen] = True
    row_keys = np.where(has_identity, len(rows.rows) + np.arange(len(words)), rows.row_of)
    _, first, index_of_word = np.unique(row_keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    first, place = first[order], np.argsort(order)
    columns = np.flatnonzero(np.isin(first, chosen))
    identity = identity_rows([words.symbols[i] for i in first], ~ordinary[first], columns)
    restricted = restrict_groups(rows.rows, groups, "input_features" if side else "--features", requested)
    table = FeatureTable.from_rows([{**a, **restricted[rows.row_of[i]]} for i, a in zip(first, identity, strict=True)])
    signatures = group_equal_rows(table)  # restricted ones may be equal, too
    return replace(signatures, class_of=signatures.class_of[place[index_of_word]])
