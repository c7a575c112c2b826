"""Which kind of word is it? The partition of the vocabulary by which the validation loss is split.

A type whose analyses agree in the group counts under that value (`NOUN`); one whose analyses differ counts
under `mixed`, one without the group under `other`. The kinds are disjoint, so their losses add up to the whole.
"""

from __future__ import annotations

import difflib

import numpy as np

from fairseq_llrnn.core.features import SPECIAL
from fairseq_llrnn.core.lexicon import feature_group
from fairseq_llrnn.core.prior import Prior
from fairseq_llrnn.errors import OptionError

MIXED, OTHER, END = "mixed", "other", "end"


def word_kinds(prior: Prior, group: str) -> tuple[list[str], np.ndarray]:
    """Names of the kinds, and the kind of every word (V,) int64.

    A prior without the default group POS, or `group` = "none", has the one kind `other` beside `end` (special symbols).

    Raises:
        OptionError: the prior has no feature of that group.
    """
    features = prior.output.features
    groups = sorted({feature_group(name) for name in features.names})
    if group not in groups and group not in ("none", "POS"):
        near = difflib.get_close_matches(group, groups, n=1)
        raise OptionError(
            f"--report-group {group}: expected a feature group of the prior ({', '.join(groups)}) or `none`"
            + (f"; did you mean {near[0]}?" if near else "")
        )
    kind_of_class: list[str] = []
    for signature in range(prior.output.num_classes):
        names = list(features.row(signature))
        values = [n.partition(":")[2] for n in names if feature_group(n) == group]
        if any(feature_group(n) == SPECIAL for n in names):
            kind_of_class.append(END)
        elif len(values) == 1:
            kind_of_class.append(values[0])
        else:
            kind_of_class.append(MIXED if values else OTHER)
    kinds = sorted(set(kind_of_class))
    index = {name: i for i, name in enumerate(kinds)}
    return kinds, np.array([index[k] for k in kind_of_class], dtype=np.int64)[prior.output.class_of]
