"""Options of a translation's evidence. `OfferedStrings` (plugin/data/invented_evidence.py) uses them."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from fairseq.dataclass import FairseqDataclass

from fairseq_llrnn.defaults import MAX_SLOTS
from fairseq_llrnn.errors import OptionError, check_least, check_unused_options
from fairseq_llrnn.plugin.compat.safe_checkpoints import replaced
from fairseq_llrnn.plugin.models.extensions import non_default_options
from fairseq_llrnn.prior.prior import Prior


@dataclass
class EvidenceConfig(FairseqDataclass):
    """Options of evidence."""

    max_slots: int = field(
        default=MAX_SLOTS,
        metadata={"help": "maximum number of strings to copy from a source sentence, in training and search"},
    )
    evidence_freely: bool = field(
        default=False,
        metadata={
            "help": "do not count copied strings in searches and in `llrnn explain`. Without this option, a string "
            "that was copied as often as the source has it keeps 0.001 of its weight, and the end of the sentence 0.01 "
            "of its weight while an unknown word is not copied yet"
        },
    )
    evidence_dropout: float = field(
        default=0.2,
        metadata={
            "help": "probability with which training reads a copied source word as <unk>, to learn to copy unknown "
            "words"
        },
    )
    invented_evidence: float = field(
        default=0.1,
        metadata={
            "help": "fraction of the sentences in which training replaces words and their lexical translations by "
            "invented unknown words (with a prior that has both)"
        },
    )


def check_evidence_options(cfg: Any) -> None:
    """Raise OptionError for values out of range."""
    check_least("--max-slots", cfg.max_slots, 1)
    for name in ("evidence_dropout", "invented_evidence"):
        if not 0.0 <= getattr(cfg, name) < 1.0:
            raise OptionError(
                f"--{name.replace('_', '-')} {getattr(cfg, name)}: expected a share from 0 to below 1, e.g. 0.1"
            )


def check_evidence_is_used(cfg: Any, prior: Prior) -> None:
    """Raise OptionError for a training option about evidence if the prior has no evidence.

    A value of 0 is allowed.
    """
    if prior.offered_kinds:
        return
    check_unused_options(
        {name: value for name, value in non_default_options(cfg, EvidenceConfig).items() if value != 0},
        "it needs a prior with evidence (`llrnn prior --evidence`); remove it, or build such a prior",
    )


def counted_in_search(cfg: Any, prior: Prior) -> AbstractContextManager[None]:
    """Let searches inside the block count copied strings, for all models, unless cfg forbids it."""
    table = prior.offers()
    return nullcontext() if table is None else replaced(table, "once", lambda before: not cfg.evidence_freely)
