"""Training with terms: require lemmas of target words as if a user had given them.

Sizes: L source tokens.

`InventedGroups` holds the groups of terms that training may require. It is built once in a run, from the lemmas and
from phrases of the first training data. A group has all forms of a lemma or phrase.

Phrases are sequences of adjacent nouns and adjectives in the targets. Neighbours need not belong together (*psa bílý*
in *vidí psa bílý muž*). In languages with case or gender, therefore, the words of a phrase must agree and all of them
must change with its forms; in others, its last word must change. Each group adds tokens to the session, so with data in
several folders (one per epoch) only the first folder supplies phrases.

`InventedTerms` selects content words and phrases of the target among these groups, in a share of the pairs. The source
words that translate a term best carry its mark. If no source word does, and sometimes at random, any source word
carries the mark, without giving the term's place. The model thus learns where to place a term, and how to choose its
form in context. The selection depends only on the seed, the epoch and the number of the sentence.

    inventing = InventedTerms(prior, InventedGroups(prior, forms, len(targets), targets.__getitem__, seed), 0.3, seed)
    source = inventing.of(source, target, epoch, number)

With pieces, terms are words spelled by pieces, on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise

import numpy as np

from fairseq_llrnn.evidence.evidence_table import Use, marked
from fairseq_llrnn.features.dictionary import SHIFT, SPECIALS, plain
from fairseq_llrnn.lexicon.merge_sources import WordForms
from fairseq_llrnn.prior.parts.evidence_part import evidence_table
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.terms.groups import FUNCTION_WORDS, LEAST_GUESS, MOST_FORMS, NOUNS, TermGroups
from fairseq_llrnn.systems.terms.phrases import PhraseForms, phrase_forms, target_shares

MOST_PHRASES = 2000  # each takes some milliseconds, and a token for each form
LONGEST = 3  # words
CONTENT = NOUNS | {"POS:ADJ"}

Forms = Mapping[str, Mapping[str, float]]  # string -> features


def invented_phrases(
    sentences: Iterable[Sequence[str]], phrases: PhraseForms, most: int = MOST_PHRASES
) -> dict[str, Forms]:
    """Return the first `most` phrases of the sentences, each with its forms. No phrase is a form of another."""
    names = _names(phrases)
    if NOUNS.isdisjoint(names):
        return {}
    agree = any(name.startswith(("Case:", "Gender:")) for name in names)

    @cache
    def kinds(word: str) -> frozenset[str]:
        analyses = (
            analysis
            for lemma in phrases.analyses.lemmas_of.get(word, ())
            for analysis in phrases.forms.analyses(lemma, word)
        )
        names = {name for analysis in analyses for name in analysis}
        if not any(name.startswith("POS:") for name in names):
            guessed = phrases.analyses.features.get(word, {})
            names = {name for name, value in guessed.items() if value >= LEAST_GUESS}
        return frozenset(name for name in names if name.startswith("POS:"))

    invented: dict[str, Forms] = {}
    seen: set[str] = set()
    for words in sentences:
        content = [bool(kinds(word)) and kinds(word) <= CONTENT for word in words]
        for begin, end in runs(len(words)):
            run, string = words[begin:end], " ".join(words[begin:end])
            if string in seen or not all(content[begin:end]) or not any(kinds(word) & NOUNS for word in run):
                continue
            seen.add(string)
            if agree and not phrases.agree(run):
                continue
            forms = phrases.of(run)
            if _change([form.split() for form in forms], agree):
                seen.update(forms)
                invented[string] = forms
                if len(invented) == most:
                    return invented
    return invented


def _names(phrases: PhraseForms) -> set[str]:
    """Return all features of all words."""
    forms = phrases.forms
    listed = (analysis for lemma in forms for form in forms.of(lemma) for analysis in forms.analyses(lemma, form))
    return set(chain.from_iterable(chain(phrases.analyses.features.values(), listed)))


def runs(num_words: int) -> list[tuple[int, int]]:
    """Return the (begin, end) of all sequences of 2 to LONGEST words in a sentence of that many words."""
    return [(begin, begin + size) for size in range(2, LONGEST + 1) for begin in range(num_words - size + 1)]


def _change(forms: Sequence[Sequence[str]], agree: bool) -> bool:
    if not forms:
        return False
    places = list(zip(*forms, strict=True))
    return all(len(set(place)) > 1 for place in (places if agree else places[-1:]))


STREAM = 3  # of random numbers, independent of those of the evidence data
MOST_SENTENCES = 20_000  # searched for phrases
MOST_FREQUENT = 0.01  # share of all words; lemmas with more frequent forms are function words
CLOSED = FUNCTION_WORDS | {"POS:PUNCT", "POS:SYM"}


@dataclass(frozen=True)
class Marks:
    """The marks of a group: on the first and the other tokens of its place, and on a token that is not its place."""

    first: int
    others: int
    anywhere: int


class InventedGroups:
    """Groups by the words and phrases of the target. All are built at the start, because worker processes have copies.
    """

    def __init__(
        self, prior: Prior, forms: WordForms, many: int, target: Callable[[int], np.ndarray], seed: int
    ) -> None:
        """many, target: the number of target sentences, and a function from a sentence's number to its tokens."""
        self.table = evidence_table(prior)
        groups = TermGroups(self.table)
        self.group_of: dict[str, int] = {}  # of every word and phrase of the target
        self.words_of: dict[int, frozenset[str]] = {}  # the forms of a group
        self.marks: dict[int, Marks] = {}
        shares = target_shares(prior)
        for lemma in forms:
            self._add(lemma, forms, shares, groups)
        drawn = np.random.default_rng((seed, STREAM)).permutation(many)[:MOST_SENTENCES]
        sentences = (self.words(target(int(number)))[0] for number in drawn)
        for phrase, forms_of_phrase in invented_phrases(sentences, phrase_forms(prior, forms)).items():
            self._add_group(phrase, forms_of_phrase, list(forms_of_phrase)[:MOST_FORMS], groups)

    def words(self, target: np.ndarray) -> tuple[list[str], list[tuple[int, int]]]:
        """Return the words of a target ("" for a token that is no word), and the (begin, end) of each."""
        spans = self.table.target_words.spans(target)
        return [self.table.target_words.word(target[begin:end]) or "" for begin, end in spans], spans

    def _add(self, lemma: str, forms: WordForms, shares: Mapping[str, float], groups: TermGroups) -> None:
        single = (item for item in forms.of(lemma).items() if len(item[0].split()) == 1)
        features_of = dict(sorted(single, key=lambda item: item[0] not in shares))  # frequent first: MOST_FORMS at most
        frequent_forms = [form for form in features_of if form in shares][:MOST_FORMS]
        frequent = math.fsum(shares[form] for form in frequent_forms) > MOST_FREQUENT
        if len(features_of) < 2 or not frequent_forms or not any(map(str.isalpha, lemma)) or frequent:
            return
        if any(CLOSED & set(features) for features in features_of.values()):
            return
        self._add_group(lemma, features_of, frequent_forms, groups)

    def _add_group(self, lemma: str, forms: Forms, required: Iterable[str], groups: TermGroups) -> None:
        """Add a group of forms, some of which may be required."""
        group = groups.number(lemma, forms, True)
        self.group_of.update(dict.fromkeys(required, group))
        self.words_of[group] = frozenset(list(forms)[:MOST_FORMS])
        uses = Use(group, True, True), Use(group, False, True), Use(group, True, False)
        self.marks[group] = Marks(*(self.table.groups.mark([use]) for use in uses))


