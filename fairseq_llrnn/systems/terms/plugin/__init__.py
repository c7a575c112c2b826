"""What the system brings for fairseq: options of the task llrnn_translation.

    extension.py        what the task does where a prior has terms
    marked_pairs.py     pairs of sentences with terms
"""

from dataclasses import dataclass, field
from typing import Any, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

from fairseq.dataclass import FairseqDataclass

from fairseq_llrnn.errors import OptionError, check_unused_options
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS, Extension, TaskExtension
from fairseq_llrnn.prior.prior import Prior

MUST, MAY = "must", "may"
TERM_FORMS, SOURCE_LEXICON = "--term-forms", "--source-lexicon"


@dataclass
class TermOptions(FairseqDataclass):
    """Options."""

    terms: Optional[str] = field(
        default=None,
        metadata={
            "help": "file of terms: source phrase, target lemma, part of speech, forms (TSV), or TBX; where a source "
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


class TermExtension(Extension):
    """Terms of translations."""

    options = {"llrnn_translation": TermOptions}
    recorded = {"llrnn_translation": ("term_forms", "source_lexicon")}

    def task_extension(self, task: Any, from_checkpoint: bool) -> TaskExtension | None:
        check_options(task.cfg, task.prior)
        if not has_terms(task.prior):
            return None
        from fairseq_llrnn.systems.terms.plugin.extension import Terminology

        return Terminology(task)


def check_options(cfg: Any, prior: Prior) -> None:
    """Raise OptionError for terms that the prior does not know, and values that do not exist."""
    if cfg.term_strength not in (MUST, MAY):
        raise OptionError(f"--term-strength {cfg.term_strength}: expected {MUST} or {MAY}")
    if not 0.0 <= cfg.invented_terms < 1.0:
        raise OptionError(f"--invented-terms {cfg.invented_terms}: expected a share from 0 to below 1, e.g. 0.3")
    if has_terms(prior):
        return
    check_unused_options(
        {name: getattr(cfg, name) for name in ("terms", "term_forms", "source_lexicon")},
        "expected a prior that knows terms, found one that does not; build it with `llrnn prior --evidence terms`, and "
        "train with it",
    )


def has_terms(prior: Prior) -> bool:
    """Whether sources may bring terms."""
    return "terms" in prior.offered_kinds


EXTENSIONS.append(TermExtension())
