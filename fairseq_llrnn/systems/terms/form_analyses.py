"""Morphological analyses of forms, and agreement between the words of a phrase.

An *analysis* of a form is a set of features, such as {Case:Gen, Number:Sing, Gender:Masc, Animacy:Anim}. A form may
have several. Words agree if each has an analysis such that all analyses share a value in every group of AGREEING. A
word without a value of a group agrees with any word in that group. An ambiguous analysis has several values of a group,
any of which may be the right one.

`FormAnalyses` keeps analyses apart because each agrees with different words. It takes them from three places:

* the source of forms; a treebank lists only the analyses that occur in its text, and a dictionary of lemmas lists none;
* the word's features in the prior, if the source has no analysis and the features are unambiguous;
* rules. A rule is a change from lemma to form (`ý -> ého`), for adjectives or for nouns of one gender, with the
  analyses observed for the forms that it derives. A form without rule and analysis gets the analyses that most forms
  with the same last letters have.

The role of an analysis is noun, modifier (adjective, determiner, numeral, participle), verb or another part of speech.
An analysis without a part of speech fits every role.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from heapq import nsmallest

from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.lexicon.languages.simplemma_lemmas import GROUP as LEMMA
from fairseq_llrnn.lexicon.merge_sources import WordForms

AGREEING = ("Case", "Number", "Gender", "Animacy", "Definite")
LASTING = ("Degree", "Polarity")  # forms of a phrase keep these values: no comparatives, no negations
MOST_CHOICES = 512  # at most, in the result of `agreeing`

Analysis = frozenset[str]
Values = tuple[frozenset[str], ...]  # the possible values of each group of AGREEING; empty: any
ANY: Values = (frozenset(),) * len(AGREEING)


def values_of(analysis: Iterable[str], groups: Sequence[str] = AGREEING) -> Values:
    """Return the values that an analysis has in each of some groups."""
    values: dict[str, set[str]] = {group: set() for group in groups}
    for name in analysis:
        if (group := feature_group(name)) in values:
            values[group].add(name)
    return tuple(map(frozenset, values.values()))


def unify(first: Values, second: Values) -> Values | None:
    """Return the common values of two analyses, or None if they contradict each other."""
    unified = []
    for a, b in zip(first, second, strict=True):
        common = a & b if a and b else a | b
        if (a or b) and not common:
            return None
        unified.append(common)
    return tuple(unified)


def agreeing(
    words: Sequence[Mapping[str, Collection[Values]]], weights: Sequence[Mapping[str, float]] | None = None
) -> list[tuple[str, ...]]:
    """Return agreeing choices of one form per word: the MOST_CHOICES with the largest sums of weights, in order.

    The search keeps the best prefixes of each set of values. Prefixes with equal values have the same continuations, so
    a dropped prefix cannot begin a better choice (except for rounding of the sums).

    Args:
        words: for each word its forms, each with the values of at least one analysis.
        weights: of the forms (default 0).
    """
    weights = weights or [{} for _ in words]
    prefixes: dict[Values, dict[tuple[str, ...], float]] = {ANY: {(): 0.0}}
    for forms, weight in zip(words, weights, strict=True):
        by_values = defaultdict(list)
        for form, all_values in forms.items():
            for values in set(all_values):
                by_values[values].append(form)
        extended: dict[Values, dict[tuple[str, ...], float]] = {}
        for before, choices in prefixes.items():
            for values, its_forms in by_values.items():
                unified = unify(before, values)
                if unified is not None:
                    longer = {(*c, form): s + weight.get(form, 0.0) for c, s in choices.items() for form in its_forms}
                    extended.setdefault(unified, {}).update(longer)
        prefixes = {values: dict(_best(choices)) for values, choices in extended.items()}
    counts = {choice: sum_ for choices in prefixes.values() for choice, sum_ in choices.items()}
    return [choice for choice, _ in _best(counts)]


def _best(choices: Mapping[tuple[str, ...], float]) -> list[tuple[tuple[str, ...], float]]:
    """Return the choices with the largest sums, in order, ties alphabetically."""
    return nsmallest(MOST_CHOICES, choices.items(), key=lambda item: (-item[1], item[0]))


NOUN, MODIFIER, VERB = "noun", "modifier", "verb"
ROLES = {
    **dict.fromkeys(("POS:NOUN", "POS:PROPN"), NOUN),
    **dict.fromkeys(("POS:ADJ", "POS:DET", "POS:NUM"), MODIFIER),
    **dict.fromkeys(("POS:VERB", "POS:AUX"), VERB),
}
MAIN = frozenset(("Case", "Number", "Gender"))
GENDERS = ("Gender", "Animacy")
LEAST_SEEN, LEAST_COUNT, LEAST_SHARE = 5, 3, 0.02  # a rule's forms; number and share of them with an analysis
LEAST_OF_ENDING, LEAST_SHARE_OF_ENDING = 20, 0.2  # the same for last letters, which are less reliable
LONGEST_ENDING = 2
LEAST_SHARE_OF_ROLE = 0.2  # of the analyses of a lemma's forms
CERTAIN = 0.999  # least value of a feature that is listed, or guessed by all guessers

Features = Mapping[str, float]


def forms_of_features(features: Mapping[str, Features]) -> WordForms:
    """Return the forms of lemmas according to the words' features `Lemma:…`."""
    forms = WordForms()
    for word, names in features.items():
        for name in names:
            if feature_group(name) == LEMMA:
                forms.add(name.partition(":")[2], word, names)
    return forms


