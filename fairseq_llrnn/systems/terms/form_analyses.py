"""The analyses of the forms of lemmas, and which forms of several words agree: those that a phrase may have.

An *analysis* of a form is a set of features, such as {Case:Gen, Number:Sing, Gender:Masc, Animacy:Anim}; a form may
have several. Words agree if each has an analysis such that, in every group of AGREEING, those that have values of it
share one. What a word has no value of agrees with all. (One analysis may have several values of a group, where a
source does not tell its analyses apart: any of them.)

`FormAnalyses` keep those apart that agree with different words. A treebank shows a form with the analyses that its
text happened to need, and a dictionary of lemmas shows none. So what a form may be comes from three places: the
analyses that the source of forms has; where it has none, the features of the word in the prior, if they say one thing
only; and rules. A rule is a change from the lemma to the form (`ý -> ého`), of adjectives, or of nouns of one gender;
it says the analyses that forms made by it were seen with. Where a form has neither, its last letters say what most
forms that end so are.

As to its role, an analysis is of a noun, of a modifier (adjectives, determiners, numerals, participles), of a verb,
or of another part of speech; one without a part of speech may be any.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from heapq import nsmallest

from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.lexicon.languages.lemmas import GROUP as LEMMA
from fairseq_llrnn.lexicon.merge_sources import WordForms

AGREEING = ("Case", "Number", "Gender", "Animacy", "Definite")
LASTING = ("Degree", "Polarity")  # groups of which a form in a phrase keeps the value: no comparatives, no negations
MOST_CHOICES = 512  # that are found

Analysis = frozenset[str]
Values = tuple[frozenset[str], ...]  # of each group of AGREEING the values that are possible; empty: any
ANY: Values = (frozenset(),) * len(AGREEING)


def values_of(analysis: Iterable[str], groups: Sequence[str] = AGREEING) -> Values:
    """What an analysis says of some groups."""
    values: dict[str, set[str]] = {group: set() for group in groups}
    for name in analysis:
        if (group := feature_group(name)) in values:
            values[group].add(name)
    return tuple(map(frozenset, values.values()))


def unify(one: Values, other: Values) -> Values | None:
    """What both allow; None where they contradict each other."""
    both = []
    for a, b in zip(one, other, strict=True):
        common = a & b if a and b else a | b
        if (a or b) and not common:
            return None
        both.append(common)
    return tuple(both)


def agreeing(
    words: Sequence[Mapping[str, Collection[Values]]], weights: Sequence[Mapping[str, float]] | None = None
) -> list[tuple[str, ...]]:
    """The choices of a form for each word that agree: the MOST_CHOICES with the largest sums of weights, in order.

    From word to word, the best beginnings of each set of values are kept. No other can begin one of the best choices:
    whatever may follow it may follow those that are before it, too, and they stay before it (rounding of sums aside).

    Args:
        words: of each word its forms with what their analyses say; at least one each. weights: of the forms, 0 without.
    """
    weights = weights or [{} for _ in words]
    reached: dict[Values, dict[tuple[str, ...], float]] = {ANY: {(): 0.0}}
    for forms, weight in zip(words, weights, strict=True):
        by_values = defaultdict(list)
        for form, some in forms.items():
            for values in set(some):
                by_values[values].append(form)
        going: dict[Values, dict[tuple[str, ...], float]] = {}
        for before, choices in reached.items():
            for values, its_forms in by_values.items():
                both = unify(before, values)
                if both is not None:
                    more = {(*c, form): s + weight.get(form, 0.0) for c, s in choices.items() for form in its_forms}
                    going.setdefault(both, {}).update(more)
        reached = {values: dict(_best(choices)) for values, choices in going.items()}
    counts = {choice: sum_ for choices in reached.values() for choice, sum_ in choices.items()}
    return [choice for choice, _ in _best(counts)]


def _best(choices: Mapping[tuple[str, ...], float]) -> list[tuple[tuple[str, ...], float]]:
    """Those of the largest sums, in order; of equal sums the first by the alphabet."""
    return nsmallest(MOST_CHOICES, choices.items(), key=lambda one: (-one[1], one[0]))


NOUN, MODIFIER, VERB = "noun", "modifier", "verb"
ROLES = {
    **dict.fromkeys(("POS:NOUN", "POS:PROPN"), NOUN),
    **dict.fromkeys(("POS:ADJ", "POS:DET", "POS:NUM"), MODIFIER),
    **dict.fromkeys(("POS:VERB", "POS:AUX"), VERB),
}
MAIN = frozenset(("Case", "Number", "Gender"))
GENDERS = ("Gender", "Animacy")
LEAST_SEEN, LEAST_COUNT, LEAST_SHARE = 5, 3, 0.02  # forms of a rule; how many, and what share, show an analysis of it
LEAST_OF_ENDING, LEAST_SHARE_OF_ENDING = 20, 0.2  # the same of last letters, which say less
LONGEST_ENDING = 2
LEAST_SHARE_OF_ROLE = 0.2  # of the analyses of a lemma's forms
CERTAIN = 0.999  # value of a feature that is not guessed, or guessed by all

Features = Mapping[str, float]


def forms_of_features(features: Mapping[str, Features]) -> WordForms:
    """The forms of words, by their features `Lemma:…`."""
    forms = WordForms()
    for word, names in features.items():
        for name in names:
            if feature_group(name) == LEMMA:
                forms.add(name.partition(":")[2], word, names)
    return forms


class FormAnalyses:
    """Analyses by lemma, form and role."""

    def __init__(self, forms: WordForms, features: Callable[[], Mapping[str, Features]] = dict) -> None:
        """features: those of the prior's words, asked for once, when a phrase needs them; RELEVANT ones count."""
        self.forms, self._features = forms, features
        self._memo: dict[tuple[str, str], list[Analysis]] = {}

    @cached_property
    def features(self) -> Mapping[str, Features]:
        """Of the prior's words."""
        return self._features()

    @cached_property
    def lemmas_of(self) -> Mapping[str, list[str]]:
        """The lemmas of each form."""
        lemmas: dict[str, list[str]] = {}
        for lemma in self.forms:
            for form in self.forms.strings(lemma):
                lemmas.setdefault(form, []).append(lemma)
        return lemmas

    def roles(self, lemma: str) -> set[str]:
        """What forms of a lemma may be; nothing where nobody knows a part of speech."""
        every = [one for form in self.forms.strings(lemma) for one in self._analyses(lemma, form)]
        counted = Counter(role for one in every if is_precise(one) for role in _roles(one))
        often = {role for role, count in counted.items() if count >= LEAST_SHARE_OF_ROLE * counted.total()}
        return often or {role for one in every for role in _roles(one)}

    def of(self, lemma: str, form: str, role: str) -> set[Analysis]:
        """What a form may be in a role; nothing where nobody knows."""
        all_analyses = self._analyses(lemma, form)
        of_role = [one for one in all_analyses if role in (_roles(one) or (role,))]
        analyses = {_bare(one) for one in of_role if is_precise(one) and _agrees(one)}
        if role != VERB and role in (self.roles(lemma) or (role,)):
            gender = self._gender(lemma) if role == NOUN else None
            lasting = self._lasting(form, all_analyses)
            ruled = self._ruled(role, gender, lemma, form, bool(analyses))
            analyses |= {one for one in ruled if unify(values_of(one, LASTING), lasting) is not None}
        return _most_specific({one for one in analyses or map(_bare, of_role) if _agrees(one)})

    def _analyses(self, lemma: str, form: str) -> list[Analysis]:
        """Analyses with their parts of speech: of the source, or those of the prior where these say more."""
        key = lemma, form
        if key not in self._memo:
            self._memo[key] = self._read(lemma, form)
        return self._memo[key]

    def _read(self, lemma: str, form: str) -> list[Analysis]:
        analyses = [one for one in map(_relevant, self.forms.analyses(lemma, form)) if one]
        if any(is_precise(one) and _agrees(one) for one in analyses):
            return analyses
        features = self.features.get(form, {})
        possible = _relevant(features)
        certain = frozenset([name for name in possible if features[name] >= CERTAIN])
        if is_precise(certain) and _agrees(certain) and _main(possible) <= _main(certain):
            return [certain]
        return [one for one in (*analyses, possible) if one]

    def _lasting(self, form: str, analyses: Iterable[Analysis]) -> Values:
        """The degree and polarity of a form; of guessed ones, those that are likely."""
        best: dict[str, float] = {}
        features = {name: self.features.get(form, {}).get(name, 1.0) for one in analyses for name in one}
        for name, value in features.items():
            best[_group(name)] = max(value, best.get(_group(name), 0.0))
        return values_of((name for name, value in features.items() if 2 * value > best[_group(name)]), LASTING)

    def _gender(self, lemma: str) -> Analysis:
        """The gender of a noun, with its animacy: the lemma's own, or what most of its forms have."""
        of_lemma = {name for one in self._analyses(lemma, lemma) for name in one if _group(name) in GENDERS}
        if len(of_lemma) == len(set(map(_group, of_lemma))) > 0:
            return frozenset(of_lemma)
        counted = Counter(
            frozenset(name for name in one if _group(name) in GENDERS)
            for form in self.forms.strings(lemma)
            for one in self._analyses(lemma, form)
            if is_precise(one) and NOUN in _roles(one)
        )
        return max(counted, key=lambda one: (counted[one], sorted(one)), default=frozenset())

    def _ruled(self, role: str, gender: Analysis | None, lemma: str, form: str, has_analyses: bool) -> set[Analysis]:
        some = self._often((role, gender, *_change(lemma, form)), LEAST_SEEN, LEAST_SHARE)
        for length in range(LONGEST_ENDING, 0, -1):
            if not some and not has_analyses and len(form) > length:
                some = self._often((role, gender, form[-length:]), LEAST_OF_ENDING, LEAST_SHARE_OF_ENDING)
        return some

    def _often(self, key: Hashable, least: int, share: float) -> set[Analysis]:
        total, counted = self._totals[key], self._rules.get(key, Counter())
        if total < least:
            return set()
        return {one for one, count in counted.items() if one and count >= max(LEAST_COUNT, share * total)}

    @cached_property
    def _totals(self) -> Counter[Hashable]:
        return Counter({key: counted[_ALL] for key, counted in self._rules.items()})

    @cached_property
    def _rules(self) -> Mapping[Hashable, Counter[Analysis]]:
        """How often forms of a change, and of last letters, have an analysis."""
        rules: dict[Hashable, Counter[Analysis]] = defaultdict(Counter)
        for lemma in self.forms:
            gender = self._gender(lemma)
            for form in self.forms.strings(lemma):
                analyses = [one for one in self._analyses(lemma, form) if is_precise(one) and _agrees(one)]
                for role in (NOUN, MODIFIER):
                    of_role = {_bare(one) for one in analyses if role in _roles(one)}
                    of = gender if role == NOUN else None
                    keys = [(role, of, form[-n:]) for n in range(1, LONGEST_ENDING + 1)]
                    for key in (*keys, (role, of, *_change(lemma, form))) if of_role else ():
                        rules[key].update(of_role)
                        rules[key][_ALL] += 1
        return rules


