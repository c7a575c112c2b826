"""Forms of phrases, derived from the agreeing forms of their words.

The words that inflect are found without a parser:

* An adposition and all words after it stay unchanged: *maison* de campagne, *hasičská stanice* v Praze.
* One of the nouns is the head (`head_of`). Other nouns stay unchanged (*stanice* metra).
* A modifier inflects with the head if the given form agrees with the head, or if it is a lemma.
* An initial verb takes all its forms, and the words after it stay unchanged.
* Adverbs, particles and conjunctions stay unchanged. So does an unknown word after the head, with all words after it.
  If an unknown word precedes the head, or no agreement is known, the phrase has no derived forms.

A word that is not a lemma inflects as the lemmas it is a form of: petite maison is petit and maison.

The words of terms are those of a dictionary or, with pieces, those that the pieces spell in a training text. A piece
that is a whole word has the features that hold for most of its occurrences (features/subwords.py).
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
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart, pieces_of
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
LEAST_WEIGHT = 1e-9  # of a word that occurs in no text
# Cache sizes: interactive translation and training repeat the same phrases and words.
MOST_PHRASES, MOST_WORDS = 1000, 50_000


@dataclass(frozen=True)
class Word:
    """A word of a phrase in a role."""

    forms: Mapping[str, set[Analysis]]
    features: Mapping[str, Mapping[str, float]]  # of the forms
    analyses_of_form: set[Analysis]  # of the form given in the phrase
    is_lemma: bool

    @cached_property
    def values(self) -> Mapping[str, list[Values]]:
        """Return the agreement values of the analyses of each form."""
        return {form: [values_of(analysis) for analysis in analyses] for form, analyses in self.forms.items()}


def head_of(nouns: Sequence[int], modifiers: Container[int], has_agreement: Callable[[int], bool]) -> int | None:
    """Return the place of a phrase's head noun, with which modifiers agree. The network reads the head as input.

    It is the first noun, because other nouns follow as genitives or names (*stanice* metra, *Stand* der Technik). A
    noun that cannot be a modifier goes before one that can (jeune *fille*). If nouns have neither case nor gender, it
    is the last one (fire *truck*). The rule is wrong for a head-final compound written as several words in a language
    with cases.

    Args:
        nouns: places of the nouns before any adposition, in order.
        modifiers: places of possible modifiers.
        has_agreement: whether the noun at a place has a case or a gender.
    """
    head = next((place for place in nouns if place not in modifiers), next(iter(nouns), None))
    return head if head is None or has_agreement(head) else nouns[-1]


def has_case_or_gender(names: Iterable[str]) -> bool:
    """Return whether any of the features is a case or a gender."""
    return any(name.startswith(("Case:", "Gender:")) for name in names)


class PhraseForms:
    """Derive the forms of phrases from the forms of their words."""

    def __init__(
        self,
        forms: WordForms,
        weights: Mapping[str, float] | None = None,
        features: Callable[[], Mapping[str, Mapping[str, float]]] = dict,
    ) -> None:
        """
        Args:
            weights: relative frequencies of the prior's words.
            features: returns the features of the prior's words.
        """
        self.forms, self.weights, self.analyses = forms, weights or {}, FormAnalyses(forms, features)
        self._memo = lru_cache(MOST_PHRASES)(self._combined)
        self._word = lru_cache(MOST_WORDS)(self._in_role)

    def of(self, words: Sequence[str]) -> Mapping[str, Mapping[str, float]]:
        """Return the forms of a phrase with their features, the given form first, then by frequency, empty if unknown.
        """
        return self._memo(tuple(words))

    def agree(self, words: Sequence[str]) -> bool:
        """Return whether the inflecting words of a phrase agree in the given forms."""
        inflected = self._inflected(words).values()
        choices = [{"": [values_of(analysis) for analysis in word.analyses_of_form]} for word in inflected]
        return bool(choices) and bool(agreeing(choices))

    def _combined(self, words: tuple[str, ...]) -> dict[str, dict[str, float]]:
        inflected = self._inflected(words)
        if not inflected:
            return {}
        choices = [inflected[i].values if i in inflected else {word: [ANY]} for i, word in enumerate(words)]
        weights = [{form: self._log_weight(form) for form in values} for values in choices]
        combined: dict[str, dict[str, float]] = {}
        for choice in [words, *agreeing(choices, weights)]:
            values = (inflected[i].features.get(form, {}) for i, form in enumerate(choice) if i in inflected)
            combined.setdefault(" ".join(choice), {name: 1.0 for features in values for name in features})
        return combined

    def _inflected(self, words: Sequence[str]) -> dict[int, Word]:
        """Return the words that inflect, by place, empty if that cannot be decided."""
        end = next((i for i, word in enumerate(words) if self._is_adposition(word)), len(words))
        nouns = {i: noun for i in range(end) if (noun := self._word(words[i], NOUN)) is not None}
        modifiers = {i: modifier for i in range(end) if (modifier := self._word(words[i], MODIFIER)) is not None}
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
        """Return a word in a role, or None if it cannot have the role, or if no analysis is known."""
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
            by_form = {form: self.analyses.of(lemma, form, role) for form in self.forms.of(lemma)}
            lasting = {form: analyses for form, all_ in by_form.items() if (analyses := self._lasting(of_lemma, all_))}
            is_lemma |= lemma == word and len(lasting) > 1
            for form, analyses in lasting.items():
                forms.setdefault(form, set()).update(analyses)
                features.setdefault(form, self.forms.of(lemma)[form])
            analyses_of_form |= of_lemma
            if is_lemma:
                break  # a lemma is not read as a form of another lemma
        if not any(analysis for analyses in forms.values() for analysis in analyses):
            return None
        return Word(forms, features, analyses_of_form, is_lemma)

    def _verb(self, word: str) -> Word | None:
        lemmas = [word] if self.forms.of(word) else self.analyses.lemmas_of.get(word, [])
        form_features = {form: features for lemma in lemmas for form, features in self.forms.of(lemma).items()}
        if len(form_features) < 2 or not any(VERB in self.analyses.roles(lemma) for lemma in lemmas):
            return None
        return Word({form: {frozenset()} for form in form_features}, form_features, set(), True)

    @staticmethod
    def _lasting(of_form: set[Analysis], analyses: set[Analysis]) -> set[Analysis]:
        """Return the analyses with the degree and polarity of the given form, if it has any."""
        wanted = {values_of(analysis, LASTING) for analysis in of_form} or {values_of((), LASTING)}
        return {
            analysis
            for analysis in analyses
            if any(unify(values_of(analysis, LASTING), want) is not None for want in wanted)
        }


def _agree(first: set[Analysis], second: set[Analysis]) -> bool:
    return any(unify(values_of(a), values_of(b)) is not None for a in first for b in second)


MOSTLY = 0.5


def target_shares(prior: Prior) -> dict[str, float]:
    """Return the relative frequency of each target word."""
    counts = None if (evidence := prior.find(EvidencePart)) is None else evidence.target_words
    if counts is None:
        return dict(zip(prior.symbols, np.exp(prior.log_weights).tolist(), strict=True))
    total = max(1, sum(counts.values()))
    return {word: count / total for word, count in counts.items()}


def source_words(prior: Prior) -> Iterable[str]:
    """Return the source words of the prior."""
    text_words = None if (evidence := prior.find(EvidencePart)) is None else evidence.source_vocabulary
    return prior.source_symbols if text_words is None else sorted(text_words)


def word_features(
    prior: Prior, words: Collection[str], groups: Collection[str] | None = None
) -> dict[str, Mapping[str, float]]:
    """Return the features of a prior's words: output features and, if separate, input features.

    Args:
        words: with pieces, the words of the training text; other pieces only begin or continue words.
        groups: of features (None: all).
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
    """Return a `PhraseForms` with the frequencies and features of a prior's words."""
    shares = target_shares(prior)
    return PhraseForms(forms, shares, lambda: word_features(prior, shares, RELEVANT))