class FormAnalyses:
    """Analyses of forms by lemma, form and role."""

    def __init__(self, forms: WordForms, features: Callable[[], Mapping[str, Features]] = dict) -> None:
        """features: returns the features of the prior's words (groups of RELEVANT), called once at first need."""
        self.forms, self._features = forms, features
        self._memo: dict[tuple[str, str], list[Analysis]] = {}

    @cached_property
    def features(self) -> Mapping[str, Features]:
        """Return the features of the prior's words."""
        return self._features()

    @cached_property
    def lemmas_of(self) -> Mapping[str, list[str]]:
        """Return the lemmas of each form."""
        lemmas: dict[str, list[str]] = {}
        for lemma in self.forms:
            for form in self.forms.strings(lemma):
                lemmas.setdefault(form, []).append(lemma)
        return lemmas

    def roles(self, lemma: str) -> set[str]:
        """Return the roles of a lemma's forms, empty if no part of speech is known."""
        all_analyses = [analysis for form in self.forms.strings(lemma) for analysis in self._analyses(lemma, form)]
        counted = Counter(role for analysis in all_analyses if is_precise(analysis) for role in _roles(analysis))
        often = {role for role, count in counted.items() if count >= LEAST_SHARE_OF_ROLE * counted.total()}
        return often or {role for analysis in all_analyses for role in _roles(analysis)}

    def of(self, lemma: str, form: str, role: str) -> set[Analysis]:
        """Return the analyses of a form in a role, empty if none is known."""
        all_analyses = self._analyses(lemma, form)
        of_role = [analysis for analysis in all_analyses if role in (_roles(analysis) or (role,))]
        analyses = {_bare(analysis) for analysis in of_role if is_precise(analysis) and _agrees(analysis)}
        if role != VERB and role in (self.roles(lemma) or (role,)):
            gender = self._gender(lemma) if role == NOUN else None
            lasting = self._lasting(form, all_analyses)
            ruled = self._ruled(role, gender, lemma, form, bool(analyses))
            analyses |= {analysis for analysis in ruled if unify(values_of(analysis, LASTING), lasting) is not None}
        return _most_specific({analysis for analysis in analyses or map(_bare, of_role) if _agrees(analysis)})

    def _analyses(self, lemma: str, form: str) -> list[Analysis]:
        """Return analyses with their parts of speech, from the source of forms or, if more precise, from the prior."""
        key = lemma, form
        if key not in self._memo:
            self._memo[key] = self._read(lemma, form)
        return self._memo[key]

    def _read(self, lemma: str, form: str) -> list[Analysis]:
        analyses = [analysis for analysis in map(_relevant, self.forms.analyses(lemma, form)) if analysis]
        if any(is_precise(analysis) and _agrees(analysis) for analysis in analyses):
            return analyses
        features = self.features.get(form, {})
        possible = _relevant(features)
        certain = frozenset([name for name in possible if features[name] >= CERTAIN])
        if is_precise(certain) and _agrees(certain) and _main(possible) <= _main(certain):
            return [certain]
        return [analysis for analysis in (*analyses, possible) if analysis]

    def _lasting(self, form: str, analyses: Iterable[Analysis]) -> Values:
        """Return the degree and polarity of a form, and of guessed values only the likely ones."""
        best: dict[str, float] = {}
        features = {name: self.features.get(form, {}).get(name, 1.0) for analysis in analyses for name in analysis}
        for name, value in features.items():
            best[_group(name)] = max(value, best.get(_group(name), 0.0))
        return values_of((name for name, value in features.items() if 2 * value > best[_group(name)]), LASTING)

    def _gender(self, lemma: str) -> Analysis:
        """Return the gender and animacy of a noun: those of its lemma, or of most of its forms."""
        of_lemma = {name for analysis in self._analyses(lemma, lemma) for name in analysis if _group(name) in GENDERS}
        if len(of_lemma) == len(set(map(_group, of_lemma))) > 0:
            return frozenset(of_lemma)
        counted = Counter(
            frozenset(name for name in analysis if _group(name) in GENDERS)
            for form in self.forms.strings(lemma)
            for analysis in self._analyses(lemma, form)
            if is_precise(analysis) and NOUN in _roles(analysis)
        )
        return max(counted, key=lambda analysis: (counted[analysis], sorted(analysis)), default=frozenset())

    def _ruled(self, role: str, gender: Analysis | None, lemma: str, form: str, has_analyses: bool) -> set[Analysis]:
        ruled = self._frequent_analyses((role, gender, *_change(lemma, form)), LEAST_SEEN, LEAST_SHARE)
        for length in range(LONGEST_ENDING, 0, -1):
            if not ruled and not has_analyses and len(form) > length:
                ruled = self._frequent_analyses((role, gender, form[-length:]), LEAST_OF_ENDING, LEAST_SHARE_OF_ENDING)
        return ruled

    def _frequent_analyses(self, key: Hashable, least: int, share: float) -> set[Analysis]:
        counted = self._rules.get(key, Counter[Analysis]())
        if counted[_ALL] < least:
            return set()
        enough = max(LEAST_COUNT, share * counted[_ALL])
        return {analysis for analysis, count in counted.items() if analysis and count >= enough}

    @cached_property
    def _rules(self) -> Mapping[Hashable, Counter[Analysis]]:
        """Count the analyses of forms, by change from the lemma and by last letters."""
        rules: dict[Hashable, Counter[Analysis]] = defaultdict(Counter)
        for lemma in self.forms:
            gender = self._gender(lemma)
            for form in self.forms.strings(lemma):
                analyses = [
                    analysis for analysis in self._analyses(lemma, form) if is_precise(analysis) and _agrees(analysis)
                ]
                for role in (NOUN, MODIFIER):
                    of_role = {_bare(analysis) for analysis in analyses if role in _roles(analysis)}
                    gender_of_role = gender if role == NOUN else None
                    keys = [(role, gender_of_role, form[-n:]) for n in range(1, LONGEST_ENDING + 1)]
                    for key in (*keys, (role, gender_of_role, *_change(lemma, form))) if of_role else ():
                        rules[key].update(of_role)
                        rules[key][_ALL] += 1
        return rules