RELEVANT = frozenset((*AGREEING, *LASTING, "POS", "VerbForm"))
_ALL: Analysis = frozenset()  # counts forms, whatever their analyses


@cache
def _group(name: str) -> str:
    return feature_group(name)


# There are few analyses and many forms: what is said of an analysis is remembered.
@cache
def is_precise(analysis: Analysis) -> bool:
    """Whether it has one value of a group at most, and is of one role."""
    groups = [_group(name) for name in analysis if _group(name) not in ("POS", "VerbForm")]
    return len(groups) == len(set(groups)) and len(_roles(analysis)) <= 1


@cache
def _is_relevant(name: str) -> bool:
    return _group(name) in RELEVANT


def _relevant(features: Iterable[str]) -> Analysis:
    return frozenset(filter(_is_relevant, features))


@cache
def _main(analysis: Analysis) -> frozenset[str]:
    """The main groups of which an analysis has values."""
    return MAIN & {_group(name) for name in analysis}


@cache
def _bare(analysis: Analysis) -> Analysis:
    """Without its part of speech."""
    return frozenset(name for name in analysis if _group(name) in (*AGREEING, *LASTING))


def _most_specific(some: set[Analysis]) -> set[Analysis]:
    """Without those that lack a case, a number or a gender where another one has the same groups and more."""
    return {one for one in some if not any(_main(one) < _main(more) for more in some)}


@cache
def _agrees(analysis: Analysis) -> bool:
    return any(_group(name) in AGREEING for name in analysis)


@cache
def _roles(analysis: Analysis) -> frozenset[str]:
    roles = frozenset(ROLES.get(name, "other") for name in analysis if _group(name) == "POS")
    # a participle agrees as an adjective does
    return roles - {VERB} | {MODIFIER} if VERB in roles and "VerbForm:Part" in analysis else roles


def _change(lemma: str, form: str) -> tuple[str, str]:
    """What replaces what at the end, with the letter before it where one of both is nothing."""
    same = len(os.path.commonprefix((lemma, form)))
    same -= same == min(len(lemma), len(form)) > 0
    return lemma[same:], form[same:]
