"""The options of a translation's evidence and of its terms; who does what they say is imported where there is some.

evidence.py does it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

from fairseq.dataclass import FairseqDataclass

from fairseq_llrnn.defaults import MAX_SLOTS
from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.prior.prior import Prior

MUST, MAY = "must", "may"
TERM_FORMS, SOURCE_LEXICON = "--term-forms", "--source-lexicon"


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
    if cfg.evidence_once and cfg.evidence_freely:
        raise OptionError(
            "--evidence-once: expected it without --evidence-freely, found both; one says to know what was said, the "
            "other not to: leave one of them out"
        )
    for name in ("evidence_dropout", "invented_evidence"):
        if not 0.0 <= getattr(cfg, name) < 1.0:
            raise OptionError(
                f"--{name.replace('_', '-')} {getattr(cfg, name)}: expected a share from 0 to below 1, e.g. 0.1"
            )


@dataclass
class TermConfig(FairseqDataclass):
    """Options."""

    terms: Optional[str] = field(
        default=None,
        metadata={
            "help": "file of terms: source phrase, target lemma, part of speech, forms (TSV), or *.tbx; where a source "
            "has the phrase, a form of the lemma is required, and the model chooses which (with a prior that has "
            "`--evidence terms`)"
        },
    )
    term_strength: str = field(
        default=MUST,
        metadata={"help": "must: a translation has exactly one form of each term; may: its forms are made likely"},
    )
    term_forms: Optional[str] = field(
        default=None,
        metadata={
            "help": "tables of `llrnn lexicon` that know the forms of lemmas, several with commas (default: the "
            "prior's features Lemma:…)"
        },
    )
    source_lexicon: Optional[str] = field(
        default=None,
        metadata={
            "help": "tables of `llrnn lexicon` that know the lemmas of the source's words: phrases of --terms match "
            "by them, too (default: the features Lemma:… of --source-prior, if there are any)"
        },
    )
    invented_terms: float = field(
        default=0.3,
        metadata={
            "help": "share of the pairs in which training requires some words and phrases of the target, in any form, "
            "as if they were terms (with a prior that has `--evidence terms`)"
        },
    )


def check_term_options(cfg: Any, prior: Prior) -> None:
    """Raise OptionError for terms that the prior does not know, and values that do not exist."""
    if cfg.term_strength not in (MUST, MAY):
        raise OptionError(f"--term-strength {cfg.term_strength}: expected {MUST} or {MAY}")
    if not 0.0 <= cfg.invented_terms < 1.0:
        raise OptionError(f"--invented-terms {cfg.invented_terms}: expected a share from 0 to below 1, e.g. 0.3")
    if has_terms(prior):
        return
    given = ("--terms", cfg.terms), (TERM_FORMS, cfg.term_forms), (SOURCE_LEXICON, cfg.source_lexicon)
    for name, value in given:
        if value is not None:
            raise OptionError(
                f"{name} {value}: expected a prior that knows terms, found one that does not; build it with `llrnn "
                "prior --evidence terms`, and train with it"
            )


def has_terms(prior: Prior) -> bool:
    """Whether sources may bring terms."""
    return "terms" in prior.offered_kinds


@contextmanager
def counted_in_search(cfg: Any, prior: Prior) -> Iterator[None]:
    """Searches inside know what was said of the evidence, also of models whose training did not; cfg may forbid it."""
    table = prior.offers()
    if table is None:
        yield
        return
    before, table.once = table.once, not cfg.evidence_freely
    try:
        yield
    finally:
        table.once = before
