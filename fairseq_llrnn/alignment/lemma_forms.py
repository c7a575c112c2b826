"""The forms of lemmas: which words of a dictionary are one word in several forms.

A text shows some forms of a lemma and not others, so that t(word | s) reaches the shown ones only. Aligned and counted
together, t(lemma | s) says of all forms what the shown ones have taught; what a lemma's mass is shared by is for
backgrounds/source.py.

A lemma is called by its *head*, the form that the text shows most often, so that a lemma is a word's id and a table of
lemmas (translation_table.py) is one of words. A token is counted for one lemma alone, that of its word's lemmas whose
forms are the most frequent together; a word is listed among the forms of every lemma that it may be of, since nobody
knows which of them a form is of that the text lacks.

Sizes: V target words, E entries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.features.feature_table import are_rows


@dataclass(frozen=True)
class LemmaForms:
    """Forms by head, in CSR form. A word that may be no translation is its own head, and has no forms."""

    head_of: np.ndarray  # (V,) int64, the head of the lemma that a word's tokens are counted for
    offsets: np.ndarray  # (V + 1,) int64; rows of words that are no head are empty
    forms: np.ndarray  # (E,) int64, rising in a row
    counts: np.ndarray  # (E,) float32, how often the text shows the form, 0 where its tokens count for another lemma

    @classmethod
    def from_lemmas(cls, lemmas: Sequence[Sequence[str]], counts: np.ndarray, possible: np.ndarray) -> LemmaForms:
        """Group words by their lemmas.

        Args:
            lemmas: of every word; none: it is a lemma by itself. counts: (V,) of the words in the bitext.
            possible: (V,) bool, the words that may be translations.
        """
        size = len(possible)
        members: defaultdict[str, list[int]] = defaultdict(list)
        for word in np.flatnonzero(possible).tolist():
            for lemma in dict.fromkeys(lemmas[word]):
                members[lemma].append(word)
        frequency = {lemma: int(counts[words].sum()) for lemma, words in members.items()}
        by_lemma: defaultdict[str, list[int]] = defaultdict(list)
        for word in np.flatnonzero(possible).tolist():
            if lemmas[word]:
                by_lemma[min(lemmas[word], key=lambda lemma: (-frequency[lemma], lemma))].append(word)
        head_of = np.arange(size)
        rows: dict[int, list[int]] = {word: [word] for word in np.flatnonzero(possible).tolist() if not lemmas[word]}
        for lemma, words in by_lemma.items():
            head = min(words, key=lambda word: (-counts[word], word))
            head_of[words] = head
            rows[head] = members[lemma]
        heads = sorted(rows)
        forms = np.array([form for head in heads for form in rows[head]], dtype=np.int64)
        sizes = np.zeros(size, dtype=np.int64)
        sizes[heads] = [len(rows[head]) for head in heads]
        of_entries = np.repeat(np.arange(size), sizes)
        shown = np.where(head_of[forms] == of_entries, counts[forms], 0).astype(np.float32)
        return cls(head_of, np.concatenate([[0], sizes.cumsum()]).astype(np.int64), forms, shown)

    def check(self, possible: np.ndarray) -> None:
        """Raise ValueError unless all is sound, and all forms are among `possible` (V,) bool words."""
        size = len(possible)
        if not are_rows(self.offsets, self.forms, size) or len(self.offsets) != size + 1:
            raise ValueError("the forms of lemmas point outside their tables")
        if len(self.counts) != len(self.forms) or not (np.isfinite(self.counts) & (self.counts >= 0)).all():
            raise ValueError("the forms of lemmas were counted by numbers that are none")
        if len(self.head_of) != size or not ((self.head_of >= 0) & (self.head_of < size)).all():
            raise ValueError("the forms of lemmas name a lemma that is no word")
        if not possible[self.forms].all():
            raise ValueError("the forms of lemmas hold a word that the background forbids, or no word at all")
        rows = np.repeat(np.arange(size), np.diff(self.offsets))
        pairs = rows * np.int64(size) + self.forms
        of_words = np.flatnonzero(possible)
        if len(np.unique(pairs)) < len(pairs):
            raise ValueError("the forms of lemmas hold a form twice")
        if not np.isin(self.head_of[of_words] * np.int64(size) + of_words, pairs).all():
            raise ValueError("the forms of lemmas lack a word among those of its own lemma")
