"""Task behaviour with a prior that has terms: terms of a file or of a line, and invented terms in training.

Lines may have terms after a tab. The tokeniser leaves those unchanged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairseq.data import FairseqDataset

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.lexicon.languages.simplemma_lemmas import GROUP
from fairseq_llrnn.lexicon.merge_sources import WordForms, read_word_forms
from fairseq_llrnn.plugin.models.extensions import TaskExtension
from fairseq_llrnn.prior.parts.evidence_part import evidence_table
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.terms import MUST
from fairseq_llrnn.systems.terms.form_analyses import CERTAIN, forms_of_features
from fairseq_llrnn.systems.terms.invented_terms import InventedGroups, InventedTerms
from fairseq_llrnn.systems.terms.phrases import phrase_forms, source_words, target_shares, word_features
from fairseq_llrnn.systems.terms.plugin.marked_pairs import InventedMarks, RunTerms, TermMarks
from fairseq_llrnn.systems.terms.tbx_file import is_xml, read_tbx
from fairseq_llrnn.systems.terms.terms import Terms
from fairseq_llrnn.systems.terms.tsv_file import Entries, TermEntry, read_terms

logger = logging.getLogger(__name__)


class Terminology(TaskExtension):
    """The terms of a task."""

    invented_groups: InventedGroups | None = None  # built at the first training data

    def __init__(self, task: Any) -> None:
        """task: with its prior and open dictionaries."""
        self.prior, self.cfg = task.prior, task.cfg
        self.terms = task.src_dict.marker = open_terms(task.cfg, task.prior, task.source_prior)

    def changed_data(
        self, pairs: FairseqDataset, training: bool, first: Callable[[], FairseqDataset]
    ) -> FairseqDataset:
        """Add invented terms to training pairs, and the terms of `--terms` to other pairs.

        Raises:
            OptionError: `--terms` in training.
        """
        if training and self.cfg.terms is not None:
            raise OptionError(
                f"--terms {self.cfg.terms}: not supported in training, because its targets need not have these terms; "
                "leave it out: training derives terms from the targets (--invented-terms)"
            )
        if training and self.cfg.invented_terms > 0:
            if self.invented_groups is None:
                self.invented_groups = self._invented_groups(first())
            share, seed = self.cfg.invented_terms, self.cfg.seed
            return InventedMarks(pairs, InventedTerms(self.prior, self.invented_groups, share, seed))
        if self.cfg.terms is not None and self.cfg.dataset_impl != "raw":  # raw lines were marked when they were read
            return TermMarks(pairs, self.terms)
        return pairs

    def _invented_groups(self, first: FairseqDataset) -> InventedGroups:
        """Return the groups of the first folder, also if training resumes in another one."""
        forms = word_forms(self.prior, self.cfg.term_forms)
        if not len(forms):
            logger.warning(
                "--term-forms: not given, and the prior has no features Lemma:…, so training has no terms and the "
                "model does not learn to choose their forms; give a table of `llrnn lexicon`, e.g. --term-forms "
                "words.tsv, or --invented-terms 0 to train without terms"
            )
        return InventedGroups(
            self.prior, forms, len(first), lambda number: first[number]["target"].numpy(), self.cfg.seed
        )

    def encoder(self, tokenizer: Any) -> Any:
        return None if tokenizer is None else BeforeTab(tokenizer)


class BeforeTab:
    """Encode only the text before the first tab of a line."""

    def __init__(self, encoder: Any) -> None:  # fairseq's tokeniser or subword segmenter
        self.encoder = encoder

    def encode(self, x: str) -> str:
        text, tab, terms = x.partition("\t")
        return f"{self.encoder.encode(text)}{tab}{terms}"

    def decode(self, x: str) -> str:
        return self.encoder.decode(x)


def word_forms(prior: Prior, places: str | None, entries: Iterable[TermEntry] = ()) -> WordForms:
    """Return the forms in the tables of `--term-forms`, or in the prior's features `Lemma:…`.

    Raises as read_word_forms.

    Args:
        entries: whose words are looked up, in addition to the prior's.
    """
    if places is not None:
        words = [*target_shares(prior), *(word for entry in entries for word in entry.target.split())]
        return _read_forms(places, list(dict.fromkeys(words)))
    features = word_features(prior, target_shares(prior))
    sure = {  # drops guesses, which have smaller values
        word: {name: value for name, value in row.items() if value >= CERTAIN or feature_group(name) == GROUP}
        for word, row in features.items()
    }
    return forms_of_features(sure)


def _read_forms(places: str, words: Sequence[str]) -> WordForms:
    """Return the forms of the words of a text."""
    named = [name.strip() for name in places.split(",") if name.strip()]
    forms = read_word_forms(named, words)
    for remark, count in forms.notes.items():
        logger.warning(f"{count:,} {remark}")
    return forms


def open_terms(cfg: Any, prior: Prior, source_prior: Prior | None) -> RunTerms:
    """Return the terms of a run.

    Args:
        source_prior: of the source words; phrases match by its lemmas.

    Raises:
        DataError: invalid term file.
    """
    table, must = evidence_table(prior), cfg.term_strength == MUST
    table.groups.required |= must
    entries: Entries = ()
    if cfg.terms is not None:
        entries = (read_tbx if is_xml(cfg.terms) else read_terms)(cfg.terms, (cfg.source_lang, cfg.target_lang))

    def read() -> Terms:
        lemmas = _source_lemmas(prior, cfg.source_lexicon, source_prior)
        forms = word_forms(prior, cfg.term_forms, entries)
        phrases = phrase_forms(prior, forms)
        return Terms(table, forms, entries, must=must, source_lemmas=lemmas, phrases=phrases)

    return RunTerms(read, cfg.terms or "", len(entries))


def _source_lemmas(prior: Prior, places: str | None, source_prior: Prior | None) -> Mapping[str, Sequence[str]]:
    """Return the lemmas of source words, from `places` or else from the features of the source prior.

    Raises as read_word_forms.
    """
    lemmas_of: dict[str, list[str]] = {}
    if places is not None:
        forms = _read_forms(places, list(source_words(prior)))
        for lemma in forms:
            for form in forms.of(lemma):
                lemmas_of.setdefault(form, []).append(lemma)
    elif source_prior is not None:
        for word, features in word_features(source_prior, frozenset(source_words(prior))).items():
            lemmas_of[word] = [name.partition(":")[2] for name in features if feature_group(name) == GROUP]
    return {word: lemmas for word, lemmas in lemmas_of.items() if lemmas}
