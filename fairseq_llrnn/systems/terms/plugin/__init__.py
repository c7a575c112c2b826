"""Options of the task llrnn_translation for terms.

    extension.py        task behaviour with a prior that has terms
    marked_pairs.py     sentence pairs with terms
"""

from dataclasses import dataclass, field
from typing import Any, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

from fairseq.dataclass import FairseqDataclass

from fairseq_llrnn.errors import OptionError, check_unused_options
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS, Extension, TaskExtension
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.terms import MAY, MUST


@dataclass
class TermOptions(FairseqDataclass):
    """Options of terms."""

    terms: Optional[str] = field(
        default=None,
        metadata={
            "help": "file of terms: source phrase, target lemma, part of speech, forms (TSV), or TBX; if a source "
            "has the phrase, its translation has a form of the lemma, chosen by the model (with a prior built with "
            "`--evidence terms`)"
        },
    )
    term_strength: str = field(
        default=MUST,
        metadata={"help": "must: a translation has exactly one form of each term; may: its forms become likely"},
    )
    term_forms: Optional[str] = field(
        default=None,
        metadata={
            "help": "comma-separated tables of `llrnn lexicon` with the forms of lemmas (default: the prior's features "
            "Lemma:…)"
        },
    )
    source_lexicon: Optional[str] = field(
        default=None,
        metadata={
            "help": "comma-separated tables of `llrnn lexicon` with the lemmas of source words, by which phrases of "
            "--terms also match (default: the features Lemma:… of --source-prior, if any)"
        },
    )
    invented_terms: float = field(
        default=0.3,
        metadata={
            "help": "share of the pairs in which training requires some words and phrases of the target, in any form, "
            "as terms (with a prior built with `--evidence terms`)"
        },
    )


class TermExtension(Extension):
    """Extension of llrnn_translation with terms."""

    options = {"llrnn_translation": TermOptions}
    recorded = {"llrnn_translation": ("term_forms", "source_lexicon")}

    def task_extension(self, task: Any, from_checkpoint: bool) -> TaskExtension | None:
        check_options(task.cfg, task.prior)
        if not has_terms(task.prior):
            return None
        from fairseq_llrnn.systems.terms.plugin.extension import Terminology

        return Terminology(task)


def check_options(cfg: Any, prior: Prior) -> None:
    """Raise OptionError for options of terms if the prior has none, and for invalid values."""
    if cfg.term_strength not in (MUST, MAY):
        raise OptionError(f"--term-strength {cfg.term_strength}: expected {MUST} or {MAY}")
    if not 0.0 <= cfg.invented_terms < 1.0:
        raise OptionError(f"--invented-terms {cfg.invented_terms}: expected a share from 0 to below 1, e.g. 0.3")
    if has_terms(prior):
        return
    check_unused_options(
        {name: getattr(cfg, name) for name in ("terms", "term_forms", "source_lexicon")},
        "the prior has no terms; build it with `llrnn prior --evidence terms`, and train with it",
    )


def has_terms(prior: Prior) -> bool:
    """Return whether the prior supports terms."""
    return "terms" in prior.offered_kinds


EXTENSIONS.append(TermExtension())
