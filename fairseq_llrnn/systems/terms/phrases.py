"""The forms of a phrase whose own forms nobody lists (those of its words, where they agree), and the words of terms.

Which words inflect is decided without a parser:

    * An adposition, and all that follows it, stays as it is: *maison* de campagne, *hasičská stanice* v Praze.
    * The head is one of the nouns (`head_of`). Other nouns stay as they are (*stanice* metra).
    * A modifier inflects with the head, if it agrees with it as it was given, or was given as a lemma.
    * A verb that comes first has all of its forms, and the words behind it stay as they are.
    * Words without any of this (adverbs, particles, conjunctions) stay as they are; so does an unknown word behind the
      head with all that follows it. Where one stands before the head, or nobody knows how forms agree, nothing is
      known of the phrase.

A word that is no lemma inflects as the lemmas that it is a form of: petite maison is petit and maison.

The words that terms are of are those of a dictionary, or, over pieces, those that a training text spells in them. A
piece that is a whole word has those features of it that are true of most of its occurrences (features/subwords.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np

from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.lexicon.merge_sources import WordForms
from fairseq_llrnn.prior.parts.evidence import pieces_of
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.terms.form_analyses import (
    ANY,
    LASTING,
    MODIFIER,
    NOUN,
    RELEVANT,
    VERB,
    Analysis,
    FormAnalyses,
    Values,
    agreeing,
    unify,
    values_of,
)

ADPOSITION, CONJUNCTION = "POS:ADP", "POS:CCONJ"
CLOSED = frozenset((ADPOSITION, CONJUNCTION, "POS:SCONJ"))
LEAST_WEIGHT = 1e-9  # of a word that no text has
# What is remembered: the lines of an interactive search, and training, name the same phrases and words over and over.
MOST_PHRASES, MOST_WORDS = 1000, 50_000


@dataclass(frozen=True)
class Word:
    """A word of a phrase in a role."""

    forms: Mapping[str, set[Analysis]]
    features: Mapping[str, Mapping[str, float]]  # of the forms, whatever their analyses
    analyses_of_form: set[Analysis]  # of the phrase's form
    is_lemma: bool

    @cached_property
    def values(self) -> Mapping[str, list[Values]]:
        """What the analyses of the forms say of agreement."""
        return {form: [values_of(one) for one in some] for form, some in self.forms.items()}


def head_of(nouns: Sequence[int], modifiers: Container[int], has_agreement: Callable[[int], bool]) -> int | None:
    """The noun of a phrase that its modifiers, and the rest of the sentence, agree with: what a network reads, too.

    It is the first one, since other nouns follow as genitives or names (*stanice* metra, *Stand* der Technik), and
    rather one that can be no modifier (jeune *fille*); where nouns have neither case nor gender, the last one (fire
    *truck*). A compound whose head comes last in a language with cases is written as one word, or wrong here.

    Args:
        nouns: places of those that no adposition is before, in order. modifiers: of what may be one.
        has_agreement: whether the noun at a place has a case or a gender.
    """
    head = next((place for place in nouns if place not in modifiers), next(iter(nouns), None))
    return head if head is None or has_agreement(head) else nouns[-1]


def has_case_or_gender(names: Iterable[str]) -> bool:
    """Of features."""
    return any(name.startswith(("Case:", "Gender:")) for name in names)


class PhraseForms:
    """Combines the forms of words."""

    def __init__(
        self,
        forms: WordForms,
        weights: Mapping[str, float] | None = None,
        features: Callable[[], Mapping[str, Mapping[str, float]]] = dict,
    ) -> None:
        """
        Args:
            weights: of the prior's words, how frequent they are. features: what the prior knows of them.
        """
        self.forms, self.weights, self.analyses = forms, weights or {}, FormAnalyses(forms, features)
        self._memo = lru_cache(MOST_PHRASES)(self._combined)
        self._word = lru_cache(MOST_WORDS)(self._in_role)

    def of(self, words: Sequence[str]) -> Mapping[str, Mapping[str, float]]:
        """Forms of a phrase with their features, the given one first, then the frequent ones; none if nobody knows."""
        return self._memo(tuple(words))

    def agree(self, words: Sequence[str]) -> bool:
        """Whether the words of a phrase that inflect agree as they are."""
        choices = [{"": [values_of(one) for one in word.analyses_of_form]} for word in self._inflected(words).values()]
        return bool(choices) and bool(agreeing(choices))

    def _combined(self, words: tuple[str, ...]) -> dict[str, dict[str, float]]:
        inflected = self._inflected(words)
        if not inflected:
            return {}
        choices = [inflected[i].values if i in inflected else {word: [ANY]} for i, word in enumerate(words)]
        weights = [{form: self._log_weight(form) for form in some} for some in choices]
        combined: dict[str, dict[str, float]] = {}
        for choice in [words, *agreeing(choices, weights)]:
            some = (inflected[i].features.get(form, {}) for i, form in enumerate(choice) if i in inflected)
            combined.setdefault(" ".join(choice), {name: 1.0 for features in some for name in features})
        return combined

    def _inflected(self, words: Sequence[str]) -> dict[int, Word]:
        """The words that inflect, by their place; none where nobody knows how."""
        end = next((i for i, word in enumerate(words) if self._is_adposition(word)), len(words))
        nouns = {i: noun for i in range(end) if (noun := self._word(words[i], NOUN)) is not None}
        modifiers = {i: each for i in range(end) if (each := self._word(words[i], MODIFIER)) is not None}
        if end and 0 not in nouns and 0 not in modifiers and (verb := self._verb(words[0])) is not None:
            return {0: verb}
        head = head_of(list(nouns), modifiers, lambda i: any(map(has_case_or_gender, chain(*nouns[i].forms.values()))))
        inflecting = nouns.keys() | modifiers.keys()
        unknown = [i for i in range(end) if i not in inflecting and not self._parts_of_speech(words[i])]
        if unknown and (head is None or unknown[0] < head):
            return {}
        end = min([end, *unknown])
        inflected = {} if head is None else {head: nouns[head]}
        for i, word in modifiers.items():
            agrees = head is None or _agree(word.analyses_of_form, nouns[head].analyses_of_form)
            if i < end and i != head and (word.is_lemma or agrees):
                inflected[i] = word
        return inflected

    def _log_weight(self, form: str) -> float:
        return math.log(max(self.weights.get(form, 0.0), LEAST_WEIGHT))

    def _parts_of_speech(self, word: str) -> set[str]:
        listed = (name for form in self.forms.analyses(word, word) for name in form)
        return {name for name in (*listed, *self.analyses.features.get(word, ())) if name.startswith("POS:")}

    def _is_adposition(self, word: str) -> bool:
        parts = self._parts_of_speech(word)
        return ADPOSITION in parts and CONJUNCTION not in parts

    def _in_role(self, word: str, role: str) -> Word | None:
        """A word in a role; None where it cannot have it, or nobody knows its analyses."""
        forms: dict[str, set[Analysis]] = {}
        features: dict[str, Mapping[str, float]] = {}
        analyses_of_form: set[Analysis] = set()
        is_lemma = False
        if self._parts_of_speech(word) & CLOSED:
            return None
        for lemma in dict.fromkeys([word, *self.analyses.lemmas_of.get(word, ())]):
            if role not in (self.analyses.roles(lemma) or (NOUN, MODIFIER)):
                continue
            of_lemma = self.analyses.of(lemma, word, role)
            if lemma != word and not of_lemma:
                continue
            every = {form: self.analyses.of(lemma, form, role) for form in self.forms.of(lemma)}
            lasting = {form: some for form, all_ in every.items() if (some := self._lasting(of_lemma, all_))}
            is_lemma |= lemma == word and len(lasting) > 1
            for form, some in lasting.items():
                forms.setdefault(form, set()).update(some)
                features.setdefault(form, self.forms.of(lemma)[form])
            analyses_of_form |= of_lemma
            if is_lemma:
                break  # what is a lemma is not a form of another one
        if not any(one for some in forms.values() for one in some):
            return None
        return Word(forms, features, analyses_of_form, is_lemma)

    def _verb(self, word: str) -> Word | None:
        lemmas = [word] if self.forms.of(word) else self.analyses.lemmas_of.get(word, [])
        of = {form: features for lemma in lemmas for form, features in self.forms.of(lemma).items()}
        if len(of) < 2 or not any(VERB in self.analyses.roles(lemma) for lemma in lemmas):
            return None
        return Word({form: {frozenset()} for form in of}, of, set(), True)

    @staticmethod
    def _lasting(of_form: set[Analysis], some: set[Analysis]) -> set[Analysis]:
        """The analyses that have the degree and polarity of the given form, where it has some."""
        wanted = {values_of(one, LASTING) for one in of_form} or {values_of((), LASTING)}
        return {one for one in some if any(unify(values_of(one, LASTING), want) is not None for want in wanted)}


def _agree(one: set[Analysis], other: set[Analysis]) -> bool:
    return any(unify(values_of(a), values_of(b)) is not None for a in one for b in other)


MOSTLY = 0.5


def target_shares(prior: Prior) -> dict[str, float]:
    """How frequent each word of the target is, as a share of all."""
    counts = next((target for _, target in (part.text_words for part in prior.parts) if target is not None), None)
    if counts is None:
        return dict(zip(prior.symbols, np.exp(prior.log_weights).tolist(), strict=True))
    total = max(1, sum(counts.values()))
    return {word: count / total for word, count in counts.items()}


def source_words(prior: Prior) -> Iterable[str]:
    """The words of the source that are known."""
    text_words = next((source for source, _ in (part.text_words for part in prior.parts) if source is not None), None)
    return prior.source_symbols if text_words is None else sorted(text_words)


def word_features(
    prior: Prior, words: Collection[str], groups: Collection[str] | None = None
) -> dict[str, Mapping[str, float]]:
    """The features of the words of a prior: of those that the output predicts, and of those that are read.

    Args:
        words: over pieces, those of the training text; a piece that is none of them only begins or ends others.
        groups: of features; None: all.
    """
    pieces, sides = pieces_of(prior), [prior.output]
    if prior.input is not prior.output:
        sides.append(prior.input)
    tables = [side.features if groups is None else side.features.of_groups(groups) for side in sides]
    classes = zip(*(side.class_of.tolist() for side in sides), strict=True)
    features_of: dict[str, Mapping[str, float]] = {}
    for symbol, of_symbol in zip(prior.symbols, classes, strict=True):
        if symbol in SPECIALS or (pieces is not None and pieces.is_marked(symbol) != pieces.mark_begins):
            continue
        features = {k: v for table, row in zip(tables, of_symbol, strict=True) for k, v in table.row(row).items()}
        if pieces is not None:
            symbol, features = pieces.bare(symbol), {k: v for k, v in features.items() if v >= MOSTLY}
            if symbol not in words:
                continue
        features_of[symbol] = features
    return features_of


def phrase_forms(prior: Prior, forms: WordForms) -> PhraseForms:
    """What finds the forms of phrases, from those of words and what the prior knows of these."""
    shares = target_shares(prior)
    return PhraseForms(forms, shares, lambda: word_features(prior, shares, RELEVANT))
