"""Features of slots: of strings that no dictionary has, and the names that a prior needs for them."""

from __future__ import annotations

from collections.abc import Container

from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.features.feature_table import NOT_TOP
from fairseq_llrnn.features.spelling import shape_features, suffixes
from fairseq_llrnn.features.user_patterns import UserPatterns


def unknown_word_features(
    word: str, names: Container[str], shapes: bool = False, patterns: UserPatterns | None = None
) -> dict[str, float]:
    """Features of a string outside a dictionary: `NOTTOP`, and those of its spelling.

    Args:
        names: of the features of φ; a suffix that too few words of the dictionary share is none of them.
        shapes: whether φ has surface shapes.
        patterns: the user's expressions.

    Raises:
        OptionError: one of the user's patterns takes far too long.
    """
    features = {NOT_TOP: 1.0, **{f"Suffix:{suffix}": 1.0 for suffix in suffixes(word)}}
    if shapes:
        features |= shape_features(word)
    if patterns is not None:
        features |= patterns.features(word)
    return {name: value for name, value in features.items() if name in names and value != 0.0}


def slot_features(rules: EvidenceRules) -> tuple[str, ...]:
    """The features that slots may have and no word of a dictionary needs to."""
    patterns = rules.patterns if "patterns" in rules.kinds else {}
    return (NOT_TOP, *(f"Pattern:{name}" for name in patterns), *rules.feature_names)
