"""Accuracy on pairs: credit, balance against frequency, intervals, groups."""

import numpy as np
import pytest
from example_modules import load
from french_treebank import FOLDER

agreement, pairs = load(FOLDER, "agreement", "pairs")


def pair(sentence: int = 0, **changes: object) -> object:
    facts: dict[str, object] = {
        "text": "test1", "sentence": sentence, "position": 6, "prefix": "les lettres de le roi sont",
        "right": "perdues", "wrong": "perdus", "kind": "Gender", "construction": "predicate",
        "controller": "lettres",
        "distance": 4, "attractors": 0, "rank_right": 3000, "rank_wrong": 4000,
        "train_right": 2, "train_wrong": 1, "all_right": 3, "all_wrong": 4,
    }  # fmt: skip
    return pairs.Pair(**(facts | changes))


def test_a_tie_counts_one_half() -> None:
    assert agreement.credits([0.3, -2.0, 0.0]).tolist() == [1.0, 0.0, 0.5]


def test_frequency_alone_is_worth_one_half_when_balanced() -> None:
    some = [pair(number, train_right=2 if number < 8 else 0) for number in range(10)]
    unigram = agreement.credits(agreement.count_log_ratios(some, "honest"))
    assert agreement.accuracy(some, unigram).value == pytest.approx(0.8)
    assert agreement.balanced(some, unigram, "honest").value == pytest.approx(0.5)
    assert agreement.against(some, unigram, "honest").value == 0.0
    assert agreement.against(some, unigram, "honest").pairs == 2


def test_the_interval_draws_sentences_not_pairs() -> None:
    values = np.array([1.0, 0.0] * 50)
    apart = agreement.accuracy([pair(number) for number in range(100)], values)
    # Ten pairs of a sentence that are all right or all wrong tell less than ten sentences.
    together = agreement.accuracy([pair(number % 10) for number in range(100)], values)
    assert apart.value == together.value == 0.5
    assert apart.low == pytest.approx(0.40, abs=0.03) and apart.high == pytest.approx(0.60, abs=0.03)
    assert together.high - together.low > 2 * (apart.high - apart.low)
    assert str(apart).startswith("50.0 [4")


def test_every_pair_is_in_one_group_by_distance() -> None:
    by_distance = [group for group in agreement.groups(2500) if group.kind is None and group.attractor is None]
    for distance in (0, 1, 2, 3, 4, 40):
        for rank in (10, 5000):
            assert sum(pair(distance=distance, rank_right=rank) in group for group in by_distance) == 1


def test_the_table_has_a_row_per_group_and_the_counts_beside() -> None:
    some = [pair(0), pair(1, train_right=0)]
    rows = agreement.table(some, [1.0, 1.0], "honest", 2500).splitlines()
    assert len(rows) == 1 + len(agreement.groups(2500))
    headline = next(row for row in rows if row.startswith("distance 4 and more, outside the top 2500 "))
    assert headline.split()[-1] == "50.0" and "100.0 [100.0, 100.0]" in headline
