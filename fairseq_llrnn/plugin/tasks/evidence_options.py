"""The options of a translation's evidence; who does what they say is imported where there is some.

`OfferedStrings` (plugin/data/invented_evidence.py) does it.
"""

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
    """Options."""

    max_slots: int = field(
        default=MAX_SLOTS,
        metadata={"help": "most strings that a source sentence may offer as evidence, in training and search alike"},
    )
    evidence_once: bool = field(
        default=False,
        metadata={
            "help": "in training, and where references are scored: know which evidence was said, as searches do: a "
            "string that was said as often as its source has it keeps a thousandth of its weight, and the end a "
            "hundredth while an unknown word is missing"
        },
    )
    evidence_freely: bool = field(
        default=False, metadata={"help": "in searches: do not know which evidence was said; strings may come again"}
    )
    evidence_dropout: float = field(
        default=0.2,
        metadata={
            "help": "share of the copied source words that training reads as <unk>, to learn what to do with unknown "
            "ones"
        },
    )
    invented_evidence: float = field(
        default=0.1,
        metadata={
            "help": "share of the sentences in which training puts invented unknown words in the place of words and "
            "their lexical translations (with a prior that has both)"
        },
    )


def check_evidence_options(cfg: Any) -> None:
    """Raise OptionError for values that do not exist."""
    check_least("--max-slots", cfg.max_slots, 1)
    for name in ("evidence_dropout", "invented_evidence"):
        if not 0.0 <= getattr(cfg, name) < 1.0:
            raise OptionError(
                f"--{name.replace('_', '-')} {getattr(cfg, name)}: expected a share from 0 to below 1, e.g. 0.1"
            )


def check_evidence_is_used(cfg: Any, prior: Prior) -> None:
    """Raise OptionError for an option with which a training says something of evidence that its prior does not have.

    Not for a share of 0, which is what happens.
    """
    if prior.offered_kinds:
        return
    check_unused_options(
        {name: value for name, value in non_default_options(cfg, EvidenceConfig).items() if value != 0},
        "expected a prior with evidence (`llrnn prior --evidence`), found one without; leave it out, or build another",
    )


def counted_in_search(cfg: Any, prior: Prior) -> AbstractContextManager[None]:
    """Searches inside know what was said of the evidence, also of models whose training did not; cfg may forbid it."""
    table = prior.offers()
    return nullcontext() if table is None else replaced(table, "once", lambda before: not cfg.evidence_freely)
