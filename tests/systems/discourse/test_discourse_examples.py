"""Examples of ORDER, NEXT and CONJUNCTION, from paragraphs that a reader can follow."""

import random

import pytest

from fairseq_llrnn.systems.discourse.data import (
    CANDIDATES,
    CONTEXT,
    ENGLISH,
    FRENCH,
    LANGUAGES,
    RELATIONS,
    Conjunctions,
    all_examples,
    conjunction_examples,
    next_examples,
    order_examples,
)

EN, FR = Conjunctions(ENGLISH), Conjunctions(FRENCH)


def relation(conjunctions: Conjunctions, line: str) -> tuple[str | None, str]:
    found, rest = conjunctions.split(line.split())
    return None if found is None else RELATIONS[found], " ".join(rest)


@pytest.mark.parametrize(
    ("conjunctions", "line", "expected"),
    [
        (EN, "However , the wine was sub par .", ("contrast", "the wine was sub par .")),
        (EN, "That is , he went .", ("specific", "he went .")),
        (EN, "In fact , he went .", ("strengthen", "he went .")),
        (EN, '" Still , I like it . "', ("return", '" I like it . "')),
        (EN, "However he went .", (None, "However he went .")),
        (EN, "In , fact , he went .", (None, "In , fact , he went .")),
        (EN, "Now", (None, "Now")),
        (EN, "", (None, "")),
        (FR, "— D' ailleurs , il partit .", ("addition", "— il partit .")),
        (FR, "C' est pourquoi , il partit .", ("result", "il partit .")),
        (FR, "En effet , oui .", ("strengthen", "oui .")),
        (FR, "However , non .", (None, "However , non .")),
    ],
)
def test_a_phrase_with_its_comma_is_taken_off(
    conjunctions: Conjunctions, line: str, expected: tuple[str | None, str]
) -> None:
    assert relation(conjunctions, line) == expected


def test_the_table_of_the_thesis_and_its_french_counterpart() -> None:
    sizes = {name: len(phrases.split(";")) for name, phrases in ENGLISH.items()}
    assert sizes == {"addition": 8, "contrast": 10, "time": 5, "result": 5, "specific": 5, "compare": 2,
                     "strengthen": 2, "return": 1, "recognize": 2}  # fmt: skip
    for phrases in LANGUAGES.values():
        assert tuple(phrases) == RELATIONS, "the classes are the same"
        listed = [phrase.strip() for of_relation in phrases.values() for phrase in of_relation.split(";")]
        assert len(listed) == len(set(listed)), "no phrase tells two relations"


def test_the_example_of_the_thesis() -> None:
    paragraph = [line.split() for line in ("Moreover , it was quite a good meal .", "However , the wine was sub par .")]
    (example,) = conjunction_examples(paragraph, EN)
    left, right = (" ".join(sentence) for sentence in example.sentences)
    assert (left, right) == ("it was quite a good meal .", "the wine was sub par .")
    assert RELATIONS[example.answer] == "contrast"
    nothing_left = [["Now", ","], ["Then", ",", "he", "went"]]
    assert not list(conjunction_examples(nothing_left, EN))


def numbered(many: int) -> list[list[str]]:
    return [[str(i)] for i in range(many)]


def test_order_is_of_neighbours_and_half_of_them_are_flipped() -> None:
    examples = list(order_examples(numbered(400), random.Random(1)))
    assert len(examples) == 399
    for i, example in enumerate(examples):
        first, second = (int(sentence[0]) for sentence in example.sentences)
        assert (first, second) == ((i + 1, i) if example.answer else (i, i + 1))
    assert 160 < sum(example.answer for example in examples) < 240
    assert not list(order_examples([["Yes"], ["Yes"]], random.Random(1))), "what is said twice has no order"


@pytest.mark.parametrize(
    ("sentences", "every", "many"),
    [(7, 8, 0), (8, 8, 1), (15, 8, 1), (16, 8, 2), (30, 8, 3), (7, 1, 0), (8, 1, 1), (15, 1, 8), (15, 3, 3)],
)
def test_next_has_three_sentences_and_five_candidates_from_what_follows(sentences: int, every: int, many: int) -> None:
    examples = list(next_examples(numbered(sentences), every, random.Random(1)))
    assert len(examples) == many
    for i, example in enumerate(examples):
        numbers = [int(sentence[0]) for sentence in example.sentences]
        context, candidates = numbers[:CONTEXT], numbers[CONTEXT:]
        begin = every * i
        assert context == [begin, begin + 1, begin + 2]
        assert len(set(candidates)) == CANDIDATES and min(candidates) == candidates[example.answer] == begin + 3
        assert max(candidates) < sentences


def test_the_same_seed_gives_the_same_examples() -> None:
    paragraph = [["However", ",", str(i)] for i in range(20)]
    one, two, other = (list(all_examples(paragraph, EN, 8, random.Random(seed))) for seed in (1, 1, 2))
    assert one == two != other
    assert {example.objective for example in one} == {"order", "next", "conjunction"}
