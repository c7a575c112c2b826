"""The lexicon: the features that a word (type) can have, independent of its sentence.

A word's features are the union over all its analyses (Dymetman & Xiao 2016, §5.2). For example, *couvent* is both a
noun and a verb, so it has `POS:NOUN` and `POS:VERB`. A feature is a name `Group:Value` with a real value. A plain name
means 1.0. The readers of files are in `fairseq_llrnn.lexicon.readers`.

Names of Universal Dependencies become feature names: `Gender=Fem` is `Gender:Fem`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_VALUE
from fairseq_llrnn.files.text_lines import shown

# indicator features (features/feature_table.py) and those of source strings (evidence/), which no lexicon may set
RESERVED_GROUPS = frozenset({"TOPFORM", "NOTTOP", "SPECIAL", "Evidence"})
NOTHING: Mapping[str, float] = MappingProxyType({})


def feature_group(name: str) -> str:
    """Return the text before the first colon: `Gender` of `Gender:Fem`."""
    return name.partition(":")[0]


@lru_cache(maxsize=65536)
def what_is_wrong(name: str) -> str | None:
    """Return why a text is no feature name, or None if it is one."""
    group, colon, value = name.partition(":")
    if not (group and colon and value):
        return f"{name!r} is no feature name; expected a group, a colon and a value, such as Gender:Fem"
    if group.startswith('"'):
        return f"{name!r} begins with a quotation mark; save the table without quotes around cells"
    if group in RESERVED_GROUPS:
        return f"feature {name!r} has a group that is reserved for indicators and evidence; rename it"
    return None


class Lexicon:
    """word -> {feature name: real value}, in order of insertion.

    `notes` counts remarks of the readers ("repeated rows", …). The command prints them once.
    """

    def __init__(self, *others: Entries) -> None:
        """Copy the entries of other lexicons."""
        self._features: dict[str, dict[str, float]] = {}
        self.notes: Counter[str] = Counter()
        for other in others:
            self.update(other)

    def add(self, word: str, features: Mapping[str, float] | Iterable[str]) -> None:
        """Merge `features` into those of `word`. If both have a value, the larger one is kept.

        The result does not depend on the order of the calls. A word without any feature is still a member.

        Raises:
            DataError: an empty word, a name that is not `Group:Value`, or a value that is not finite.
        """
        if isinstance(features, str):
            raise TypeError(f"features is the string {features!r}; give a collection of names or a mapping")
        values = features if isinstance(features, Mapping) else dict.fromkeys(features, 1.0)
        if not word:
            raise DataError(f"a lexicon entry with the features {sorted(values)} has an empty word; remove it")
        for name, value in values.items():
            if reason := what_is_wrong(name):
                raise DataError(f"word {word!r}: {reason}")
            if not abs(value) <= LARGEST_VALUE:  # NaN is not
                raise DataError(
                    f"word {word!r}: feature {name!r} has the value {value}; expected a finite number of at most "
                    f"{LARGEST_VALUE:,.0f}, correct the entry (a logarithm may do) or leave the feature out"
                )
        features_of_word = self._features.setdefault(word, {})
        for name, value in values.items():
            features_of_word[name] = max(float(value), features_of_word.get(name, float(value)))

    def features(self, word: str) -> Mapping[str, float]:
        """Return the features of `word`, read-only. They are empty for an unknown word."""
        features = self._features.get(word)
        return NOTHING if features is None else MappingProxyType(features)

    def update(self, other: Entries) -> None:
        """Add every entry of `other`, and its notes if it has some."""
        if isinstance(other, Lexicon):
            self.notes.update(other.notes)
            other = other._features
        for word, features in other.items():
            self.add(word, features)

    def __contains__(self, word: object) -> bool:
        return word in self._features

    def __len__(self) -> int:
        return len(self._features)

    def __iter__(self) -> Iterator[str]:
        return iter(self._features)


Entries = Lexicon | Mapping[str, Mapping[str, float]] | Mapping[str, Iterable[str]]

# One Key=Value[,Value…]. Keys and values are ASCII in treebanks. Other lexicons are less regular, so only ambiguous
# characters are errors, and a quotation mark before the key, which is one around the cell.
ONE_FEATURE = re.compile(r"([^\s=|,:\"][^\s=|,:]*)=([^\s=|,]+(?:,[^\s=|,]+)*)")
UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
)  # fmt: skip
FINITE_GROUPS = ("Mood", "Tense", "Person")


def pos_feature(upos: str) -> str:
    """Return the feature name of a part of speech: `NOUN` -> `POS:NOUN`."""
    return f"POS:{upos}"


def as_upos(tag: str) -> str:
    """Return `NOUN` for `noun` and `Noun`, and tags of other sets unchanged."""
    return tag.upper() if tag.upper() in UPOS else tag


def by_tag(table: str) -> dict[str, tuple[str, ...]]:
    """Return the feature names of each tag of another tag set: `Case nomn=Nom` -> {`nomn`: (`Case:Nom`,)}.

    Args:
        table: lines of a group and its tags with their values. `mf=Fem,Masc` has two values. A tag of several groups is
            in the lines of each.
    """
    features: dict[str, tuple[str, ...]] = {}
    for group, *pairs in map(str.split, table.strip().splitlines()):
        for tag, values in (pair.split("=") for pair in pairs):
            features[tag] = (*features.get(tag, ()), *(f"{group}:{value}" for value in values.split(",")))
    return features


# Treebanks repeat a few hundred FEATS strings many thousand times.
@lru_cache(maxsize=16384)
def feats_features(feats: str) -> tuple[str, ...]:
    """Return feature names: `Gender=Fem,Masc|Number=Sing` -> (`Gender:Fem`, `Gender:Masc`, `Number:Sing`); `_` -> ().

    Raises:
        ValueError: other text. The caller adds the place.
    """
    if feats == "_":
        return ()
    names = []
    for part in feats.split("|"):
        match = ONE_FEATURE.fullmatch(part)
        if match is None:
            detail = "" if part == feats else f" with the part {shown(part)}"
            raise ValueError(
                "expected FEATS that are _ or Key=Value pairs joined by |, such as Gender=Fem|Number=Sing; "
                f"found {shown(feats)}{detail}"
            )
        key, values = match.groups()
        names += [f"{key}:{value}" for value in values.split(",")]
    return tuple(names)


def with_finite(names: tuple[str, ...]) -> tuple[str, ...]:
    """Add `VerbForm:Fin` to a verb with a mood, a tense or a person and without VerbForm.

    Treebanks mark every finite verb, most other schemas do not.
    """
    groups = {feature_group(name) for name in names}
    is_verb = pos_feature("VERB") in names or pos_feature("AUX") in names
    is_finite = is_verb and "VerbForm" not in groups and not groups.isdisjoint(FINITE_GROUPS)
    return (*names, "VerbForm:Fin") if is_finite else names