RELEVANT = frozenset((*AGREEING, *LASTING, "POS", "VerbForm"))
_ALL: Analysis = frozenset()  # counts forms, whatever their analyses


_group = cache(feature_group)


# There are few analyses and many forms: functions of an analysis are cached.
@cache
def is_precise(analysis: Analysis) -> bool:
    """Return whether an analysis has at most one value of each group, and at most one role."""
    groups = [_group(name) for name in analysis if _group(name) not in ("POS", "VerbForm")]
    return len(groups) == len(set(groups)) and len(_roles(analysis)) <= 1


@cache
def _is_relevant(name: str) -> bool:
    return _group(name) in RELEVANT


def _relevant(features: Iterable[str]) -> Analysis:
    return frozenset(filter(_is_relevant, features))


@cache
def _main(analysis: Analysis) -> frozenset[str]:
    """Return the groups of MAIN in which an analysis has a value."""
    return MAIN & {_group(name) for name in analysis}


@cache
def _bare(analysis: Analysis) -> Analysis:
    """Return an analysis without its part of speech."""
    return frozenset(name for name in analysis if _group(name) in (*AGREEING, *LASTING))


def _most_specific(analyses: set[Analysis]) -> set[Analysis]:
    """Drop each analysis whose groups of MAIN are a proper subset of those of another one."""
    return {analysis for analysis in analyses if not any(_main(analysis) < _main(other) for other in analyses)}


@cache
def _agrees(analysis: Analysis) -> bool:
    return any(_group(name) in AGREEING for name in analysis)


@cache
def _roles(analysis: Analysis) -> frozenset[str]:
    roles = frozenset(ROLES.get(name, "other") for name in analysis if _group(name) == "POS")
    # a participle agrees as an adjective does
    return roles - {VERB} | {MODIFIER} if VERB in roles and "VerbForm:Part" in analysis else roles


def _change(lemma: str, form: str) -> tuple[str, str]:
    """Return the endings of lemma and form that differ, with the letter before them if one is empty."""
    same = len(os.path.commonprefix((lemma, form)))
    same -= same == min(len(lemma), len(form)) > 0
    return lemma[same:], form[same:]
