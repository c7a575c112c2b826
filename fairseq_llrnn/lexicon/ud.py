"""Universal Dependencies' names as feature names: `Gender=Fem` becomes `Gender:Fem`."""

import re
from functools import lru_cache

from fairseq_llrnn.files.text_lines import shown
from fairseq_llrnn.lexicon.features import feature_group

# One Key=Value[,Value…]. Keys and values are ASCII in treebanks; lexicons by others are less tidy, so only
# what would make the result ambiguous is refused.
ONE_FEATURE = re.compile(r"([^\s=|,:]+)=([^\s=|,]+(?:,[^\s=|,]+)*)")
UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
)  # fmt: skip
FINITE_GROUPS = ("Mood", "Tense", "Person")


def pos_feature(upos: str) -> str:
    """`NOUN` -> `POS:NOUN`."""
    return f"POS:{upos}"


def as_upos(tag: str) -> str:
    """`NOUN` for `noun` and `Noun`; a tag of another set stays as it is."""
    return tag.upper() if tag.upper() in UPOS else tag


# Treebanks repeat a few hundred FEATS strings many thousand times.
@lru_cache(maxsize=16384)
def feats_features(feats: str) -> tuple[str, ...]:
    """`Gender=Fem,Masc|Number=Sing` -> (`Gender:Fem`, `Gender:Masc`, `Number:Sing`); `_` -> ().

    Raises ValueError, saying what is wrong; the caller knows the place.
    """
    if feats == "_":
        return ()
    names = []
    for part in feats.split("|"):
        match = ONE_FEATURE.fullmatch(part)
        if match is None:
            in_part = "" if part == feats else f" with the part {shown(part)}"
            raise ValueError(
                "expected FEATS that are _ or Key=Value pairs joined by |, such as Gender=Fem|Number=Sing; "
                f"found {shown(feats)}{in_part}"
            )
        key, values = match.groups()
        names += [f"{key}:{value}" for value in values.split(",")]
    return tuple(names)


def with_finite(names: tuple[str, ...]) -> tuple[str, ...]:
    """With `VerbForm:Fin`, for a verb that has a mood, a tense or a person and says nothing of its form.

    Treebanks say so of every finite verb, most other schemas do not.
    """
    groups = {feature_group(name) for name in names}
    is_verb = pos_feature("VERB") in names or pos_feature("AUX") in names
    is_finite = is_verb and "VerbForm" not in groups and not groups.isdisjoint(FINITE_GROUPS)
    return (*names, "VerbForm:Fin") if is_finite else names