MOST = 3  # words in the terms of a sentence; a phrase may exceed it
PHRASES_FIRST = 0.5  # share of the sentences that select phrases before words
LEAST_PROBABILITY = 0.05  # t(x | s) of a source word that may be the place of a term
WITHOUT_PLACE = 0.1  # share of the terms without a place


class InventedTerms:
    """Add terms to a share of the sources."""

    def __init__(self, prior: Prior, groups: InventedGroups, share: float, seed: int) -> None:
        self.share, self.seed, self.groups, self.table = share, seed, groups, groups.table
        lexical = prior.translations
        self.lexical = None if lexical is None else lexical.unit_table
        forms_of_lemmas = None if lexical is None else lexical.forms  # if present, the table is of lemmas
        self.unit_of = np.arange(len(prior.symbols)) if forms_of_lemmas is None else forms_of_lemmas.head_of

    def of(self, source: np.ndarray, target: np.ndarray, epoch: int, number: int) -> np.ndarray:
        """Return the source (L,) with marks of terms of its target, or unchanged."""
        random = np.random.default_rng((self.seed, epoch, number, STREAM))
        has_terms = (source >> SHIFT).any()  # a further term could require the same words twice
        if random.random() >= self.share or has_terms:
            return source
        words, spans = self.groups.words(target)
        free = self._free(source)
        changed, num_words = source.copy(), random.integers(1, MOST + 1)
        translations = [self._translations(int(token)) for token in source]
        covered: set[int] = set()  # numbers of words of the target
        for begin, end in self._candidates(words, random):
            if not free or len(covered) >= num_words:
                break
            # A term must occur once; its words may be forms of two lemmas, or part of another term.
            if not covered.isdisjoint(range(begin, end)) or not self._occurs_once(begin, end, words, target, spans):
                continue
            covered.update(range(begin, end))
            place = self._place(translations, free, [target[slice(*span)] for span in spans[begin:end]])
            marks = self.groups.marks[self.groups.group_of[" ".join(words[begin:end])]]
            if not place or random.random() < WITHOUT_PLACE:
                place = [free[int(random.integers(len(free)))]]
                changed[place[0][0]] = marked(int(source[place[0][0]]), marks.anywhere)
            else:
                for token in range(place[0][0], place[-1][1]):
                    changed[token] = marked(int(source[token]), marks.first if token == place[0][0] else marks.others)
            free = [span for span in free if span not in place]
        return changed

    def _candidates(self, words: Sequence[str], random: np.random.Generator) -> list[tuple[int, int]]:
        """Return the spans of words and phrases with a group in random order, in half of the sentences phrases first.
        """
        all_spans = [*((i, i + 1) for i in range(len(words))), *runs(len(words))]
        in_groups = [(begin, end) for begin, end in all_spans if " ".join(words[begin:end]) in self.groups.group_of]
        in_order = [in_groups[i] for i in random.permutation(len(in_groups))]
        if random.random() < PHRASES_FIRST:
            in_order.sort(key=lambda run: run[1] - run[0] == 1)
        return in_order

    def _occurs_once(
        self, begin: int, end: int, words: Sequence[str], target: np.ndarray, spans: Sequence[tuple[int, int]]
    ) -> bool:
        """Return whether the rest of the target has no form of the span's group, and no token that spells one."""
        group, size = self.groups.group_of[" ".join(words[begin:end])], end - begin
        forms = sum(" ".join(words[i : i + size]) in self.groups.words_of[group] for i in range(len(words) - size + 1))
        rest = np.concatenate([target[: spans[begin][0]], target[spans[end - 1][1] :]])
        spellings = [word for word, _ in self.table.groups.groups[group].spellings]
        return forms == 1 and not np.isin(rest, spellings).any()

    def _free(self, source: np.ndarray) -> list[tuple[int, int]]:
        """Return the spans of the words of a source (L,) without special symbols and without marks."""
        tokens = plain(source)
        ordinary = (tokens >= len(SPECIALS)) & (tokens == source)
        return [span for span in self.table.source_words.spans(tokens) if ordinary[slice(*span)].all()]

    def _translations(self, token: int) -> Mapping[int, float]:
        """Return t(x | s) of a source token, by x."""
        table = self.lexical
        return {} if table is None or token >= table.num_sources else dict(table.row(token))

    def _place(
        self, translations: Sequence[Mapping[int, float]], free: Sequence[tuple[int, int]], words: Sequence[np.ndarray]
    ) -> list[tuple[int, int]]:
        """Return the free source words that translate a term's words best if adjacent, else the best of them."""
        matches = [best for best in (self._best(translations, free, word) for word in words) if best is not None]
        places = sorted({place for _, place in matches})
        if all(first[1] == second[0] for first, second in pairwise(places)):
            return places
        return [max(matches)[1]]

    def _best(
        self, translations: Sequence[Mapping[int, float]], free: Sequence[tuple[int, int]], word: np.ndarray
    ) -> tuple[float, tuple[int, int]] | None:
        """Return (probability, span) of the free source word that translates a target word best, or None.

        Each piece of the target word counts with its best piece of the source word. The probability is their mean.
        """
        units = self.unit_of[word[word < len(self.unit_of)]].tolist()
        best = None
        for begin, end in free:
            best_of_piece = (max(row.get(unit, 0.0) for row in translations[begin:end]) for unit in units)
            probability = math.fsum(best_of_piece) / len(word)
            if probability >= (LEAST_PROBABILITY if best is None else best[0]):
                best = probability, (begin, end)
        return best
