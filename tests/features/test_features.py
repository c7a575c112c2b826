"""Feature tables, indicators, groups, signatures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.feature_table import (
    NOT_TOP,
    FeatureTable,
    group_equal_rows,
    identity_rows,
    restrict_groups,
    top_words,
)

NAMES = st.sampled_from(["POS:NOUN", "Gender:Fem", "Number:Plur", "Shape:SmallNumber", "NOTTOP"])
ROWS = st.lists(st.dictionaries(NAMES, st.sampled_from([0.0, 0.25, 0.63, 1.0]), max_size=4), max_size=30)


@given(ROWS)
def test_table_holds_the_rows(rows: list[dict[str, float]]) -> None:
    table = FeatureTable.from_rows(rows)
    assert table.names == tuple(sorted({n for row in rows for n in row}))
    dense = table.dense()
    for r, row in enumerate(rows):
        wanted = {n: np.float32(v) for n, v in row.items() if v != 0.0}
        assert table.row(r) == pytest.approx(wanted)
        assert [float(x) for x in dense[r]] == pytest.approx([wanted.get(n, 0.0) for n in table.names])


@given(ROWS, st.sets(st.sampled_from(["POS", "Gender", "Number"])))
def test_a_table_of_some_groups(rows: list[dict[str, float]], groups: set[str]) -> None:
    table = FeatureTable.from_rows(rows)
    chosen = table.of_groups(groups)
    assert chosen.names == table.names and chosen.num_rows == len(rows)
    for r in range(len(rows)):
        assert chosen.row(r) == {n: v for n, v in table.row(r).items() if n.partition(":")[0] in groups}


@given(ROWS)
def test_equal_rows_and_only_those_share_a_signature(rows: list[dict[str, float]]) -> None:
    table = FeatureTable.from_rows(rows)
    signatures = group_equal_rows(table)
    assert signatures.num_words == len(rows)
    for i in range(len(rows)):
        assert signatures.features.row(signatures.class_of[i]) == table.row(i)
        for j in range(i):
            assert (table.row(i) == table.row(j)) == (signatures.class_of[i] == signatures.class_of[j])
    firsts = [int(signatures.members(s)[0]) for s in range(signatures.num_classes)]
    assert firsts == sorted(firsts), "classes are numbered by their first word"


@given(ROWS, st.randoms())
def test_order_of_names_within_a_row_does_not_matter(rows: list[dict[str, float]], random: object) -> None:
    turned = [dict(reversed(list(row.items()))) for row in rows]
    one, other = FeatureTable.from_rows(rows), FeatureTable.from_rows(turned)
    assert one.indices.tobytes() == other.indices.tobytes() and one.values.tobytes() == other.values.tobytes()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_must_be_finite(value: float) -> None:
    with pytest.raises(DataError, match=r"feature 'Shape:X' of row 1: expected a finite real value, found (nan|inf)"):
        FeatureTable.from_rows([{}, {"Shape:X": value}])


def test_top_words_are_the_most_frequent_ordinary_ones() -> None:
    counts = np.array([99, 5, 7, 7, 1])
    ordinary = np.array([False, True, True, True, True])
    assert top_words(counts, ordinary, 3, "--top-words").tolist() == [2, 3, 1]
    assert top_words(counts, ordinary, 0, "--top-words").tolist() == []


@pytest.mark.parametrize("how_many", [-1, 5])
def test_more_top_words_than_words(how_many: int) -> None:
    with pytest.raises(OptionError, match=rf"--top-words {how_many}: expected a number between 0 and .* 4 words"):
        top_words(np.zeros(5), np.array([False, True, True, True, True]), how_many, "--top-words")


def test_identity() -> None:
    specials = np.array([True, False, False])
    rows = identity_rows(["</s>", "elle", "rare"], specials, np.array([1]))
    assert rows == [{"SPECIAL:</s>": 1.0}, {"TOPFORM:elle": 1.0}, {NOT_TOP: 1.0}]


def test_groups() -> None:
    rows = [{"POS:NOUN": 1.0, "Gender:Fem": 1.0}, {"Number:Plur": 1.0}]
    assert restrict_groups(rows, None, "--features") == rows
    assert restrict_groups(rows, ("Gender",), "--features") == [{"Gender:Fem": 1.0}, {}]
    with pytest.raises(OptionError, match=r"--features: unknown feature group 'Gendre'.*POS; did you mean 'Gender'"):
        restrict_groups(rows, ("Gendre",), "--features")
    with pytest.raises(OptionError, match=r"unknown feature group 'Pos'.*; did you mean 'POS'\?"):
        restrict_groups([{"POS:NOUN": 1.0, "Poss:Yes": 1.0}], ("Pos",), "--features")
    with pytest.raises(OptionError, match="unknown feature group 'xyz'"):
        restrict_groups(rows, ("xyz",), "--features")
    with pytest.raises(OptionError, match="--features POS: expected a source of features, found none; add --conllu or"):
        restrict_groups([{}], ("POS",), "--features")
