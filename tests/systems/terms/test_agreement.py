"""Which forms agree: beside all products of forms and analyses, and by laws."""

import random
from itertools import permutations, product

import pytest

from fairseq_llrnn.systems.terms import form_analyses
from fairseq_llrnn.systems.terms.form_analyses import AGREEING, Analysis, agreeing, values_of

VALUES = {
    "Case": ("Nom", "Gen", "Acc"), "Number": ("Sing", "Plur"), "Gender": ("Masc", "Fem"), "Animacy": ("Anim", "Inan"),
}  # fmt: skip
Phrase = list[dict[str, list[Analysis]]]


def drawn(rng: random.Random) -> Phrase:
    """Up to three words of up to four forms with up to three analyses, some of them with several values of a group."""

    def analysis() -> Analysis:
        chosen = {group: rng.sample(some, rng.randint(0, len(some) // 2 + 1)) for group, some in VALUES.items()}
        return frozenset(f"{group}:{value}" for group, some in chosen.items() for value in some[:2])

    return [
        {f"{i}{form}": [analysis() for _ in range(rng.randint(1, 3))] for form in range(rng.randint(1, 4))}
        for i in range(rng.randint(1, 3))
    ]


def fast(phrase: Phrase) -> list[tuple[str, ...]]:
    return agreeing([{form: [values_of(one) for one in some] for form, some in forms.items()} for forms in phrase])


def slow(phrase: Phrase) -> set[tuple[str, ...]]:
    """All products, by the definition."""
    return {
        choice
        for choice in product(*phrase)
        if any(all_agree(analyses) for analyses in product(*(phrase[i][form] for i, form in enumerate(choice))))
    }


def all_agree(analyses: tuple[Analysis, ...]) -> bool:
    for group in AGREEING:
        said = [{name for name in one if name.startswith(f"{group}:")} for one in analyses]
        with_values = [some for some in said if some]
        if with_values and not set.intersection(*with_values):
            return False
    return True


@pytest.mark.parametrize("seed", range(60))
def test_what_agrees_is_what_the_definition_says_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    phrase = drawn(rng)
    found = fast(phrase)
    assert len(found) == len(set(found)) and set(found) == slow(phrase)
    for order in permutations(range(len(phrase))):
        moved = {
            tuple(choice[order.index(i)] for i in range(len(order))) for choice in fast([phrase[i] for i in order])
        }
        assert moved == set(found)
    mixed = [dict(rng.sample(list(forms.items()), len(forms))) for forms in phrase]
    assert fast(mixed) == found


@pytest.mark.parametrize("most", [1, 3, 8])
@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_all_choices_are_found_in_order(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where few are kept from word to word; weights have few values, so that many sums are equal."""
    rng = random.Random(seed)
    phrase = drawn(rng)
    weights = [{form: float(rng.randint(-2, 0)) for form in forms} for forms in phrase]
    best = sorted(slow(phrase), key=lambda choice: (-sum(weights[i][form] for i, form in enumerate(choice)), choice))
    monkeypatch.setattr(form_analyses, "MOST_CHOICES", most)
    values = [{form: [values_of(one) for one in some] for form, some in forms.items()} for forms in phrase]
    assert agreeing(values, weights) == best[:most]


def test_a_phrase_of_many_words_has_the_forms_that_its_words_have_by_themselves() -> None:
    """Words that agree with all: the best forms of the phrase are those of 16 words, one or two of them changed."""
    words = [{f"{i}a": [values_of([])], f"{i}b": [values_of([])]} for i in range(16)]
    weights = [{f"{i}a": 0.0, f"{i}b": -1.0 - i / 1024} for i in range(16)]
    found = agreeing(words, weights)
    changed = [[i for i, form in enumerate(choice) if form.endswith("b")] for choice in found[: 1 + 16 + 120]]
    assert len(found) == form_analyses.MOST_CHOICES and changed[:17] == [[], *([i] for i in range(16))]
    assert all(len(some) == 2 for some in changed[17:])


def test_analyses_are_kept_apart() -> None:
    """The union of both analyses would agree in number and in gender."""
    singular, plural = frozenset({"Number:Sing", "Gender:Fem"}), frozenset({"Number:Plur", "Gender:Masc"})
    assert fast([{"a": [singular, plural]}, {"b": [frozenset({"Number:Sing", "Gender:Masc"})]}]) == []


def test_frequent_choices_come_first_and_stay_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {form: [values_of(["Case:Nom"])] for form in "abc"}
    weights = [{"a": -1.0, "b": -2.0, "c": -3.0}, {"a": -5.0, "b": 0.0, "c": -9.0}]
    assert agreeing([some, some], weights)[:2] == [("a", "b"), ("b", "b")]
    monkeypatch.setattr(form_analyses, "MOST_CHOICES", 2)
    assert agreeing([some, some], weights) == [("a", "b"), ("b", "b")]
