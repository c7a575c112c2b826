"""`llrnn explain --terms`: terms that the translation must have."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairseq_llrnn.errors import check_unused_options

if TYPE_CHECKING:
    from fairseq_llrnn.explain.explanation import Explanation
    from fairseq_llrnn.plugin.scoring.explainer import Explainer

OPTIONS = ("terms", "term_forms", "source_lexicon")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    asked = parser.add_argument_group("with terms")
    asked.add_argument(
        "--terms", metavar="FILE",
        help="terms that the translation must have, as of fairseq-interactive; those of the source alone stand behind "
        "it, with tabs",
    )  # fmt: skip
    asked.add_argument(
        "--term-forms", metavar="FILES", help="tables that know the forms of terms (default: as in training)"
    )
    asked.add_argument(
        "--source-lexicon", metavar="FILES",
        help="tables that know the lemmas of the source's words (default: as in training)",
    )  # fmt: skip


def begin(args: argparse.Namespace) -> TermsAsked | None:
    """What looks for terms; None: none are asked for."""
    return TermsAsked(args) if any(getattr(args, name) is not None for name in OPTIONS) else None


class TermsAsked:
    """Has a model look for terms in sources. args: of the command."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args

    def opened(self, loaded: Explainer) -> None:
        """Raises OptionError for a model or a prior that knows no terms, and DataError for the file."""
        from fairseq_llrnn.plugin.scoring.explainer import TranslationExplainer
        from fairseq_llrnn.systems.terms.plugin import check_options
        from fairseq_llrnn.systems.terms.plugin.extension import open_terms

        args = self.args
        if not isinstance(loaded, TranslationExplainer):
            options = {name: getattr(args, name) for name in OPTIONS}
            check_unused_options(
                options, f"expected a translation model, found a language model in {args.path}; leave it out"
            )
            return
        task = loaded.task
        recorded: Any = task.cfg
        asked = argparse.Namespace(
            terms=args.terms, term_forms=args.term_forms or recorded.term_forms, term_strength=recorded.term_strength,
            source_lexicon=args.source_lexicon or recorded.source_lexicon, invented_terms=0.0,
            source_lang=recorded.source_lang, target_lang=recorded.target_lang,
        )  # fmt: skip
        check_options(asked, task.prior)
        task.src_dict.marker = open_terms(asked, task.prior, task.source_prior)

    def add(self, words: Sequence[str], explained: Sequence[Explanation]) -> None:
        """Nothing: slots say what a term is."""

    def end(self) -> None:
        """Nothing."""
