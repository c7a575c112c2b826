"""Shared rows of words, and their signatures, equal those of a table with a row for every word."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.features.feature_table import (
    FeatureTable,
    WordRows,
    group_equal_rows,
    identity_rows,
    restrict_groups,
    top_words,
)
from fairseq_llrnn.features.spelling_features import shape_features, suffix_features
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.prior.base_prior import plain_prior
from fairseq_llrnn.prior.recipe import Recipe

ROWS = st.dictionaries(st.sampled_from(["A:1", "A:2", "B:1"]), st.sampled_from([1.0, 0.5, 0.0]))


@given(st.lists(ROWS))
def test_equal_rows_are_kept_once(rows: list[dict[str, float]]) -> None:
    found = WordRows.of(dict(row) for row in rows)
    assert [found.rows[i] for i in found.row_of] == rows
    assert all(a != b for i, a in enumerate(found.rows) for b in found.rows[:i])
    assert list(dict.fromkeys(found.row_of.tolist())) == list(range(len(found.rows)))  # in the order of first words


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.text("ab1A", min_size=1, max_size=5), min_size=3, max_size=30, unique=True),
    st.dictionaries(st.integers(0, 29), ROWS, max_size=20),
    st.integers(0, 3),
    st.sampled_from([None, ("A",)]),
    st.randoms(use_true_random=False),
)
def test_signatures_are_those_of_all_rows(
    names: list[str], known: dict[int, dict[str, float]], top: int, groups: tuple[str, ...] | None, random: "object"
) -> None:
    symbols = (*SPECIALS, *names)
    counts = np.array([random.randint(0, 5) for _ in symbols])  # type: ignore[attr-defined]
    words = WordList(symbols, counts)
    lexicon = Lexicon()
    for i, row in known.items():
        lexicon.add(names[i % len(names)], row)
    if not any("A:1" in lexicon.features(w) or "A:2" in lexicon.features(w) for w in names):
        lexicon.add(names[0], {"A:1": 1.0})
    options = Recipe(top_words=top, features=groups, shapes=True, suffixes=2, background="uniform")
    prior, _ = plain_prior(words, counts, lexicon, options)

    rows = [{}] * len(SPECIALS) + [
        {**lexicon.features(name), **suffixes, **shape_features(name)}
        for name, suffixes in zip(names, suffix_features(names, 2), strict=True)
    ]
    chosen = top_words(counts, ~words.specials, top, "")
    kept = restrict_groups(rows, groups, "", ("Shape", "Suffix"))
    identity = identity_rows(symbols, words.specials, chosen)
    expected = group_equal_rows(FeatureTable.from_rows([a | b for a, b in zip(identity, kept, strict=True)]))
    assert prior.output.class_of.tolist() == expected.class_of.tolist()
    assert prior.output.features.names == expected.features.names
    for name in ("offsets", "indices", "values"):
        assert np.array_equal(getattr(prior.output.features, name), getattr(expected.features, name))
