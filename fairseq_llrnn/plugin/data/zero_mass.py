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
from fairseq_llrnn.prior.parts.automaton_part import AutomatonPart
from fairseq_llrnn.prior.prior import Prior

logger = logging.getLogger(__name__)


def check_whole_sentences(prior: Prior, break_mode: str | None, shorten: str = "none") -> None:
    """Raise OptionError if a language model's training text is cut within sentences and the background needs whole
    ones.

    Args:
        shorten: --shorten-method, if it is applied to this text.
    """
    cuts = break_mode in (None, "none")
    forbidding = [_subject_of(name, part) for name, part in prior.by_name.items() if _forbids(prior, part)]
    if (cuts or shorten != "none") and (forbidding or is_cross_fitted(prior)):
        background = (forbidding or ["cross-fitted n-grams, which look up whole training sentences"])[0]
        option = "--sample-break-mode none" if cuts else f"--shorten-method {shorten}"
        fix = "use --sample-break-mode eos (or complete)" if cuts else "remove it"
        raise OptionError(f"{option}: it cuts sentences, but the prior's background is {background}; {fix}")


def check_training_sentences(prior: Prior, targets: Iterable[Tensor], dictionary: Dictionary, split: str) -> None:
    """Find sentences of probability zero. Each target has one sentence or several.

    Raises:
        DataError: there is one, and the prior has on_zero=error.
    """
    forbidding = _forbidding(prior)
    if not forbidding:
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
    for name, part in forbidding.items():
        _check_sentences(prior, name, part, lines, split)


def _check_sentences(prior: Prior, name: str, part: Part, lines: list[list[int]], split: str) -> None:
    """Check sentences, without their </s>, that the part must allow."""
    places = part.impossible(prior, lines)
    assert places is not None
    bad = np.flatnonzero(places >= 0)
    if len(bad) == 0:
        return
    if isinstance(part, AutomatonPart) and part.leaves_out:
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
        f"{_fix_of(name, part)}"
    )


def _subject_of(name: str, part: Part) -> str:
    """Return what a part that forbids words is, for messages."""
    return "a grammar" if _is_grammar(part) else f"the part {name}, which forbids words"


def _forbidding(prior: Prior) -> dict[str, Part]:
    """Return the parts that forbid words and are not in a mixture, by name."""
    required = set(map(id, prior.required))
    return {name: part for name, part in prior.by_name.items() if _forbids(prior, part) and id(part) in required}


def _forbids(prior: Prior, part: Part) -> bool:
    return part.impossible(prior, []) is not None


def is_cross_fitted(prior: Prior) -> bool:
    """Return whether training looks up whole sentences, to exclude each from its n-grams."""
    return any(isinstance(part, AutomatonPart) and part.folds for part in prior.parts)


def leaves_out(prior: Prior) -> bool:
    """Return whether training leaves out sentences of probability zero."""
    return any(isinstance(part, AutomatonPart) and part.leaves_out for part in prior.parts)


def _is_grammar(part: Part) -> bool:
    return isinstance(part, AutomatonPart) and part.made_from == "automaton"


def _fix_of(name: str, part: Part) -> str:
    if _is_grammar(part):
        return "fix the grammar or the text, or build the prior with automaton(FILE, on_zero=skip) or on_zero=floor"
    return f"fix the text, or build the prior without its part {name}"


def how_to_fix(prior: Prior, is_prefix: bool = False) -> str:
    """Return the fix for a target that the background forbids, or for a prefix of a search."""
    table = prior.offers()
    forbidden = [] if table is None else [kind for kind, factor in table.rules.unsupported.items() if factor == 0]
    fix = FIX_ZERO_MASS
    for name, part in [*_forbidding(prior).items()][:1]:
        fix = _fix_of(name, part)
        if is_prefix:
            fix = "fix the grammar" if _is_grammar(part) else f"build the prior without its part {name}"
    if forbidden:
        fix = (
            f"if it is a word that must be copied (evidence.unsupported.{forbidden[0]}=0) and is not in its source, "
            f"build the prior with a small weight instead of 0; else {fix}"
        )
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
            f"or {how_to_fix(prior, is_prefix=True)}"
        )
