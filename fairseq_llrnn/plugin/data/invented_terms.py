"""Training with terms: lemmas of words of the target, required as if a user had asked for them.

Of a share of the pairs, some content words of the target are looked up among the forms of lemmas, and some of its
phrases among those whose words agree (plugin/data/invented_phrases.py). All forms of such a lemma or phrase become the
group of a term; the words of the source that translate it best carry the mark, or, where none does and now and then,
any word, without being its place: so the model learns to place a term, and to choose its form by the context.
Which ones depends on the seed, the epoch and the sentence's number alone.

Over pieces, terms are words that pieces spell, on either side.

Sizes: L source tokens, U source words, V target words of the dictionaries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, FairseqDataset

from fairseq_llrnn.evidence.run_terms import RunTerms
from fairseq_llrnn.evidence.table import FUNCTION_WORDS
from fairseq_llrnn.evidence.term_marks import marked, plain
from fairseq_llrnn.evidence.term_phrases import PhraseForms
from fairseq_llrnn.evidence.term_table import MOST_FORMS, Use
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.word_forms import WordForms
from fairseq_llrnn.plugin.data.evidence_data import ChangedPairs
from fairseq_llrnn.plugin.data.invented_phrases import invented_phrases, runs
from fairseq_llrnn.prior.parts.evidence import evidence_table
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.term_words import phrase_forms, target_shares

STREAM = 3  # its random numbers are others than those of the evidence's data
MOST = 3  # words of a sentence's terms; a phrase may be more
MOST_SENTENCES = 20_000  # whose phrases are looked for
PHRASES_FIRST = 0.5  # share of the sentences that ask for phrases before words
LEAST_PROBABILITY = 0.05  # t(x | s) of a source word at which a term is looked for
WITHOUT_PLACE = 0.1  # share of the terms whose place is not said
MOST_FREQUENT = 0.01  # of all forms together, as a share: more frequent lemmas are function words
CLOSED = FUNCTION_WORDS | {"POS:PUNCT", "POS:SYM"}


@dataclass(frozen=True)
class Marks:
    """Of a group: at the first token of its place and at the others, and at any token that is not its place."""

    first: int
    others: int
    anywhere: int


class InventedTerms(ChangedPairs):
    """Pairs whose sources carry terms."""

    def __init__(self, dataset: FairseqDataset, prior: Prior, forms: WordForms, share: float, seed: int) -> None:
        super().__init__(dataset, share, seed)
        self.table, lexical = evidence_table(prior), prior.find(LexicalPart)
        self.lexical = None if lexical is None else lexical.unit_table
        forms_of_lemmas = None if lexical is None else lexical.forms  # where they are, the table has lemmas
        self.unit_of = np.arange(len(prior.symbols)) if forms_of_lemmas is None else forms_of_lemmas.head_of
        # of every word and phrase of the target the number of its group; all made now: workers have copies
        self.group_of: dict[str, int] = {}
        self.words_of: dict[int, frozenset[str]] = {}  # all words, or phrases, of a group
        self.marks: dict[int, Marks] = {}
        shares = target_shares(prior)
        for lemma in forms:
            self._add(lemma, forms, shares)
        self._add_phrases(phrase_forms(prior, forms))

    def _add(self, lemma: str, forms: WordForms, shares: Mapping[str, float]) -> None:
        found = {form: features for form, features in forms.of(lemma).items() if len(form.split()) == 1}
        found = dict(sorted(found.items(), key=lambda one: one[0] not in shares))  # a group has no room for all
        known = [form for form in found if form in shares][:MOST_FORMS]
        frequent = math.fsum(shares[form] for form in known) > MOST_FREQUENT
        if len(found) < 2 or not known or not any(map(str.isalpha, lemma)) or frequent:
            return
        if any(CLOSED & set(features) for features in found.values()):
            return
        group = self.table.terms.group(lemma, found, True)
        self.group_of.update(dict.fromkeys(known, group))
        self.words_of[group] = frozenset(list(found)[:MOST_FORMS])
        self._mark(group)

    def _add_phrases(self, phrases: PhraseForms) -> None:
        """Of the sentences that a draw puts first."""
        order = np.random.default_rng((self.seed, STREAM)).permutation(len(self.dataset))[:MOST_SENTENCES]
        sentences = (self._words(self.dataset[int(i)]["target"].numpy())[0] for i in order)
        for lemma, forms in invented_phrases(sentences, phrases).items():
            group = self.table.terms.group(lemma, forms, True)
            self.words_of[group] = frozenset(list(forms)[:MOST_FORMS])
            self.group_of.update(dict.fromkeys(self.words_of[group], group))
            self._mark(group)

    def _mark(self, group: int) -> None:
        uses = Use(group, True, True), Use(group, False, True), Use(group, True, False)
        self.marks[group] = Marks(*(self.table.terms.mark([use]) for use in uses))

    def _words(self, target: np.ndarray) -> tuple[list[str], list[tuple[int, int]]]:
        """The words of a target, "" for none, and where each begins and ends."""
        spans = self.table.target_words.spans(target)
        return [self.table.target_words.word(target[begin:end]) or "" for begin, end in spans], spans

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        random = np.random.default_rng((self.seed, self.epoch, int(index), STREAM))
        if random.random() >= self.share:
            return pair
        source, target = pair["source"].numpy(), pair["target"].numpy()
        words, spans = self._words(target)
        free = self._free(source)
        made, many = source.copy(), random.integers(1, MOST + 1)
        translations = [self._translations(int(token)) for token in source]
        said: set[int] = set()  # numbers of words of the target
        for begin, end in self._candidates(words, random):
            if not free or len(said) >= many:
                break
            # words may be forms of two lemmas: what the target says twice, or for another term, it cannot say once
            if not said.isdisjoint(range(begin, end)) or not self._is_said_once(begin, end, words, target, spans):
                continue
            said.update(range(begin, end))
            at = self._place(translations, free, [target[slice(*span)] for span in spans[begin:end]])
            marks = self.marks[self.group_of[" ".join(words[begin:end])]]
            if not at or random.random() < WITHOUT_PLACE:
                at = [free[int(random.integers(len(free)))]]
                made[at[0][0]] = marked(int(source[at[0][0]]), marks.anywhere)
            else:
                for token in range(at[0][0], at[-1][1]):
                    made[token] = marked(int(source[token]), marks.first if token == at[0][0] else marks.others)
            free = [span for span in free if span not in at]
        return pair | {"source": torch.from_numpy(made)}

    def _candidates(self, words: Sequence[str], random: np.random.Generator) -> list[tuple[int, int]]:
        """Where the target says a word or a phrase of a group, in a drawn order; often phrases first, which are few."""
        every = [*((i, i + 1) for i in range(len(words))), *runs(len(words))]
        known = [(begin, end) for begin, end in every if " ".join(words[begin:end]) in self.group_of]
        in_order = [known[i] for i in random.permutation(len(known))]
        if random.random() < PHRASES_FIRST:
            in_order.sort(key=lambda run: run[1] - run[0] == 1)
        return in_order

    def _is_said_once(
        self, begin: int, end: int, words: Sequence[str], target: np.ndarray, spans: Sequence[tuple[int, int]]
    ) -> bool:
        """Whether no form of the words' group, and no word that would spell one, is anywhere else in the target."""
        group, size = self.group_of[" ".join(words[begin:end])], end - begin
        forms = sum(" ".join(words[i : i + size]) in self.words_of[group] for i in range(len(words) - size + 1))
        rest = np.concatenate([target[: spans[begin][0]], target[spans[end - 1][1] :]])
        beside = [word for word, _ in self.table.terms.groups[group].beside]
        return forms == 1 and not np.isin(rest, beside).any()

    def _free(self, source: np.ndarray) -> list[tuple[int, int]]:
        """The words of a source (L,) without special symbols and marks: where each begins and ends."""
        own = plain(source)
        ordinary = (own >= len(SPECIALS)) & (own == source)
        return [span for span in self.table.source_words.spans(own) if ordinary[slice(*span)].all()]

    def _translations(self, token: int) -> Mapping[int, float]:
        """t(x | s) of a source token, by x."""
        table = self.lexical
        return {} if table is None or token >= table.num_sources else dict(table.row(token))

    def _place(
        self, translations: Sequence[Mapping[int, float]], free: Sequence[tuple[int, int]], words: Sequence[np.ndarray]
    ) -> list[tuple[int, int]]:
        """The free words of the source that translate a term's words best: neighbours, or the best of them."""
        found = [best for best in (self._best(translations, free, word) for word in words) if best is not None]
        places = sorted({place for _, place in found})
        if all(one[1] == other[0] for one, other in pairwise(places)):
            return places
        return [max(found)[1]]

    def _best(
        self, translations: Sequence[Mapping[int, float]], free: Sequence[tuple[int, int]], word: np.ndarray
    ) -> tuple[float, tuple[int, int]] | None:
        """The free word of the source that translates best into a word (of one token or several pieces); or None.

        A piece of the target is translated by the best piece of the source's word; the mean of all of them counts.
        """
        units = self.unit_of[word[word < len(self.unit_of)]].tolist()
        best = None
        for begin, end in free:
            each = (max(row.get(unit, 0.0) for row in translations[begin:end]) for unit in units)
            probability = math.fsum(each) / len(word)
            if probability >= (LEAST_PROBABILITY if best is None else best[0]):
                best = probability, (begin, end)
        return best


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
