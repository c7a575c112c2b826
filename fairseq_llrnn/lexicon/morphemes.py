"""Features of a word from its morphemes, each with its place: `Prefix:un`, `Stem:happy`, `Ending:ness`.

A *segmentation* is a word cut into segments. Its stem is the longest one; of several, the one that fewer words have,
then the first. What stands before it are prefixes, what stands behind it endings. (The group `Suffix` is that of
spelling.py: letters at the end of a word, whoever cut it.) A word with several segmentations has the features of all,
as a form with several analyses has; a morpheme that stands twice in the same place counts once. So, if the network
reads a word by its identity and by these features, it reads x_k + Σ_{j ∈ M_k} m_j (Jernite 2018, eq. 2.7; Botha &
Blunsom 2014).

Morphemes that few words have are left out: they would name words, not a class, and with each of them a word would
leave its signature. Pooled, as one feature for each place, they would make more signatures than they save, and a worse
model (docs/results/morphemes.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from fairseq_llrnn.lexicon.guessing import NUMBER, SYMBOL, kind_of

PREFIX, STEM, ENDING = GROUPS = ("Prefix", "Stem", "Ending")
MORPHEME_FLOOR = 50
Segmentation = tuple[str, ...]
Segmentations = Mapping[str, Sequence[Segmentation]]  # by word; several where tools, or rows of a file, differ


def has_morphemes(word: str) -> bool:
    """Whether there is a letter in it: numbers and punctuation have none."""
    return kind_of(word) not in (NUMBER, SYMBOL)


def place_of_stem(segments: Sequence[str], types: Mapping[str, int]) -> int:
    """Which of the segments is the stem.

    Args:
        types: how many words have each segment, wherever it stands.
    """
    return min(range(len(segments)), key=lambda i: (-len(segments[i]), types[segments[i]], i))


def morpheme_names(segments: Sequence[str], types: Mapping[str, int]) -> list[str]:
    """The names of the features of a segmentation, lower-cased, in its order."""
    stem = place_of_stem(segments, types)
    groups = (PREFIX if i < stem else STEM if i == stem else ENDING for i in range(len(segments)))
    return [f"{group}:{segment.lower()}" for group, segment in zip(groups, segments, strict=True)]


def morpheme_features(
    words: Iterable[str], segmentations: Segmentations, floor: int, shown: Collection[str] | None = None
) -> dict[str, dict[str, float]]:
    """The features of each of the words that has a letter; the whole word is the stem of those without a segmentation.

    Args:
        floor: how many words must have a morpheme, for it to be a feature. shown: the words that are counted for that,
            those of the training text; None: all.
    """
    cut = {word: segmentations.get(word) or [(word,)] for word in dict.fromkeys(words) if has_morphemes(word)}
    types = Counter(segment for several in cut.values() for segment in {s for one in several for s in one})
    names = {word: {name for one in several for name in morpheme_names(one, types)} for word, several in cut.items()}
    counted = cut if shown is None else cut.keys() & set(shown)
    having = Counter(name for word in counted for name in names[word])
    return {word: {name: 1.0 for name in sorted(its) if having[name] >= floor} for word, its in names.items()}
