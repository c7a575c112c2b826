"""Find targets that the background forbids, before training begins and in a search.

Sizes: n sentences, B batch, T time. A grammar may give a training sentence probability zero. Its loss would be
infinite. The prior's option `on_zero` makes this an error, or leaves the sentence out. Grammars and cross-fitted
n-grams also need whole sentences. A search may have a prefix that the background forbids.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import numpy as np
from fairseq.data import Dictionary
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import EOS
from fairseq_llrnn.head.checks import FIX_ZERO_MASS, first_forbidden
from fairseq_llrnn.prior.part import Part
from fairseq_llrnn.prior.prior import Prior

logger = logging.getLogger(__name__)


def check_whole_sentences(prior: Prior, break_mode: str | None, shorten: str = "none") -> None:
    """Raise OptionError if a language model's training text is cut within sentences and the background needs whole
    ones.

    Args:
        shorten: --shorten-method, if it is applied to this text.
    """
    cuts = break_mode in (None, "none")
    forbids = any(part.forbids for part in prior.parts)
    if (cuts or shorten != "none") and (forbids or any(part.folds for part in prior.parts)):
        background = "a grammar" if forbids else "cross-fitted n-grams, which look up whole training sentences"
        option = "--sample-break-mode none" if cuts else f"--shorten-method {shorten}"
        fix = "use --sample-break-mode eos (or complete)" if cuts else "remove it"
        raise OptionError(f"{option}: it cuts sentences, but the prior's background is {background}; {fix}")


def check_training_sentences(prior: Prior, targets: Iterable[Tensor], dictionary: Dictionary, split: str) -> None:
    """Find sentences of probability zero. Each target has one sentence or several.

    Raises:
        DataError: there is one, and the prior has on_zero=error.
    """
    grammars = [part for part in prior.required if part.forbids]
    if not grammars:
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
    for part in grammars:
        _check_sentences(prior, part, lines, split)


def _check_sentences(prior: Prior, part: Part, lines: list[list[int]], split: str) -> None:
    """Check sentences, without their </s>, that the part must allow."""
    places = part.impossible(prior, lines)
    bad = np.flatnonzero(places >= 0)
    if len(bad) == 0:
        return
    if part.leaves_out:
        logger.warning(
            f"{len(bad):,} of {len(lines):,} sentences of the {split} data have probability zero under the background, "
            "and are left out"
        )
        return
    first, place = int(bad[0]), int(places[bad[0]])
    words = [prior.symbols[token] for token in (*lines[first], prior.index(EOS))]
    raise DataError(
        f"sentence {first + 1} of the {split} data: the background gives {words[place]!r} probability zero in "
        f"{' '.join(words[max(0, place - 4) : place + 3])!r} (token {place + 1}; {len(bad):,} such sentences in all); "
        f"{FIX_GRAMMAR}"
    )


FIX_GRAMMAR = "fix the grammar or the text, or build the prior with automaton(FILE, on_zero=skip) or on_zero=floor"


def how_to_fix(prior: Prior, fix_grammar: str = FIX_GRAMMAR) -> str:
    """Return the fix for a target that the background forbids.

    fix_grammar: the fix if the background is a grammar.
    """
    fix = FIX_ZERO_MASS
    if unsupported := prior.settings.get("unsupported"):  # kinds of words that need evidence
        fix = (
            f"it may be of a kind that must be copied (evidence.unsupported {' '.join(unsupported)}) and is not in "
            "its source: build the prior with small weights for evidence.unsupported instead of 0"
        )
    elif any(part.forbids for part in prior.required):
        return fix_grammar
    table = prior.offers()
    if table is not None and table.groups.required:
        return f"if its source requires terms, it may lack one, or have one too often: fix the terms; else {fix}"
    return fix


def check_prefix(
    log_share: Tensor, beginning: Tensor, ids: Tensor | None, dictionary: Dictionary, prior: Prior
) -> None:
    """Raise DataError for the first word of a forced prefix (B, t) whose log_share (B, t) is −inf.

    Args:
        ids: (B,) numbers of the sentences, from zero, or None if unknown.
    """
    forbidden = first_forbidden(log_share, beginning, dictionary.pad())
    if forbidden is not None:
        sentence = "a sentence" if ids is None else f"sentence {int(ids[forbidden.row]) + 1}"
        raise DataError(
            f"the background gives word {dictionary[forbidden.token]!r} probability zero, but the prefix of {sentence} "
            f"has it at position {forbidden.position}, in {dictionary.string(forbidden.around)!r}; use another prefix, "
            f"or {how_to_fix(prior, 'fix the grammar')}"
        )
