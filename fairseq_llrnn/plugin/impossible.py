"""What is looked at before training begins with a background that knows the words before.

Sizes: n sentences. A grammar may give a training sentence probability zero, and its loss would be infinite: the prior
says whether that is an error or the sentence is left out (`llrnn prior --on-zero`). And both grammars and held-out
folds need whole sentences.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import numpy as np
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_llrnn.core.automaton.automaton import NOTHING
from fairseq_llrnn.core.ngram.sentences import Sentences
from fairseq_llrnn.core.prior import Prior
from fairseq_llrnn.core.zero_sentences import POSSIBLE, first_impossible
from fairseq_llrnn.errors import DataError, OptionError

logger = logging.getLogger(__name__)


def refuse_cut_sentences(prior: Prior, break_mode: str | None) -> None:
    """Raise OptionError where blocks of a language model's text begin inside sentences, and that matters."""
    if prior.automaton is None or break_mode not in (None, "none"):
        return
    forbids = bool((prior.automaton.automaton.fail == NOTHING).any())
    if forbids or prior.automaton.folds:
        why = "a grammar" if forbids else "n-grams with held-out folds, which know a training sentence by its words"
        raise OptionError(
            f"--sample-break-mode none: it cuts sentences, but the prior's background is {why}; say "
            "--sample-break-mode eos (or complete)"
        )


def check_training_sentences(prior: Prior, targets: Iterable[Tensor], dictionary: Dictionary, split: str) -> None:
    """Look for sentences without probability; targets of samples, of one sentence or several.

    Raises:
        DataError: there is one, and the prior has --on-zero error.
    """
    if prior.automaton is None or not (prior.automaton.automaton.fail == NOTHING).any():
        return
    lines: list[list[int]] = []
    for target in targets:
        line: list[int] = []
        for token in target.tolist():
            if token == dictionary.eos():
                lines.append(line)
                line = []
            else:
                line.append(token if token < len(prior.symbols) else dictionary.unk())
    places = first_impossible(prior.automaton.automaton, prior.log_weights, Sentences.of(lines))
    bad = np.flatnonzero(places != POSSIBLE)
    if len(bad) == 0:
        return
    if prior.automaton.on_zero == "skip":
        logger.warning(
            f"{len(bad):,} of {len(lines):,} sentences of the {split} data have probability zero under the background, "
            "and are left out"
        )
        return
    first, place = int(bad[0]), int(places[bad[0]])
    words = [prior.symbols[token] for token in (*lines[first], dictionary.eos())]
    raise DataError(
        f"sentence {first + 1} of the {split} data: the background gives {words[place]!r} probability zero in "
        f"{' '.join(words[max(0, place - 4) : place + 3])!r} (token {place + 1}; {len(bad):,} such sentences in all); "
        "mend the grammar or the text, or build the prior with --on-zero skip or --on-zero floor"
    )
