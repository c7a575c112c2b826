"""Priors of labels: the dictionary's words are labels of texts, of which a classifier predicts one.

A label comes alone: nothing is before it, and no end follows. So neither </s> nor <unk> has any mass, and a background
that looks at what came before has nothing to look at.
"""

from __future__ import annotations

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.prior.expression import atoms
from fairseq_llrnn.prior.leaves import STATIC, TRANSLATIONS, kind_of, read_background
from fairseq_llrnn.prior.recipe import Recipe

LABELS = "labels"  # in a prior's settings: that it is one


def check_of_labels(options: Recipe) -> None:
    """Raise OptionError for what only words of a text can have."""
    for name, given in (
        ("--open-vocabulary", options.open_vocabulary),
        ("--evidence", options.evidence),
        ("--pieces", options.pieces),
    ):
        if given is not None:
            raise OptionError(f"--labels: found {name} beside it, which is of words in a text; leave one of them out")
    kinds = {kind_of(atom.text)[0] for atom in atoms(read_background(options.background))}
    if not kinds <= {STATIC, TRANSLATIONS}:
        raise OptionError(
            f"--background {options.background}: expected one that does not look at the words before, since a label "
            "comes alone (--labels): unigram, uniform or a TSV; to look at the words of the text, add "
            "--lexical-translation"
        )
