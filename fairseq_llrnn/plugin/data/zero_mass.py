"""Targets that the background forbids: found before training begins, where their loss would be infinite, in a search.

Sizes: n sentences, B batch, T time. A grammar may give a training sentence probability zero, and its loss would be
infinite: the prior says whether that is an error or the sentence is left out (`on_zero`). And both
grammars and cross-fitted n-grams need whole sentences. A search may be given words to begin with that the background
forbids.
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
    """Raise OptionError where a language model's training text has parts of sentences, and that matters.

    Args:
        shorten: --shorten-method, where it is applied to this text.
    """
    cuts = break_mode in (None, "none")
    forbids = any(part.forbids for part in prior.parts)
    if (cuts or shorten != "none") and (forbids or any(part.folds for part in prior.parts)):
        why = "a grammar" if forbids else "cross-fitted n-grams, which know a training sentence by its words"
        option = "--sample-break-mode none" if cuts else f"--shorten-method {shorten}"
        fix = "say --sample-break-mode eos (or complete)" if cuts else "leave it out"
        raise OptionError(f"{option}: it cuts sentences, but the prior's background is {why}; {fix}")


def check_training_sentences(prior: Prior, targets: Iterable[Tensor], dictionary: Dictionary, split: str) -> None:
    """Look for sentences without probability; targets of samples, of one sentence or several.

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
    """Sentences, without their </s>, that the part must allow."""
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
    """What to do about a target that the background forbids; fix_grammar: where that is a grammar."""
    fix = FIX_ZERO_MASS
    if unsupported := prior.settings.get("unsupported"):  # kinds of words that need evidence
        fix = (
            f"it may be of a kind that needs evidence (evidence.unsupported {' '.join(unsupported)}) and find none "
            "in its source: build the prior with small weights there instead of 0"
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
    """Raise DataError for the first word, (B, t), that a search must begin with and that has log_share (B, t) −inf.

    Args:
        ids: (B,) the sentences' numbers, from zero; None where they are not known.
    """
    forbidden = first_forbidden(log_share, beginning, dictionary.pad())
    if forbidden is not None:
        sentence = "a sentence" if ids is None else f"sentence {int(ids[forbidden.row]) + 1}"
        raise DataError(
            f"the background gives word {dictionary[forbidden.token]!r} no mass, but the beginning that {sentence} "
            f"must have has it at position {forbidden.position}, in {dictionary.string(forbidden.around)!r}; begin "
            f"with other words, or {how_to_fix(prior, 'fix the grammar')}"
        )
