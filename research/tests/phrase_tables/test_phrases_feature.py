"""The feature of a phrase table: the best covering of a hypothesis, against all coverings."""

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.files.atomic_write import whole_file
from llrnn_research.phrase_tables.phrase_table import (
    LEAST,
    UNCOVERED,
    PhrasePair,
    PhraseTable,
    write_phrase_table,
)

Columns = tuple[float, ...]
Table = dict[tuple[tuple[str, ...], tuple[str, ...]], Columns]  # by source and target
PHRASES = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(tuple)
SCORES = st.tuples(st.sampled_from([0.0, 1e-9, 0.1, 0.5, 1.0]), st.sampled_from([0.2, 0.3, 0.9]))
TABLES = st.dictionaries(st.tuples(PHRASES, PHRASES), SCORES, min_size=1, max_size=8)


def read(path: Path, pairs: Table, *sources: str) -> PhraseTable:
    with whole_file(path) as file:
        write_phrase_table(file, [PhrasePair(s, t, scores) for (s, t), scores in pairs.items()])
    return PhraseTable.read(path, sources)


def coverings(words: Sequence[str]) -> Iterator[list[tuple[str, ...]]]:
    """All ways to cut a sentence into spans."""
    for many in range(len(words)):
        for cuts in itertools.combinations(range(1, len(words)), many):
            ends = [0, *cuts, len(words)]
            yield [tuple(words[a:b]) for a, b in itertools.pairwise(ends)]


def slow_sums(pairs: Table, source: Sequence[str], words: Sequence[str]) -> list[Columns]:
    """Sums by column of every covering, each span by every pair that can stand for it, or left uncovered."""
    inside = {tuple(source[a:b]) for a, b in itertools.combinations(range(len(source) + 1), 2)}
    found: list[Columns] = []
    for spans in coverings(words):
        choices = []
        for span in spans:
            rows = [
                tuple(max(LEAST, math.log(score)) if score else LEAST for score in scores)
                for (s, t), scores in pairs.items()
                if t == span and s in inside
            ]
            choices.append(rows + [(UNCOVERED, UNCOVERED)] * (len(span) == 1))
        found += [tuple(map(sum, zip(*rows, strict=True))) for rows in itertools.product(*choices)]
    return found


@given(TABLES, PHRASES, st.lists(st.sampled_from("abc"), min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_it_is_the_best_of_all_coverings(
    tmp_path_factory: pytest.TempPathFactory, pairs: Table,
    source: tuple[str, ...], words: list[str],
) -> None:  # fmt: skip
    table = read(tmp_path_factory.mktemp("table") / "table", pairs, " ".join(source))
    (found,) = table.scores([" ".join(source)], [" ".join(words)])
    sums = slow_sums(pairs, source, words)
    assert sum(found) == pytest.approx(max(map(sum, sums)))
    assert min(math.dist(found, row) for row in sums) < 1e-4, "it is the sum of a covering, in both columns"
    assert table.notes["words"] == len(words)


def test_by_hand(tmp_path: Path) -> None:
    half, tenth = math.log(0.5), math.log(0.1)
    table = read(
        tmp_path / "t",
        {
            (("the", "sea"), ("la", "mer")): (0.5, 0.5),
            (("the",), ("la",)): (0.1, 0.5),
            (("sea",), ("mer",)): (0.1, 0.1),
            (("a", "cat"), ("un", "chat")): (1.0, 1.0),
            (("a",), ("un",)): (0.0, 1.0),
        },
        "the sea", "a sea", "",
    )  # fmt: skip
    assert "a cat" not in table.pairs, "it stands in none of the sources"

    def scores(source: str, hypothesis: str) -> Columns:
        return table.scores([source], [hypothesis])[0]

    assert scores("the sea", "la mer") == pytest.approx((half, half))
    assert scores("the sea", "mer la") == pytest.approx((tenth + tenth, tenth + half))
    assert scores("a sea", "la mer") == pytest.approx((UNCOVERED + tenth, UNCOVERED + tenth)), "no `the` in the source"
    assert scores("a sea", "un") == (UNCOVERED, UNCOVERED), "better than a score of 0"
    assert scores("the\tsea", "mer") == (UNCOVERED, UNCOVERED), "what is behind a tab is no word of it"
    assert scores("", "la") == (UNCOVERED, UNCOVERED)
    assert scores("the sea", "") == (0.0, 0.0)
    assert table.notes == {"words": 9, "words without a phrase": 4}
