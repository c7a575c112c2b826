"""Words cut into segments, by a file, by Morfessor or from Python, as rows of a table: their morphemes are values."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.lexicon.completion import TextWords
from fairseq_llrnn.lexicon.language_check import words_in_both
from fairseq_llrnn.lexicon.languages.base import Spelling
from fairseq_llrnn.lexicon.morfessor_segments import segment_by_morfessor
from fairseq_llrnn.lexicon.morphemes import Segmentations, has_morphemes, morpheme_features
from fairseq_llrnn.lexicon.options import MORFESSOR, LexiconOptions
from fairseq_llrnn.lexicon.readers.segmentations import read_segmentations
from fairseq_llrnn.lexicon.table import Row, as_features

OUTSIDE = "segmented words that the dictionary lacks: ignored"
NONE_LEFT = "morphemes are no features of this prior; lower --morpheme-floor"
WHOLE = "dictionary words without a segmentation: the whole word is the stem"


def morpheme_rows(options: LexiconOptions, text: TextWords, is_text: bool, notes: Counter[str]) -> Iterator[Row]:
    """The morphemes of words as values; none where none are asked for.

    Args:
        is_text: whether the words are those of a text; else they are other readers', and those of the file are added.
        notes: takes in remarks of how many words each is true.

    Raises:
        OptionError: Morfessor is not installed. DataError: a file that is not what it should be.
    """
    given, floor, ordinary = options.morphemes, options.morpheme_floor, list(text.counts)
    if given is None:
        return
    often = {word: count for word, count in text.counts.items() if count}
    asked = dict.fromkeys((*ordinary, *text.others))
    cut: Segmentations
    if given == MORFESSOR:
        cut = segment_by_morfessor(often or dict.fromkeys(ordinary, 1), asked)
    elif isinstance(given, Mapping):
        cut = _checked(given)
    else:
        cut = _read(str(given), options.spelling, asked if is_text else None)
        if is_text:
            notes.update(words_in_both(f"--morphemes {given}", cut, often or ordinary))
    if not is_text:
        asked |= dict.fromkeys(cut)
    elif given != MORFESSOR:
        outside = len(cut.keys() - asked.keys())
        whole = sum(word not in cut for word in ordinary if has_morphemes(word))
        notes.update(+Counter({OUTSIDE: outside, WHOLE: whole}))
    features = morpheme_features(asked, cut, floor, often or None)
    if not any(features.values()):
        notes[f"cut words share no morpheme that {floor:,} words of the text have: {NONE_LEFT}"] += len(
            cut.keys() & asked.keys()
        )
    is_file = given != MORFESSOR  # or the like: all of its words are kept, those that share no morpheme as well
    for word in dict.fromkeys((*features, *cut)) if is_file else features:
        own = features.get(word, {})
        if own or (is_file and word in cut):
            yield Row(word, source="morphemes" if is_file else MORFESSOR, values=as_features(own))


def _read(given: str, spelling: Spelling, asked: Collection[str] | None) -> Segmentations:
    path = Path(given)
    if not os.path.exists(path) and get_close_matches(path.name, [MORFESSOR]):
        raise OptionError(
            f"--morphemes {given}: expected {MORFESSOR} or a file, found neither; did you mean {MORFESSOR}?"
        )
    cut = read_segmentations(path, lowercase=spelling.lowercase, language=spelling.rules, form=spelling.form)
    if asked is not None and not cut.keys() & set(asked):
        raise DataError(
            f"{path}: expected words of the dictionary, cut into segments, found none of them; is it a file of "
            "this language, one word a line, in the case and Unicode form of the text (--keep-case, --normalize)?"
        )
    return cut


def _checked(given: Mapping[str, Sequence[str]]) -> Segmentations:
    for word, segments in given.items():
        if isinstance(segments, str) or not word or "".join(segments) != word or not all(segments):
            raise DataError(
                f"morphemes: expected a list of segments that spell the word {word!r}, found {segments!r}; correct it"
            )
    return {word: [tuple(segments)] for word, segments in given.items()}
