"""Which forms of several words agree: the forms that a phrase may have.

An *analysis* of a form is a set of features, such as {Case:Gen, Number:Sing, Gender:Masc, Animacy:Anim}; a form may
have several. Words agree if each has an analysis such that, in every group of AGREEING, those that have values of it
share one. What a word has no value of agrees with all. (One analysis may have several values of a group, where a source
does not tell its analyses apart: any of them.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nsmallest

from fairseq_llrnn.lexicon.features import feature_group

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


def meet(one: Values, other: Values) -> Values | None:
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
                both = meet(before, values)
                if both is not None:
                    more = {(*c, form): s + weight.get(form, 0.0) for c, s in choices.items() for form in its_forms}
                    going.setdefault(both, {}).update(more)
        reached = {values: dict(_best(choices)) for values, choices in going.items()}
    counts = {choice: sum_ for choices in reached.values() for choice, sum_ in choices.items()}
    return [choice for choice, _ in _best(counts)]


def _best(choices: Mapping[tuple[str, ...], float]) -> list[tuple[tuple[str, ...], float]]:
    """Those of the largest sums, in order; of equal sums the first by the alphabet."""
    return nsmallest(MOST_CHOICES, choices.items(), key=lambda one: (-one[1], one[0]))
