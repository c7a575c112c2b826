"""The morphemes of a prior's words: segmentations from a file, from Morfessor or from Python, and features of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.lexicon.language_check import words_in_both
from fairseq_llrnn.lexicon.morfessor_segments import segment_by_morfessor
from fairseq_llrnn.lexicon.morphemes import Segmentations, has_morphemes, morpheme_features
from fairseq_llrnn.lexicon.options import MORFESSOR, LexiconOptions
from fairseq_llrnn.lexicon.readers import read_segmentations
from fairseq_llrnn.prior.recipe import Recipe

OUTSIDE = "segmented words that the dictionary lacks: ignored"
NONE_LEFT = "morphemes are no features of this prior; lower --morpheme-floor"
WHOLE = "dictionary words without a segmentation: the whole word is the stem"


@dataclass(frozen=True)
class WordMorphemes:
    """Features by word, and remarks of how many words each is true."""

    features: Mapping[str, Mapping[str, float]] | None = None  # None: none are asked for
    notes: Counter[str] = field(default_factory=Counter)
    cut: Collection[str] = ()  # words that are listed with their segments


def check_options(options: Recipe) -> None:
    """Raise OptionError for options that do not go together."""
    if options.words.morphemes is not None and options.pieces is not None:
        raise OptionError(
            f"--morphemes: morphemes are of whole words, found --pieces {options.pieces} beside it; preprocess words, "
            "or leave one of them out"
        )


def segmenter(options: LexiconOptions) -> str | None:
    """Who cut the words, for the prior's JSON."""
    given = options.morphemes
    return Path(given).name if isinstance(given, (str, Path)) else None if given is None else "given"


def morphemes_of(
    options: LexiconOptions, words: WordList, counts: np.ndarray, others: Iterable[str] = ()
) -> WordMorphemes:
    """The morphemes of a dictionary's words; none where none are asked for.

    Args:
        counts: (V,) of the words in the text that training shows. others: words outside the dictionary that need
            features, for an open vocabulary.

    Raises:
        OptionError: Morfessor is not installed. DataError: a file that is not what it should be.
    """
    given, floor = options.morphemes, options.morpheme_floor
    if given is None:
        return WordMorphemes()
    ordinary = words.ordinary
    often = {
        w: int(c) for w, c, special in zip(words.symbols, counts, words.specials, strict=True) if not special and c
    }
    asked = dict.fromkeys((*ordinary, *others))
    notes: Counter[str] = Counter()
    segmentations: Segmentations
    if given == MORFESSOR:
        segmentations = segment_by_morfessor(often or dict.fromkeys(ordinary, 1), asked)
    elif isinstance(given, Mapping):
        segmentations = _checked(given)
    else:
        path = Path(str(given))
        if not os.path.exists(path) and get_close_matches(path.name, [MORFESSOR]):
            raise OptionError(
                f"--morphemes {given}: expected {MORFESSOR} or a file, found neither; did you mean {MORFESSOR}?"
            )
        spelling = options.spelling
        segmentations = read_segmentations(
            path, lowercase=spelling.lowercase, language=spelling.rules, form=spelling.form
        )
        if not segmentations.keys() & set(ordinary):
            raise DataError(
                f"{path}: expected words of the dictionary, cut into segments, found none of them; is it a file of "
                "this language, one word a line, in the case and Unicode form of the text (--keep-case, --normalize)?"
            )
        notes.update(words_in_both(f"--morphemes {given}", segmentations, often or ordinary))
    if given != MORFESSOR:
        notes[OUTSIDE] += len(segmentations.keys() - asked.keys())
        notes[WHOLE] += sum(word not in segmentations for word in ordinary if has_morphemes(word))
    features = morpheme_features(asked, segmentations, floor, often or None)
    if not any(features.values()):
        notes[f"cut words share no morpheme that {floor:,} words of the text have: {NONE_LEFT}"] += len(
            segmentations.keys() & asked.keys()
        )
    return WordMorphemes(features, +notes, segmentations.keys() if given != MORFESSOR else ())


def _checked(given: Mapping[str, Sequence[str]]) -> Segmentations:
    for word, segments in given.items():
        if isinstance(segments, str) or not word or "".join(segments) != word or not all(segments):
            raise DataError(
                f"morphemes: expected a list of segments that spell the word {word!r}, found {segments!r}; correct it"
            )
    return {word: [tuple(segments)] for word, segments in given.items()}
