"""Training with terms: lemmas of words of the target, required as if a user had asked for them.

Sizes: L source tokens.

The groups of terms that training may ask for (`InventedGroups`) are made once of a run: lemmas, and phrases of the
first training data.

All forms of a lemma, or of a phrase, are a group. Phrases are runs of nouns and adjectives in the targets. Two
neighbours need not belong together (*psa bílý* in *vidí psa bílý muž*). So where words inflect for case or gender, the
words of a phrase agree, and all of them change with its forms; elsewhere, its last word does.

Every group takes tokens that the session keeps; so data in several folders, of which an epoch reads one, has the
phrases of the first.

`InventedTerms` look up some content words and phrases of the target among these groups, of a share of the pairs. The
words of the source that translate one best carry the mark of its group, or, where none does and now and then, any
word, without being its place: so the model learns to place a term, and to choose its form by the context. Which ones
depends on the seed, the epoch and the sentence's number alone.

    inventing = InventedTerms(prior, InventedGroups(prior, forms, len(targets), targets.__getitem__, seed), 0.3, seed)
    source = inventing.of(source, target, epoch, number)

Over pieces, terms are words that pieces spell, on either side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise

import numpy as np

from fairseq_llrnn.evidence.table import Use, marked
from fairseq_llrnn.features.dictionary import SHIFT, SPECIALS, plain
from fairseq_llrnn.lexicon.merge_sources import WordForms
from fairseq_llrnn.prior.parts.evidence import evidence_table
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
    """The first phrases that the sentences say, each with its forms; no one is a form of another."""
    names = _names(phrases)
    if NOUNS.isdisjoint(names):
        return {}
    agree = any(name.startswith(("Case:", "Gender:")) for name in names)

    @cache
    def kinds(word: str) -> frozenset[str]:
        of = (one for lemma in phrases.analyses.lemmas_of.get(word, ()) for one in phrases.forms.analyses(lemma, word))
        names = {name for one in of for name in one}
        if not any(name.startswith("POS:") for name in names):
            guessed = phrases.analyses.features.get(word, {})
            names = {name for name, value in guessed.items() if value >= LEAST_GUESS}
        return frozenset(name for name in names if name.startswith("POS:"))

    invented: dict[str, Forms] = {}
    met: set[str] = set()
    for words in sentences:
        content = [bool(kinds(word)) and kinds(word) <= CONTENT for word in words]
        for begin, end in runs(len(words)):
            run, string = words[begin:end], " ".join(words[begin:end])
            if string in met or not all(content[begin:end]) or not any(kinds(word) & NOUNS for word in run):
                continue
            met.add(string)
            if agree and not phrases.agree(run):
                continue
            forms = phrases.of(run)
            if _change([form.split() for form in forms], agree):
                met.update(forms)
                invented[string] = forms
                if len(invented) == most:
                    return invented
    return invented


def _names(phrases: PhraseForms) -> set[str]:
    """All that is known of any word."""
    forms = phrases.forms
    listed = (one for lemma in forms for form in forms.of(lemma) for one in forms.analyses(lemma, form))
    return set(chain.from_iterable(chain(phrases.analyses.features.values(), listed)))


def runs(many: int) -> list[tuple[int, int]]:
    """The beginnings and ends of all runs of two words and more in a sentence."""
    return [(begin, begin + size) for size in range(2, LONGEST + 1) for begin in range(many - size + 1)]


def _change(forms: Sequence[Sequence[str]], agree: bool) -> bool:
    if not forms:
        return False
    places = list(zip(*forms, strict=True))
    return all(len(set(place)) > 1 for place in (places if agree else places[-1:]))


STREAM = 3  # its random numbers are others than those of the evidence's data
MOST_SENTENCES = 20_000  # whose phrases are looked for
MOST_FREQUENT = 0.01  # of all forms together, as a share: more frequent lemmas are function words
CLOSED = FUNCTION_WORDS | {"POS:PUNCT", "POS:SYM"}


@dataclass(frozen=True)
class Marks:
    """Of a group: at the first token of its place and at the others, and at any token that is not its place."""

    first: int
    others: int
    anywhere: int


class InventedGroups:
    """Groups by the words and phrases of the target; all made at the beginning: processes that read have copies."""

    def __init__(
        self, prior: Prior, forms: WordForms, many: int, target: Callable[[int], np.ndarray], seed: int
    ) -> None:
        """many, target: how many sentences say phrases, and the tokens of one by its number."""
        self.table = evidence_table(prior)
        groups = TermGroups(self.table)
        self.group_of: dict[str, int] = {}  # of every word and phrase of the target
        self.words_of: dict[int, frozenset[str]] = {}  # all words, or phrases, of a group
        self.marks: dict[int, Marks] = {}
        shares = target_shares(prior)
        for lemma in forms:
            self._add(lemma, forms, shares, groups)
        drawn = np.random.default_rng((seed, STREAM)).permutation(many)[:MOST_SENTENCES]
        sentences = (self.words(target(int(number)))[0] for number in drawn)
        self._add_phrases(sentences, phrase_forms(prior, forms), groups)

    def words(self, target: np.ndarray) -> tuple[list[str], list[tuple[int, int]]]:
        """The words of a target, "" for none, and where each begins and ends."""
        spans = self.table.target_words.spans(target)
        return [self.table.target_words.word(target[begin:end]) or "" for begin, end in spans], spans

    def _add(self, lemma: str, forms: WordForms, shares: Mapping[str, float], groups: TermGroups) -> None:
        single = (one for one in forms.of(lemma).items() if len(one[0].split()) == 1)
        features_of = dict(sorted(single, key=lambda one: one[0] not in shares))  # a group has no room for all
        frequent_forms = [form for form in features_of if form in shares][:MOST_FORMS]
        frequent = math.fsum(shares[form] for form in frequent_forms) > MOST_FREQUENT
        if len(features_of) < 2 or not frequent_forms or not any(map(str.isalpha, lemma)) or frequent:
            return
        if any(CLOSED & set(features) for features in features_of.values()):
            return
        group = groups.number(lemma, features_of, True)
        self.group_of.update(dict.fromkeys(frequent_forms, group))
        self.words_of[group] = frozenset(list(features_of)[:MOST_FORMS])
        self._mark(group)

    def _add_phrases(self, sentences: Iterable[Sequence[str]], phrases: PhraseForms, groups: TermGroups) -> None:
        for lemma, forms in invented_phrases(sentences, phrases).items():
            group = groups.number(lemma, forms, True)
            self.words_of[group] = frozenset(list(forms)[:MOST_FORMS])
            self.group_of.update(dict.fromkeys(self.words_of[group], group))
            self._mark(group)

    def _mark(self, group: int) -> None:
        uses = Use(group, True, True), Use(group, False, True), Use(group, True, False)
        self.marks[group] = Marks(*(self.table.groups.mark([use]) for use in uses))


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
        has_terms = (source >> SHIFT).any()  # its own: what they ask for, the target would have to say once more
        if random.random() >= self.share or has_terms:
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
