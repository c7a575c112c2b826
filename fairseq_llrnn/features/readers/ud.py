"""Universal Dependencies' names as feature names: `Gender=Fem` becomes `Gender:Fem`."""

import re
from functools import lru_cache

from fairseq_llrnn.files.text_lines import shown

# One Key=Value[,Value…]. Keys and values are ASCII in treebanks; lexicons by others are less tidy, so only
# what would make the result ambiguous is refused.
ONE_FEATURE = re.compile(r"([^\s=|,:]+)=([^\s=|,]+(?:,[^\s=|,]+)*)")


def pos_feature(upos: str) -> str:
    """`NOUN` -> `POS:NOUN`."""
    return f"POS:{upos}"


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
