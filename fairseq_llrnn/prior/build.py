"""Builds a prior: dictionary + lexicon + counts -> features -> signatures -> background.

Sizes: V words of the dictionary, M words with an identity of their own.
"""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le
from tqdm import tqdm
from typing_extensions import Doc

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.features.feature_table import (
    FeatureTable,
    Signatures,
    WordRows,
    group_equal_rows,
    identity_rows,
    restrict_groups,
)
from fairseq_llrnn.features.identities import AUTO, IDENTITY_FLOOR, TopWords, words_with_identity
from fairseq_llrnn.features.spelling import iter_suffix_features, shape_features
from fairseq_llrnn.features.subwords import CONVENTIONS, PieceText, piece_features
from fairseq_llrnn.features.user_patterns import UserPatterns
from fairseq_llrnn.files.numbers import LARGEST_WEIGHT, LEAST_WEIGHT
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.morphemes import GROUPS as MORPHEME_GROUPS
from fairseq_llrnn.lexicon.readers.weights import read_weights
from fairseq_llrnn.ngrams.unigram import unigram_weights
from fairseq_llrnn.prior.languages import LANGUAGE, language_weights
from fairseq_llrnn.prior.named_backgrounds import named_backgrounds
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.settings import Settings

STATIC = "unigram", "uniform", "language:CODE"


@dataclass(frozen=True)
class UnigramOptions(Settings):
    """Of `unigram(…)`, and of `language(CODE, …)`, where the unigram has the punctuation."""

    smoothing: Annotated[
        Literal["absolute", "additive", "good-turing", "none"], Doc("what words get that the text lacks")
    ] = "absolute"
    pseudo_count: Annotated[
        Annotated[float, Ge(LEAST_WEIGHT), Le(LARGEST_WEIGHT)] | None,
        Doc("what additive smoothing adds to every count (default: 1)"),
    ] = None

    def __post_init__(self) -> None:
        if self.pseudo_count is not None and self.smoothing != "additive":
            raise ValueError("smoothing=additive, since no other smoothing adds something")

    @property
    def added(self) -> float:
        """What additive smoothing adds."""
        return 1.0 if self.pseudo_count is None else self.pseudo_count


@dataclass(frozen=True)
class PriorSettings:
    """Features, and static weights; kept in the prior's JSON."""

    top_words: TopWords = AUTO
    features: tuple[str, ...] | None = None  # feature groups of φ; None: all
    input_features: tuple[str, ...] | None = None  # feature groups of ψ; None: as φ
    input_top_words: TopWords | None = None  # None: as top_words
    shapes: bool = False
    suffix_floor: int | None = None  # None: no suffix features
    background: str = "unigram"  # or "uniform", or the path of a TSV
    unigram: UnigramOptions = UnigramOptions()
    pieces: str | None = None  # a convention of features/subwords.py; None: the dictionary holds words
    identity_floor: int = IDENTITY_FLOOR  # of `auto`: the count from which a word has an identity
    morphemes: str | None = None  # who cut the words into morphemes
    morpheme_floor: int | None = None


def build_prior(
    words: WordList,
    counts: np.ndarray,
    lexicon: Lexicon,
    settings: PriorSettings,
    patterns: UserPatterns | None = None,
    sources: Sequence[str] = (),
    text: PieceText | None = None,
    unused_patterns: bool = False,
    morphemes: Mapping[str, Mapping[str, float]] | None = None,
) -> tuple[Prior, Counter[str]]:
    """Build the prior and count what a user should know about it.

    Args:
        words: the dictionary. counts: (V,) counts that rank the words and make the unigram.
        lexicon: features by word; words it lacks keep their identity, `NOTTOP` and surface features only.
        sources: what lexicon and counts were read from, for the prior's JSON.
        text: with `settings.pieces`, the text from which pieces get the features of their words; None: they get none.
        unused_patterns: whether a pattern may match no word of the dictionary, because it is for source words, too.
        morphemes: features of words by their morphemes.

    Raises:
        OptionError, DataError: as the parts do.
    """
    notes: Counter[str] = Counter(lexicon.notes)
    specials = words.specials
    symbols = words.ordinary
    if patterns is not None and not unused_patterns:
        patterns.check_used(symbols if settings.pieces is None else map(CONVENTIONS[settings.pieces].bare, symbols))
    rows = _word_rows(words, specials, lexicon, settings, patterns, text, morphemes or {})
    if text is not None and (unseen := len(set(symbols) - text.pieces())):
        notes["pieces that the text of --count-text lacks: nothing is known of their words"] += unseen
    asked = [w in lexicon for w in (symbols if text is None else text.words())]
    if len(lexicon) and not all(asked):
        which = "dictionary words" if text is None else "words of the text"
        notes[f"{which} that the lexicon lacks"] += asked.count(False)
    ordinary = ~specials
    surface = {"Shape": settings.shapes, "Suffix": settings.suffix_floor is not None, "Pattern": patterns is not None}
    surface["Piece"] = settings.pieces is not None
    asked_for = [group for group, wanted in surface.items() if wanted]
    if morphemes is not None and not set(MORPHEME_GROUPS) & set(settings.features or ()):
        asked_for += MORPHEME_GROUPS  # a choice among them leaves the others out
    output = _signatures(words, rows, ordinary, counts, settings, settings.top_words, settings.features, "", asked_for)
    if settings.input_features is None and settings.input_top_words is None:
        read = output
    else:
        groups = settings.features if settings.input_features is None else settings.input_features
        also = asked_for if settings.input_features is None else ()
        top = settings.top_words if settings.input_top_words is None else settings.input_top_words
        read = _signatures(words, rows, ordinary, counts, settings, top, groups, "input_", also)
    log_weights = static_weights(words, counts, settings.background, settings.unigram)
    used = {
        **{name: value for name, value in asdict(settings).items() if name != "unigram"},
        "smoothing": settings.unigram.smoothing,
        "pseudo_count": settings.unigram.added,
        "patterns": patterns.names if patterns else None,
        "lexicon_entries": len(lexicon),
        "sources": list(sources),
    }
    return Prior(words.symbols, output, read, log_weights, used), notes


