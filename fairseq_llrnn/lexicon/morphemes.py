"""Features of words from their morphemes.

Morphemes are features, each with its place: `Prefix:un`, `Stem:happy`, `Ending:ness`. A *segmentation* is a word cut
into segments. Its stem is the longest segment; of several, the one in fewer words, then the first. Segments before it
are prefixes, segments after it endings. (The group `Suffix` is that of features/spelling_features.py: the last letters
of a word.) A word with several segmentations has the features of all, as a form with several analyses has. A repeated
morpheme in the same place counts once. So a network that reads a word's indicator and these features reads
x_k + Σ_{j ∈ M_k} m_j (Jernite 2018, eq. 2.7; Botha & Blunsom 2014).

Rare morphemes are left out: they would identify words, not a class, and each would split a word from its signature. One
pooled feature for each place would make more signatures than it saves, and a worse model
(docs/results/language-models.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from fairseq_llrnn.lexicon.guessing import NUMBER, SYMBOL, kind_of

PREFIX, STEM, ENDING = GROUPS = ("Prefix", "Stem", "Ending")
MORPHEME_FLOOR = 50
Segmentation = tuple[str, ...]
Segmentations = Mapping[str, Sequence[Segmentation]]  # by word; several if tools, or rows of a file, differ


def has_morphemes(word: str) -> bool:
    """Return whether a word has a letter: numbers and punctuation have no morphemes."""
    return kind_of(word) not in (NUMBER, SYMBOL)


def morpheme_names(segments: Sequence[str], types: Mapping[str, int]) -> list[str]:
    """Return the names of the features of a segmentation, lower-cased, in its order.

    Args:
        types: the number of words with each segment, in any place.
    """
    stem = min(range(len(segments)), key=lambda i: (-len(segments[i]), types[segments[i]], i))
    groups = (PREFIX if i < stem else STEM if i == stem else ENDING for i in range(len(segments)))
    return [f"{group}:{segment.lower()}" for group, segment in zip(groups, segments, strict=True)]


def morpheme_features(
    words: Iterable[str], segmentations: Segmentations, floor: int, shown: Collection[str] | None = None
) -> dict[str, dict[str, float]]:
    """Return the features of each word that has a letter. A word without a segmentation is a stem.

    Args:
        floor: least number of words that share a morpheme, for it to be a feature.
        shown: the words counted for `floor`, those of the training text (None: all).
    """
    segmented = {word: segmentations.get(word) or [(word,)] for word in dict.fromkeys(words) if has_morphemes(word)}
    types = Counter(segment for cuts in segmented.values() for segment in {s for segments in cuts for s in segments})
    names = {
        word: {name for segments in cuts for name in morpheme_names(segments, types)}
        for word, cuts in segmented.items()
    }
    counted = segmented if shown is None else segmented.keys() & set(shown)
    num_words = Counter(name for word in counted for name in names[word])
    return {word: {name: 1.0 for name in sorted(found) if num_words[name] >= floor} for word, found in names.items()}
