"""Which kind of word is it? The partition of the vocabulary by which the validation loss is split.

A type whose analyses agree in the group counts under that value (`NOUN`); one whose analyses differ counts
under `mixed`, one without the group under `other`. The end of a sentence is the kind `end`, `<unk>` (and what it
stands for) `unknown`. The kinds are disjoint, so their losses add up to the whole.
"""

from __future__ import annotations

import difflib

import numpy as np

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import EOS, UNK
from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.prior.prior import Prior

MIXED, OTHER, END, UNKNOWN = "mixed", "other", "end", "unknown"


def word_kinds(prior: Prior, group: str) -> tuple[list[str], np.ndarray]:
    """Names of the kinds, and the kind of every word (V,) int64.

    A prior without the default group POS, or `group` = "none", has the one kind `other` beside `end` and `unknown`. A
    value that is called like one of these kinds is told from it by its group: `Number:other`; so is one that is called
    like a part: the strings that a part brings are a kind of their own, which logs and explanations call by its name.

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
    others = {MIXED, OTHER, END, UNKNOWN, *prior.names}
    kind_of_class: list[str] = []
    for signature in range(prior.output.num_classes):
        names = [name for name in features.row(signature) if feature_group(name) == group]
        if len(names) == 1:
            value = names[0].partition(":")[2]
            kind_of_class.append(names[0] if value in others else value)
        else:
            kind_of_class.append(MIXED if names else OTHER)
    kinds = sorted({*kind_of_class, END, UNKNOWN})
    index = {name: i for i, name in enumerate(kinds)}
    kind_of = np.array([index[k] for k in kind_of_class], dtype=np.int64)[prior.output.class_of]
    for symbol, kind in ((EOS, END), (UNK, UNKNOWN)):
        kind_of[prior.symbols.index(symbol)] = index[kind]
    return kinds, kind_of
