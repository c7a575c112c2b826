"""`llrnn explain --terms`: explain a translation with required terms."""

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
    group = parser.add_argument_group("with terms")
    group.add_argument(
        "--terms", metavar="FILE",
        help="file of required terms, as in fairseq-interactive; append the terms of one source to it, separated by "
        "tabs",
    )  # fmt: skip
    group.add_argument(
        "--term-forms", metavar="FILES", help="tables with the forms of terms (default: those of training)"
    )
    group.add_argument(
        "--source-lexicon", metavar="FILES",
        help="tables with the lemmas of source words (default: those of training)",
    )  # fmt: skip


def begin(args: argparse.Namespace) -> TermMatcher | None:
    """Return the term matcher, or None if no option of terms is given."""
    return TermMatcher(args) if any(getattr(args, name) is not None for name in OPTIONS) else None


class TermMatcher:
    """Match terms in the sources that a model explains. args: options of the command."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args

    def opened(self, loaded: Explainer) -> None:
        """Attach the terms to the model.

        Raises:
            OptionError: the model is a language model, or its prior has no terms.
            DataError: invalid term file.
        """
        from fairseq_llrnn.plugin.scoring.explainer import TranslationExplainer
        from fairseq_llrnn.systems.terms.plugin import check_options
        from fairseq_llrnn.systems.terms.plugin.extension import open_terms

        args = self.args
        if not isinstance(loaded, TranslationExplainer):
            options = {name: getattr(args, name) for name in OPTIONS}
            check_unused_options(
                options, f"not supported with the language model {args.path}; leave it out or explain a translation"
            )
            return
        task = loaded.task
        recorded: Any = task.cfg
        options_of_terms = argparse.Namespace(
            terms=args.terms, term_forms=args.term_forms or recorded.term_forms, term_strength=recorded.term_strength,
            source_lexicon=args.source_lexicon or recorded.source_lexicon, invented_terms=0.0,
            source_lang=recorded.source_lang, target_lang=recorded.target_lang,
        )  # fmt: skip
        check_options(options_of_terms, task.prior)
        task.src_dict.marker = open_terms(options_of_terms, task.prior, task.source_prior)

    def add(self, words: Sequence[str], explained: Sequence[Explanation]) -> None:
        """Do nothing: the explanation's slots name the terms."""

    def end(self) -> None:
        """Do nothing."""
