"""Training with terms: lemmas of words of the target, required as if a user had asked for them.

Of a share of the pairs, some content words and phrases of the target are looked up among the groups that may be asked
for (invented_groups.py). The words of the source that translate one best carry the mark of its group, or,
where none does and now and then, any word, without being its place: so the model learns to place a term, and to choose
its form by the context. Which ones depends on the seed, the epoch and the sentence's number alone.

    inventing = InventedTerms(prior, InventedGroups(prior, forms, len(targets), targets.__getitem__, seed), 0.3, seed)
    source = inventing.of(source, target, epoch, number)

Over pieces, terms are words that pieces spell, on either side.

Sizes: L source tokens, U source words, V target words of the dictionaries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from fairseq_llrnn.evidence.table import marked
from fairseq_llrnn.features.dictionary import SPECIALS, plain
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.terms.invented_groups import STREAM, InventedGroups, runs

MOST = 3  # words of a sentence's terms; a phrase may be more
PHRASES_FIRST = 0.5  # share of the sentences that ask for phrases before words
LEAST_PROBABILITY = 0.05  # t(x | s) of a source word at which a term is looked for
WITHOUT_PLACE = 0.1  # share of the terms whose place is not said


class InventedTerms:
    """Sources that carry terms, a share of them."""

    def __init__(self, prior: Prior, groups: InventedGroups, share: float, seed: int) -> None:
        self.share, self.seed, self.groups, self.table = share, seed, groups, groups.table
        lexical = prior.translations
        self.lexical = None if lexical is None else lexical.unit_table
        forms_of_lemmas = None if lexical is None else lexical.forms  # where they are, the table has lemmas
        self.unit_of = np.arange(len(prior.symbols)) if forms_of_lemmas is None else forms_of_lemmas.head_of

    def of(self, source: np.ndarray, target: np.ndarray, epoch: int, number: int) -> np.ndarray:
        """The source (L,) of a sentence with terms of its target, or as it is."""
        random = np.random.default_rng((self.seed, epoch, number, STREAM))
        if random.random() >= self.share:
            return source
        words, spans = self.groups.words(target)
        free = self._free(source)
        changed, many = source.copy(), random.integers(1, MOST + 1)
        translations = [self._translations(int(token)) for token in source]
        covered: set[int] = set()  # numbers of words of the target
        for begin, end in self._candidates(words, random):
            if not free or len(covered) >= many:
                break
            # words may be forms of two lemmas: what the target says twice, or for another term, it cannot say once
            if not covered.isdisjoint(range(begin, end)) or not self._is_said_once(begin, end, words, target, spans):
                continue
            covered.update(range(begin, end))
            at = self._place(translations, free, [target[slice(*span)] for span in spans[begin:end]])
            marks = self.groups.marks[self.groups.group_of[" ".join(words[begin:end])]]
            if not at or random.random() < WITHOUT_PLACE:
                at = [free[int(random.integers(len(free)))]]
                changed[at[0][0]] = marked(int(source[at[0][0]]), marks.anywhere)
            else:
                for token in range(at[0][0], at[-1][1]):
                    changed[token] = marked(int(source[token]), marks.first if token == at[0][0] else marks.others)
            free = [span for span in free if span not in at]
        return changed

    def _candidates(self, words: Sequence[str], random: np.random.Generator) -> list[tuple[int, int]]:
        """Where the target says a word or a phrase of a group, in a drawn order; often phrases first, which are few."""
        every = [*((i, i + 1) for i in range(len(words))), *runs(len(words))]
        in_groups = [(begin, end) for begin, end in every if " ".join(words[begin:end]) in self.groups.group_of]
        in_order = [in_groups[i] for i in random.permutation(len(in_groups))]
        if random.random() < PHRASES_FIRST:
            in_order.sort(key=lambda run: run[1] - run[0] == 1)
        return in_order

    def _is_said_once(
        self, begin: int, end: int, words: Sequence[str], target: np.ndarray, spans: Sequence[tuple[int, int]]
    ) -> bool:
        """Whether no form of the words' group, and no word that would spell one, is anywhere else in the target."""
        group, size = self.groups.group_of[" ".join(words[begin:end])], end - begin
        forms = sum(" ".join(words[i : i + size]) in self.groups.words_of[group] for i in range(len(words) - size + 1))
        rest = np.concatenate([target[: spans[begin][0]], target[spans[end - 1][1] :]])
        beside = [word for word, _ in self.table.groups.groups[group].beside]
        return forms == 1 and not np.isin(rest, beside).any()

    def _free(self, source: np.ndarray) -> list[tuple[int, int]]:
        """The words of a source (L,) without special symbols and marks: where each begins and ends."""
        tokens = plain(source)
        ordinary = (tokens >= len(SPECIALS)) & (tokens == source)
        return [span for span in self.table.source_words.spans(tokens) if ordinary[slice(*span)].all()]

    def _translations(self, token: int) -> Mapping[int, float]:
        """t(x | s) of a source token, by x."""
        table = self.lexical
        return {} if table is None or token >= table.num_sources else dict(table.row(token))

    def _place(
        self, translations: Sequence[Mapping[int, float]], free: Sequence[tuple[int, int]], words: Sequence[np.ndarray]
    ) -> list[tuple[int, int]]:
        """The free words of the source that translate a term's words best: neighbours, or the best of them."""
        matches = [best for best in (self._best(translations, free, word) for word in words) if best is not None]
        places = sorted({place for _, place in matches})
        if all(one[1] == other[0] for one, other in pairwise(places)):
            return places
        return [max(matches)[1]]

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
