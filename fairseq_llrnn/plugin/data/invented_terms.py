"""Training with terms: lemmas of words of the target, required as if a user had asked for them.

Of a share of the pairs, some content words of the target are looked up among the forms of lemmas. All forms of such a
lemma become the group of a term; the source's word that translates it best carries the mark, or, where none does and
now and then, any word, without being its place: so the model learns to place a term, and to choose its form by the
context.
Which ones depends on the seed, the epoch and the sentence's number alone.

Sizes: U source words, V target words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, FairseqDataset

from fairseq_llrnn.evidence.table import EvidenceTable
from fairseq_llrnn.evidence.term_marks import marked, plain
from fairseq_llrnn.evidence.term_table import MOST_FORMS, Use
from fairseq_llrnn.evidence.terms import RunTerms
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.word_forms import WordForms
from fairseq_llrnn.plugin.data.evidence_data import ChangedPairs
from fairseq_llrnn.prior.parts.evidence import evidence_table
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior

STREAM = 3  # its random numbers are others than those of the evidence's data
MOST = 3  # terms of a sentence
LEAST_PROBABILITY = 0.05  # t(x | s) of a source word at which a term is looked for
WITHOUT_PLACE = 0.1  # share of the terms whose place is not said
MOST_FREQUENT = 0.01  # b₀ of all forms together: more frequent lemmas are function words
CLOSED = {f"POS:{upos}" for upos in ("ADP", "AUX", "CCONJ", "DET", "PART", "PRON", "PUNCT", "SCONJ", "SYM")}


class InventedTerms(ChangedPairs):
    """Pairs whose sources carry terms."""

    def __init__(self, dataset: FairseqDataset, prior: Prior, forms: WordForms, share: float, seed: int) -> None:
        super().__init__(dataset, share, seed)
        table, lexical = evidence_table(prior), prior.find(LexicalPart)
        self.lexical = None if lexical is None else lexical.unit_table
        forms_of_lemmas = None if lexical is None else lexical.forms  # where they are, the table has lemmas
        self.unit_of = np.arange(len(prior.symbols)) if forms_of_lemmas is None else forms_of_lemmas.head_of
        # of every target word the number of its lemma's group, −1 for none; all made now: workers have copies
        self.group_of = np.full(len(prior.symbols), -1)
        weights = np.exp(prior.log_weights)
        self.words_of: dict[int, np.ndarray] = {}  # all words of a group
        self.at_place: dict[int, int] = {}
        self.anywhere: dict[int, int] = {}
        for lemma in forms:
            self._add(table, prior, lemma, forms, weights)

    def _add(self, table: EvidenceTable, prior: Prior, lemma: str, forms: WordForms, weights: np.ndarray) -> None:
        found = {form: features for form, features in forms.of(lemma).items() if len(form.split()) == 1}
        index = table.target.known_index
        found = dict(sorted(found.items(), key=lambda one: one[0] not in index))  # a group has no room for all
        known = [index[form] for form in found if form in index][:MOST_FORMS]
        if len(found) < 2 or not known or not any(map(str.isalpha, lemma)) or weights[known].sum() > MOST_FREQUENT:
            return
        if any(CLOSED & set(features) for features in found.values()):
            return
        group = table.terms.group(lemma, found, True)
        self.group_of[known] = group
        self.words_of[group] = np.array(table.terms.groups[group].words)
        self.at_place[group] = table.terms.mark([Use(group, True, True)])
        self.anywhere[group] = table.terms.mark([Use(group, True, False)])

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        random = np.random.default_rng((self.seed, self.epoch, int(index), STREAM))
        if random.random() >= self.share:
            return pair
        source, target = pair["source"].numpy(), pair["target"].numpy()
        of_words = np.where(target < len(self.group_of), self.group_of[np.minimum(target, len(self.group_of) - 1)], -1)
        groups = np.unique(of_words[of_words >= 0])
        free = [i for i, token in enumerate(source.tolist()) if token >= len(SPECIALS) and plain(token) == token]
        if not len(groups) or not free:
            return pair
        made, many = source.copy(), random.integers(1, MOST + 1)
        said: set[int] = set()  # places in the target
        for group in random.permutation(groups).tolist():
            places = np.flatnonzero(np.isin(target, self.words_of[group])).tolist()
            # words may be forms of two lemmas: what the target says twice, or for another term, it cannot say once
            if len(places) != 1 or places[0] in said:
                continue
            if not free or len(said) == many:
                break
            said.add(places[0])
            at = self._best(source, free, int(self.unit_of[target[places[0]]]))
            if at is None or random.random() < WITHOUT_PLACE:
                at, mark = int(random.choice(free)), self.anywhere[group]
            else:
                mark = self.at_place[group]
            made[at] = marked(int(source[at]), mark)
            free.remove(at)
        return pair | {"source": torch.from_numpy(made)}

    def _best(self, source: np.ndarray, free: list[int], word: int) -> int | None:
        """The free place whose word translates best into a word of the table; None where none does."""
        table, best, at = self.lexical, LEAST_PROBABILITY, None
        if table is None:
            return None
        for place in free:
            token = int(source[place])
            probability = dict(table.row(token)).get(word, 0.0) if token < table.num_sources else 0.0
            if probability >= best:
                best, at = probability, place
        return at


class TermMarks(BaseWrapperDataset):
    """Pairs whose sources carry the terms of a run, found once and for all."""

    def __init__(self, dataset: FairseqDataset, terms: RunTerms) -> None:
        super().__init__(dataset)
        self.changed: dict[int, torch.Tensor] = {}
        for index in range(len(dataset)):
            source = dataset[index]["source"].tolist()
            made = terms.marked(source)
            if made != source:
                self.changed[index] = torch.tensor(made)

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        return pair | {"source": self.changed[index]} if index in self.changed else pair
