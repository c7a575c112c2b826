"""Translations of source lemmas, which a rare form of the source falls back on.

A form that a bitext shows once or never says little or nothing by itself, where its lemma may say much (`policemen`,
`policeman`). With n(s, u) the links of form s with unit u of the target, a word or a lemma, and t(u | l) of
the source's lemmas, from the same bitext with each source word as its lemma,

    t(u | s)  =  (n(s, u) + κ t(u | lemma of s)) / (n(s) + κ)

as if the lemma had been linked κ times more in its own proportions. A form without links says what its lemma says, and
one whose lemma has none what it says itself.

A lemma is called by its head, the form that the text shows most often, and a word is of one lemma alone
(lemma_forms.py). A word without a lemma is one by itself.
Sizes: U source words, V target words, E entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairseq_llrnn.alignment.bitext import Bitext
from fairseq_llrnn.alignment.lemma_forms import LemmaForms
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.files.numbers import LARGEST_SCORE

PSEUDO_LINKS = 5.0  # κ (docs/results/unseen-forms.md)


@dataclass(frozen=True)
class SourceLemmas:
    """The lemmas of source words, and what each translates into."""

    head_of: np.ndarray  # (U,) int64, the head of a word's lemma
    table: LexicalTable  # of lemmas: rows of words that are no head are empty
    pseudo_links: float = PSEUDO_LINKS  # κ

    @classmethod
    def estimate(
        cls, bitext: Bitext, lemmas: Sequence[Sequence[str]], words: np.ndarray,
        align: Callable[[Bitext], LexicalTable],
    ) -> SourceLemmas:  # fmt: skip
        """Align a bitext with each source word as its lemma.

        Args:
            lemmas: of every source word; none: it is a lemma by itself. words: (U,) bool, who may have translations.
            align: estimates the table of a bitext.
        """
        counts = np.bincount(bitext.source.tokens, minlength=len(words))
        head_of = LemmaForms.from_lemmas(lemmas, counts, words).head_of
        return cls(head_of, align(replace(bitext, source=replace(bitext.source, tokens=head_of[bitext.source.tokens]))))

    def mixed(self, forms: LexicalTable) -> LexicalTable:
        """t(u | s) of all source words, with n(s, u) from a table of forms; a row is as of n(s) + κ links."""
        of_words, shared = np.diff(forms.offsets), np.diff(self.table.offsets)[self.head_of]
        sources = np.repeat(np.arange(len(of_words)), of_words), np.repeat(np.arange(len(of_words)), shared)
        step = np.arange(shared.sum()) - np.repeat(shared.cumsum() - shared, shared)
        places = np.repeat(self.table.offsets[:-1][self.head_of], shared) + step
        targets = np.concatenate([forms.targets, self.table.targets[places]])
        weights = np.concatenate([
            forms.probabilities * forms.links[sources[0]].astype(np.float64),
            self.pseudo_links * self.table.probabilities[places].astype(np.float64),
        ])  # fmt: skip
        size = int(targets.max(initial=0)) + 1
        once, which = np.unique(np.concatenate(sources) * size + targets, return_inverse=True)
        return LexicalTable.from_pairs(once // size, once % size, np.bincount(which, weights), len(of_words), size)

    def check(self, sources: np.ndarray, possible: np.ndarray) -> None:
        """Raise ValueError unless all is sound.

        Args:
            sources: (U,) bool, who may have translations. possible: (V,) bool, who may be one.
        """
        size = len(sources)
        if len(self.head_of) != size or not ((self.head_of >= 0) & (self.head_of < size)).all():
            raise ValueError("the lemmas of source words name a lemma that is no word")
        if not (self.head_of[self.head_of] == self.head_of).all():
            raise ValueError("the lemmas of source words name a lemma that is called otherwise")
        self.table.check(possible)
        self.table.check_links(sources)
        if np.diff(self.table.offsets)[self.head_of != np.arange(size)].any():
            raise ValueError("the lemmas of source words have translations of a word that is none")
        if not 0.0 < self.pseudo_links <= LARGEST_SCORE:
            raise ValueError(f"the lemmas of source words count as {self.pseudo_links} links, which is no such number")
