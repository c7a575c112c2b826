"""Features of slots: of strings that no dictionary has, and the names that a prior needs for them."""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import replace

from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.features.feature_table import NOT_TOP, Signatures
from fairseq_llrnn.features.spelling import shape_features, suffixes
from fairseq_llrnn.features.user_patterns import UserPatterns


def unknown_word_features(
    word: str, known: Container[str], shapes: bool = False, patterns: UserPatterns | None = None
) -> dict[str, float]:
    """What is known of a string outside a dictionary: `NOTTOP`, and what the spelling shows.

    Args:
        known: the features of φ; a suffix that too few words of the dictionary share is none of them.
        shapes: whether φ has surface shapes. patterns: the user's expressions.

    Raises:
        OptionError: one of the user's patterns takes far too long.
    """
    features = {NOT_TOP: 1.0, **{f"Suffix:{suffix}": 1.0 for suffix in suffixes(word)}}
    if shapes:
        features |= shape_features(word)
    if patterns is not None:
        features |= patterns.features(word)
    return {name: value for name, value in features.items() if name in known and value != 0.0}


def with_slot_features(signatures: Signatures, rules: EvidenceRules) -> Signatures:
    """The same classes over more features: those of slots come last, where no word has them."""
    names = signatures.features.names
    more = tuple(name for name in _needed(rules) if name not in signatures.features.index)
    return replace(signatures, features=replace(signatures.features, names=(*names, *more)))


def check_slot_features(rules: EvidenceRules, names: Collection[str]) -> None:
    """Raise ValueError where the features `names` lack one that slots have."""
    missing = set(_needed(rules)) - set(names)
    if missing:
        raise ValueError(f"the evidence has no feature {', '.join(sorted(missing))}")


def _needed(rules: EvidenceRules) -> tuple[str, ...]:
    """The features that slots may have and no word of a dictionary needs to."""
    patterns = rules.patterns if "patterns" in rules.kinds else {}
    return (NOT_TOP, *(f"Pattern:{name}" for name in patterns), *rules.feature_names)
