"""What a translation task does where its prior's evidence offers strings of the source.

It is made where there is some (translation.py): dictionaries are open ones then, training sees unknown words, terms are
looked for, and targets have slots as tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from fairseq.data import FairseqDataset
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evidence.merged_targets import merged_target
from fairseq_llrnn.evidence.piece_table import PieceTable
from fairseq_llrnn.plugin.compat.dictionaries import open_source, open_target
from fairseq_llrnn.plugin.data.evidence_data import MergedTargets, UnknownAliases, warn_of_lost_evidence
from fairseq_llrnn.plugin.data.invented_evidence import InventedEvidence
from fairseq_llrnn.plugin.tasks.evidence_options import has_terms
from fairseq_llrnn.prior.parts.evidence import evidence_table
from fairseq_llrnn.systems.terms.plugin.columns import before_tab
from fairseq_llrnn.systems.terms.plugin.extension import open_terms, word_forms
from fairseq_llrnn.systems.terms.plugin.invented_groups import InventedGroups
from fairseq_llrnn.systems.terms.plugin.invented_terms import InventedTerms, TermMarks

logger = logging.getLogger(__name__)


class OfferedStrings:
    """Slots and terms of a task."""

    invented_groups: InventedGroups | None = None  # that training may ask for, once they are made

    def __init__(self, task: Any) -> None:
        """
        Args:
            task: a translation task with its prior; its dictionaries become open ones.

        Raises:
            DataError: of the file of --terms.
        """
        self.prior, self.cfg = task.prior, task.cfg
        self.table = evidence_table(self.prior, self.cfg.max_slots, self.cfg.evidence_once)
        task.src_dict = open_source(task.source_dictionary, self.table)
        task.tgt_dict = open_target(task.target_dictionary, self.table)
        self.terms, self.unk = None, task.source_dictionary.unk()
        if has_terms(self.prior):
            self.terms = task.src_dict.terms = open_terms(self.cfg, self.prior, task.source_prior)
        # Where a slot may be several tokens of a target, targets are read with slots for them.
        self.are_long = isinstance(self.table, PieceTable) or self.terms is not None

    def with_unknown_words(self, pairs: FairseqDataset) -> FairseqDataset:
        """A training set, some words of whose sources are read as unknown, and with invented words in some pairs."""
        if self.cfg.evidence_dropout > 0:
            pairs = UnknownAliases(pairs, self.table, self.cfg.evidence_dropout, self.cfg.seed)
        if self.cfg.invented_evidence > 0 and self.prior.translations is not None:
            pairs = InventedEvidence(pairs, self.prior, self.cfg.invented_evidence, self.cfg.seed)
        return pairs

    def with_terms(self, pairs: FairseqDataset, training: bool, first: Callable[[], FairseqDataset]) -> FairseqDataset:
        """Training sees invented terms; other sets have those of the run.

        Args:
            first: the pairs of the first folder, as they are.

        Raises:
            OptionError: terms of a run in training.
        """
        if self.terms is None:
            return pairs
        if training and self.cfg.terms is not None:
            raise OptionError(
                f"--terms {self.cfg.terms}: not supported in training, whose translations need not have these terms; "
                "leave it out: training invents its own (--invented-terms)"
            )
        if training and self.cfg.invented_terms > 0:
            if self.invented_groups is None:
                self.invented_groups = self._made_groups(first())
            share, seed = self.cfg.invented_terms, self.cfg.seed
            return InventedTerms(pairs, self.prior, self.invented_groups, share, seed)
        if self.cfg.terms is not None and self.cfg.dataset_impl != "raw":  # whose lines were marked as they were read
            return TermMarks(pairs, self.terms)
        return pairs

    def _made_groups(self, first: FairseqDataset) -> InventedGroups:
        """Those of the first folder, also where training goes on in another one."""
        forms = word_forms(self.prior, self.cfg.term_forms)
        if not len(forms):
            logger.warning(
                "--term-forms: not given, and the prior has no features Lemma:…, so training can invent no terms: the "
                "model does not learn to choose their forms; say where forms are known from, e.g. --term-forms "
                "words.tsv, a table of `llrnn lexicon` (--invented-terms 0: none are wanted)"
            )
        return InventedGroups(first, self.prior, forms, self.cfg.seed)

    def merged(self, pairs: FairseqDataset) -> FairseqDataset:
        """Pairs whose targets have slots as single tokens."""
        return MergedTargets(pairs, self.table) if self.are_long else pairs

    def as_written(self, source: Tensor, target: Tensor) -> Tensor:
        """A target (T,) as a search would write it for its source (L,): with slots as single tokens."""
        return merged_target(self.table, source, target) if self.are_long else target

    def warn(self, name: str, sources: Any) -> None:
        """Of evidence that finds no room. name: of the data."""
        warn_of_lost_evidence(self.table, name, sources, self.unk, binary=self.cfg.dataset_impl != "raw")

    def encoder(self, made: Any) -> Any:
        """A tokeniser, or an encoder of pieces, that leaves terms behind a line as they are."""
        return made if self.terms is None else before_tab(made)