def _word_rows(
    words: WordList,
    specials: np.ndarray,
    lexicon: Lexicon,
    settings: PriorSettings,
    patterns: UserPatterns | None,
    text: PieceText | None,
    morphemes: Mapping[str, Mapping[str, float]],
) -> WordRows:
    """Every a-priori feature of every word, identity left out; none of special symbols."""
    ordinary = words.ordinary
    floor, spelt = settings.suffix_floor, ordinary
    known: Iterable[dict[str, float]] = (dict(lexicon.features(word)) for word in ordinary)
    if settings.pieces is not None:
        convention = CONVENTIONS[settings.pieces]
        spelt = [convention.bare(piece) for piece in ordinary]
        known = piece_features(ordinary, convention, text, lexicon, floor)
    elif floor is not None:
        known = (row | more for row, more in zip(known, iter_suffix_features(ordinary, floor), strict=True))
    own = zip(spelt, known, strict=True)

    def row_of(special: bool) -> dict[str, float]:
        if special:
            return {}
        word, row = next(own)
        if settings.shapes:
            row |= shape_features(word)
        if patterns is not None:
            row |= patterns.features(word)
        return row | dict(morphemes.get(word, {}))

    return WordRows.of(map(row_of, tqdm(specials, "features", unit=" words", leave=False, disable=None)))


def _signatures(
    words: WordList,
    rows: WordRows,
    ordinary: np.ndarray,
    counts: np.ndarray,
    settings: PriorSettings,
    top: TopWords,
    groups: Sequence[str] | None,
    side: Literal["", "input_"],
    asked_for: Sequence[str] = (),
) -> Signatures:
    """The classes of φ, or of ψ; `side` begins the names of their keys."""
    option = "input_top_words" if side else "--top-words"
    chosen = words_with_identity(counts, ordinary, top, settings.identity_floor, option)
    # words without an identity and with equal features are one signature: one of them stands for all, the first
    has_identity = ~ordinary
    has_identity[chosen] = True
    which = np.where(has_identity, len(rows.rows) + np.arange(len(words)), rows.row_of)
    _, first, of_word = np.unique(which, return_index=True, return_inverse=True)
    order = np.argsort(first)
    first, place = first[order], np.argsort(order)
    known = np.flatnonzero(np.isin(first, chosen))
    identity = identity_rows([words.symbols[i] for i in first], ~ordinary[first], known)
    kept = restrict_groups(rows.rows, groups, "input_features" if side else "--features", asked_for)
    table = FeatureTable.from_rows([{**a, **kept[rows.row_of[i]]} for i, a in zip(first, identity, strict=True)])
    found = group_equal_rows(table)  # restricted ones may be equal, too
    return replace(found, class_of=found.class_of[place[of_word]])


def static_weights(words: WordList, counts: np.ndarray, background: str, unigram: UnigramOptions) -> np.ndarray:
    """log b(x) of `unigram`, `uniform`, `language:CODE` or a TSV file, for every word: (V,), with a sum of one.

    Raises:
        OptionError: another background. DataError: as the reader of the file does.
    """
    allowed = words.predictable
    if background == "uniform":
        weights = allowed / allowed.sum()
    elif background == "unigram":
        weights = unigram_weights(counts, allowed, unigram.smoothing, unigram.added)
    elif background.startswith(f"{LANGUAGE}:"):
        counted = unigram_weights(counts, allowed, unigram.smoothing, unigram.added)
        weights = language_weights(words, counted, allowed, background.partition(":")[2])
    elif not os.path.exists(background):
        known = named_backgrounds()
        near = difflib.get_close_matches(background.partition(":")[0], [*STATIC, *known], n=1)
        fix = f"did you mean {near[0]}?" if near else "check the spelling"
        if ":" in background:
            fix += " If another package has this background, install it"
        raise OptionError(
            f"--background {background}: expected {', '.join(STATIC)}, {', '.join(n.example for n in known.values())} "
            f"or the path of a TSV file with `word<TAB>weight` rows, found no such file; {fix}"
        )
    else:
        index = {word: i for i, word in enumerate(words.symbols) if allowed[i]}
        weights = read_weights(Path(background), index, len(words))
        weights = weights / weights.sum()
    with np.errstate(divide="ignore"):
        return np.log(weights)
