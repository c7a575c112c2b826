"""Words cut into segments, by a file, by Morfessor or from Python, as rows of a table with morphemes as values.

A file has words cut by any tool, one word a line:

    unhappiness<TAB>un happi ness       the word, and its segments with blanks between
    un happi ness                       only the segments, which spell the word
    3 un + happi + ness                 Morfessor's format: + between, the word's count before (or none)

A file may mix the first two. In a file with a row in Morfessor's format, `3 the` is a count and an uncut word. Comments
(`# …`) may precede the first row. Blank lines are skipped.

`segment_by_morfessor` uses Morfessor, an unsupervised model of morphology (Virpioja et al. 2013, Morfessor 2.0: Python
implementation and extensions for Morfessor Baseline). It is trained on lower-cased words of the counted text. Counts
are damped (by log₂, so that frequent words are not left whole only because of their counts). It cuts all words, known
or new, by its best segmentation (Viterbi). Its order of words is drawn with a fixed seed: the same words and counts
give the same segments.

A word that it was trained on may be left whole as a segment of its own, a new word never. A model trained only on such
words would learn that words cut like new ones do not occur. Words that occur once resemble new words (Good 1953). So a
word that occurs once in the text is cut by a Morfessor that was trained without it: each half of these words by a model
trained on the other half (cross-fitting).
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import ReadCount, check_not_blank, place, shown
from fairseq_llrnn.lexicon.casing import lower
from fairseq_llrnn.lexicon.language_check import words_in_both
from fairseq_llrnn.lexicon.lexicon_table import Row, as_features
from fairseq_llrnn.lexicon.morphemes import Segmentation, Segmentations, has_morphemes, morpheme_features
from fairseq_llrnn.lexicon.options import MORFESSOR, LexiconOptions
from fairseq_llrnn.lexicon.unknown_word_features import TextWords

PLUS = " + "
EXPECTED = "a word, a tab and its segments with blanks between, or the segments alone"
WORD, SEGMENTS = ("word", "words", "form"), ("segments", "segmentation", "morphemes", "morphs", "pieces", "parts")
REPEATED = "repeated"
COMMENT = "as comment"
COUNT = re.compile(r"\d+ (?=\S+(?: \+ \S+)*$)", re.ASCII)  # before a segmentation in Morfessor's format


def read_segmentations(
    path: Path | str, *, lowercase: bool, language: str | None = None, form: str | None = None
) -> dict[str, tuple[Segmentation, ...]]:
    """Return the different segmentations of each word, in the file's order.

    Args:
        lowercase: whether to lower-case words, by the rules of `language` (casing.py).
        form: Unicode form (files/text_lines.py).

    Raises:
        DataError: with file and line, segments that do not spell their word, a malformed row, or a file without rows.
    """
    segmentations: dict[str, dict[Segmentation, None]] = {}
    count = ReadCount(path, "rows", form, later=True)
    lines = list(count.lines())
    comments = next((i for i, (_, line) in enumerate(lines) if not line.startswith("# ")), len(lines))
    count.left_out[COMMENT] += comments
    is_morfessor = any(PLUS in line for _, line in lines)
    for number, cells in count.rows({1, 2}, EXPECTED, header=(WORD, SEGMENTS), lines=lines[comments:]):
        word, segments = _row(cells, is_morfessor, place(path, number))
        if lowercase:
            word = lower(word, language)
            segments = _cut(word, [lower(segment, language) for segment in segments])
        segmentations_of_word = segmentations.setdefault(word, {})
        if segments in segmentations_of_word:
            count.left_out[REPEATED] += 1
            continue
        segmentations_of_word[segments] = None
        count.read += 1
    count.done()
    if not segmentations:
        raise DataError(f"{path}: expected rows of words cut into segments, found none; is it the right file?")
    return {word: tuple(segmentations_of) for word, segmentations_of in segmentations.items()}


def _row(cells: Sequence[str], is_morfessor: bool, location: str) -> tuple[str, Segmentation]:
    text = cells[-1]
    if is_morfessor:
        text = text[match.end() :] if (match := COUNT.match(text)) else text
        text = text.replace(PLUS, " ")
    segments = tuple(text.split())
    word = cells[0] if len(cells) == 2 else "".join(segments)
    if not word or "".join(segments) != word:
        raise DataError(
            f"{location}: expected segments that spell the word {shown(word)}, found {shown(' '.join(segments))}; fix "
            "the row"
        )
    check_not_blank(word, location, "the word")
    return word, segments


def _cut(word: str, parts: Sequence[str]) -> Segmentation:
    """Cut the word at the ends of `parts`, which spell it in another case. If the lengths differ, return the parts.

    The form of a Greek sigma depends on the whole word.
    """
    ends = [0, *accumulate(map(len, parts))]
    return tuple(word[a:b] for a, b in pairwise(ends)) if ends[-1] == len(word) else tuple(parts)


SEED = 1
LONGEST = 100  # characters; Morfessor's time grows with their square, and longer strings are no words
OUTSIDE = "segmented words that the dictionary lacks: ignored"
NONE_LEFT = "this prior has no features of morphemes; lower words.morpheme_floor"
WHOLE = "dictionary words without a segmentation: the whole word is the stem"


def morpheme_rows(options: LexiconOptions, text: TextWords, is_text: bool, notes: Counter[str]) -> Iterator[Row]:
    """Yield the morphemes of words as values, if the options contain morphemes.

    Args:
        is_text: whether the words are those of a text. If not, they come from other readers, and the file's are added.
        notes: gets remarks with numbers of words.

    Raises:
        OptionError: Morfessor is not installed.
        DataError: the file is missing or malformed.
    """
    segmentations, floor, ordinary = options.morphemes, options.morpheme_floor, list(text.counts)
    if segmentations is None:
        return
    text_counts = {word: count for word, count in text.counts.items() if count}
    words = dict.fromkeys((*ordinary, *text.others))
    segmented: Segmentations
    if segmentations == MORFESSOR:
        segmented = segment_by_morfessor(text_counts or dict.fromkeys(ordinary, 1), words)
    elif isinstance(segmentations, Mapping):
        segmented = _check_segmentations(segmentations)
    else:
        path, spelling = str(segmentations), options.spelling
        segmented = read_segmentations(path, lowercase=spelling.lowercase, language=spelling.rules, form=spelling.form)
        if is_text and segmented.keys().isdisjoint(words):
            raise DataError(
                f"{path}: expected words of the dictionary, cut into segments, found none of them; is it a file of "
                "this language, one word a line, in the case and Unicode form of the text (keep_case, normalize)?"
            )
        if is_text:
            notes.update(words_in_both(path, segmented, text_counts or ordinary))
    if not is_text:
        words |= dict.fromkeys(segmented)
    elif segmentations != MORFESSOR:
        outside = len(segmented.keys() - words.keys())
        whole = sum(word not in segmented for word in ordinary if has_morphemes(word))
        notes.update(+Counter({OUTSIDE: outside, WHOLE: whole}))
    features = morpheme_features(words, segmented, floor, text_counts or None)
    if not any(features.values()):
        notes[f"segmented words have no morpheme that {floor:,} words of the text share: {NONE_LEFT}"] += len(
            segmented.keys() & words.keys()
        )
    is_file = segmentations != MORFESSOR  # or a mapping: its words are kept even if they share no morpheme
    for word in dict.fromkeys((*features, *segmented)) if is_file else features:
        names = features.get(word, {})
        if names or (is_file and word in segmented):
            yield Row(word, source="morphemes" if is_file else MORFESSOR, values=as_features(names))


def _check_segmentations(segmentations: Mapping[str, Sequence[str]]) -> Segmentations:
    for word, segments in segmentations.items():
        if isinstance(segments, str) or not word or "".join(segments) != word or not all(segments):
            raise DataError(
                f"morphemes: expected a list of segments that spell the word {word!r}, found {segments!r}; correct it"
            )
    return {word: [tuple(segments)] for word, segments in segmentations.items()}


def segment_by_morfessor(counts: Mapping[str, int], words: Iterable[str]) -> dict[str, tuple[Segmentation, ...]]:
    """Return the segmentation of each word that has a letter and is not too long, or {} without training words.

    Args:
        counts: the counts of the training text.
        words: the words to cut, in any case.
    """
    import morfessor

    trained: Counter[str] = Counter()
    for word, count in counts.items():
        if count > 0 and _can_cut(word):
            trained[word.lower()] += count
    if not trained:
        return {}
    rare = [word for word, count in trained.items() if count == 1]
    halves = [{word for word in rare if _half_of(word) == half} for half in range(2)]
    state, bar = random.getstate(), morfessor.utils.show_progress_bar
    morfessor.utils.show_progress_bar = False
    try:
        models = [_train({w: c for w, c in trained.items() if w not in half}) for half in (*halves, set())]
    finally:
        random.setstate(state)
        morfessor.utils.show_progress_bar = bar

    def segments(word: str) -> list[str]:
        model = next((i for i, half in enumerate(halves) if word in half), -1)
        segments_of_word: list[str] = models[model].viterbi_segment(word)[0]
        return segments_of_word

    return {word: (_cut(word, segments(word.lower())),) for word in words if _can_cut(word)}


def _train(counts: Mapping[str, int]) -> Any:
    """Return Morfessor's model of these words."""
    from morfessor import BaselineModel

    random.seed(SEED)
    model = BaselineModel()
    model.load_data(((counts[word], word) for word in sorted(counts)), count_modifier=_damp)
    if counts:
        model.train_batch()
    return model


def _half_of(word: str) -> int:
    """Return 0 or 1, depending only on the word."""
    return hashlib.sha256(word.encode()).digest()[0] % 2


def _can_cut(word: str) -> bool:
    return has_morphemes(word) and len(word) <= LONGEST


def _damp(count: int) -> int:
    return round(math.log2(count + 1))
