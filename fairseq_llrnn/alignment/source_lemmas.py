"""Lemmas and their forms, and translations of source lemmas as a back-off of rare source forms.

Sizes: U source words, V target words, E entries.

`LemmaForms` groups the words of a dictionary that are forms of one lemma. A text contains some forms of a lemma and not
others, so that t(word | s) covers only the seen ones. Aligned and counted together, t(lemma | s) covers all forms with
the data of the seen ones. backgrounds/source_rows.py divides a lemma's probability among its forms.

A lemma is identified by its *head*, its most frequent form in the text. So a lemma is a word's id, and a table of
lemmas (translation_table.py) has the format of a table of words. A token counts for one lemma only, the one with the
most frequent forms among the lemmas of its word. A word is listed among the forms of all its possible lemmas, since the
lemma of an unseen form is unknown.

With `SourceLemmas`, a form that is rare in the bitext uses the translations of its lemma (`policemen`, `policeman`).
Let n(s, u) be the links of form s with unit u of the target, a word or a lemma, and t(u | l) the table of source
lemmas, from the same bitext with each source word replaced by its lemma. Then

    t(u | s)  =  (n(s, u) + κ t(u | lemma of s)) / (n(s) + κ)

as if the lemma had κ more links in its own proportions. A form without links has the translations of its lemma, and a
form whose lemma has none keeps its own. A word without a lemma is its own lemma.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairseq_llrnn.alignment.bitext import Bitext
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.features.feature_table import are_rows, ranges
from fairseq_llrnn.files.numbers import LARGEST_SCORE


@dataclass(frozen=True)
class LemmaForms:
    """Forms by head, in CSR form. A word that may be no translation is its own head, and has no forms."""

    head_of: np.ndarray  # (V,) int64, the head of the lemma that a word's tokens count for
    offsets: np.ndarray  # (V + 1,) int64; rows of words that are no head are empty
    forms: np.ndarray  # (E,) int64, rising in a row
    counts: np.ndarray  # (E,) float32, of the form in the text; 0 if its tokens count for another lemma

    @classmethod
    def from_lemmas(cls, lemmas: Sequence[Sequence[str]], counts: np.ndarray, possible: np.ndarray) -> LemmaForms:
        """Group words by their lemmas.

        Args:
            lemmas: of every word; a word without any is its own lemma.
            counts: (V,) of the words in the bitext.
            possible: (V,) bool, the words that may be translations.
        """
        size = len(possible)
        members: defaultdict[str, list[int]] = defaultdict(list)
        for word in np.flatnonzero(possible).tolist():
            for lemma in dict.fromkeys(lemmas[word]):
                members[lemma].append(word)
        frequency = {lemma: int(counts[words].sum()) for lemma, words in members.items()}
        words_of_lemma: defaultdict[str, list[int]] = defaultdict(list)
        for word in np.flatnonzero(possible).tolist():
            if lemmas[word]:
                words_of_lemma[min(lemmas[word], key=lambda lemma: (-frequency[lemma], lemma))].append(word)
        head_of = np.arange(size)
        rows: dict[int, list[int]] = {word: [word] for word in np.flatnonzero(possible).tolist() if not lemmas[word]}
        for lemma, words in words_of_lemma.items():
            head = min(words, key=lambda word: (-counts[word], word))
            head_of[words] = head
            rows[head] = members[lemma]
        heads = sorted(rows)
        forms = np.array([form for head in heads for form in rows[head]], dtype=np.int64)
        sizes = np.zeros(size, dtype=np.int64)
        sizes[heads] = [len(rows[head]) for head in heads]
        rows_of_entries = np.repeat(np.arange(size), sizes)
        shown = np.where(head_of[forms] == rows_of_entries, counts[forms], 0).astype(np.float32)
        return cls(head_of, np.concatenate([[0], sizes.cumsum()]).astype(np.int64), forms, shown)

    def check(self, possible: np.ndarray) -> None:
        """Raise ValueError unless all is sound, and all forms are among `possible` (V,) bool words."""
        size = len(possible)
        if not are_rows(self.offsets, self.forms, size) or len(self.offsets) != size + 1:
            raise ValueError("the forms of lemmas point outside their tables")
        if len(self.counts) != len(self.forms) or not (np.isfinite(self.counts) & (self.counts >= 0)).all():
            raise ValueError("the forms of lemmas have invalid counts")
        if len(self.head_of) != size or not ((self.head_of >= 0) & (self.head_of < size)).all():
            raise ValueError("the forms of lemmas name a lemma that is no word")
        if not possible[self.forms].all():
            raise ValueError("the forms of lemmas contain a word that the background forbids, or no word")
        rows = np.repeat(np.arange(size), np.diff(self.offsets))
        pairs = rows * np.int64(size) + self.forms
        words = np.flatnonzero(possible)
        if len(np.unique(pairs)) < len(pairs):
            raise ValueError("the forms of lemmas contain a form twice")
        if not np.isin(self.head_of[words] * np.int64(size) + words, pairs).all():
            raise ValueError("the forms of lemmas lack a word among those of its own lemma")


PSEUDO_LINKS = 5.0  # κ (docs/results/translation.md)


@dataclass(frozen=True)
class SourceLemmas:
    """The lemmas of source words, and their translations."""

    head_of: np.ndarray  # (U,) int64, the head of a word's lemma
    table: LexicalTable  # of lemmas: rows of words that are no head are empty
    pseudo_links: float = PSEUDO_LINKS  # κ

    @classmethod
    def estimate(
        cls, bitext: Bitext, lemmas: Sequence[Sequence[str]], words: np.ndarray,
        align: Callable[[Bitext], LexicalTable],
    ) -> SourceLemmas:  # fmt: skip
        """Align a bitext with each source word replaced by its lemma.

        Args:
            lemmas: of every source word; a word without any is its own lemma.
            words: (U,) bool, the words that may have translations.
            align: estimates the table of a bitext.
        """
        counts = np.bincount(bitext.source.tokens, minlength=len(words))
        head_of = LemmaForms.from_lemmas(lemmas, counts, words).head_of
        return cls(head_of, align(replace(bitext, source=replace(bitext.source, tokens=head_of[bitext.source.tokens]))))

    def mixed(self, forms: LexicalTable) -> LexicalTable:
        """Return t(u | s) of all source words, with n(s, u) from a table of forms. A row has n(s) + κ links."""
        row_sizes, shared = np.diff(forms.offsets), np.diff(self.table.offsets)[self.head_of]
        sources = np.repeat(np.arange(len(row_sizes)), row_sizes), np.repeat(np.arange(len(row_sizes)), shared)
        places = ranges(self.table.offsets[:-1][self.head_of], shared)
        targets = np.concatenate([forms.targets, self.table.targets[places]])
        weights = np.concatenate([
            forms.probabilities * forms.links[sources[0]].astype(np.float64),
            self.pseudo_links * self.table.probabilities[places].astype(np.float64),
        ])  # fmt: skip
        size = int(targets.max(initial=0)) + 1
        pairs, index_of_pair = np.unique(np.concatenate(sources) * size + targets, return_inverse=True)
        totals = np.bincount(index_of_pair, weights)
        return LexicalTable.from_pairs(pairs // size, pairs % size, totals, len(row_sizes), size)

    def check(self, sources: np.ndarray, possible: np.ndarray) -> None:
        """Raise ValueError unless all is sound.

        Args:
            sources: (U,) bool, the words that may have translations.
            possible: (V,) bool, the possible translations.
        """
        size = len(sources)
        if len(self.head_of) != size or not ((self.head_of >= 0) & (self.head_of < size)).all():
            raise ValueError("the lemmas of source words name a lemma that is no word")
        if not (self.head_of[self.head_of] == self.head_of).all():
            raise ValueError("the lemmas of source words name a lemma with another head")
        self.table.check(possible)
        self.table.check_links(sources)
        if np.diff(self.table.offsets)[self.head_of != np.arange(size)].any():
            raise ValueError("the lemmas of source words have translations of a word that is no lemma")
        if not 0.0 < self.pseudo_links <= LARGEST_SCORE:
            raise ValueError(f"the lemmas of source words count as {self.pseudo_links} links, which is out of range")
