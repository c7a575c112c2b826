"""Links of both directions against loops, and their combination."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.alignment import aligners
from fairseq_llrnn.alignment.aligners import LONGEST, ibm1_links
from fairseq_llrnn.alignment.bitext import Bitext, BitextSide, Links, read_text_bitext
from fairseq_llrnn.alignment.word_links import directed_links, grow_diag_final_and, symmetrised
from fairseq_llrnn.errors import DataError

Grid = set[tuple[int, int]]
Pair = tuple[list[int], list[int], Grid]  # source words, target words, links


def sentences(rows: list[list[int]]) -> BitextSide:
    return BitextSide(np.array(list(itertools.chain(*rows)), dtype=np.int64), np.cumsum([0, *map(len, rows)]))


def as_arrays(pairs: list[Pair]) -> tuple[Bitext, Links]:
    bitext = Bitext(sentences([s for s, _, _ in pairs]), sentences([t for _, t, _ in pairs]))
    links = sorted(
        (int(bitext.source.offsets[n]) + i, int(bitext.target.offsets[n]) + j)
        for n, (_, _, grid) in enumerate(pairs)
        for i, j in grid
    )
    both = np.array(links, dtype=np.int64).reshape(-1, 2)
    return bitext, Links(both[:, 0], both[:, 1])


WORDS = st.lists(st.integers(0, 3), min_size=1, max_size=5)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6), st.sampled_from([1, 7, 10**6]))
@settings(max_examples=30, deadline=None)
def test_links_of_model_1_are_the_most_probable_ones(pairs: list[tuple[list[int], list[int]]], at_once: int) -> None:
    bitext = Bitext(sentences([s for s, _ in pairs]), sentences([t for _, t in pairs]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aligners, "PAIRS_AT_ONCE", at_once)
        keys, _, counts = aligners._estimate(bitext, 4, 4, aligners.ITERATIONS, 1)
        found = ibm1_links(bitext, 4, 4)
    totals = np.bincount(keys // 4, counts)
    probability = dict(zip(keys.tolist(), (counts / totals[keys // 4]).tolist(), strict=True))
    expected = []
    for n, (source, target) in enumerate(pairs):
        for j, word in enumerate(target):
            candidates = [
                (-probability[s * 4 + word], abs((i + 0.5) / len(source) - (j + 0.5) / len(target)), i)
                for i, s in enumerate(source)
            ]
            p, _, i = min(candidates)
            if -p >= probability[4 * 4 + word]:
                expected.append((int(bitext.source.offsets[n]) + i, int(bitext.target.offsets[n]) + j))
    assert list(zip(found.source.tolist(), found.target.tolist(), strict=True)) == expected


def test_both_directions_of_a_plain_text() -> None:
    # the house / the book / a book: the example of every course; then a pair that is not aligned
    rows = [[0, 1], [0, 2], [3, 2], [3, 1], []]
    bitext = Bitext(sentences(rows), sentences([*rows[:-1], [1]]))
    for aligner in ("ibm1",):
        forward, backward = directed_links(bitext, 4, 4, aligner)
        for links in (forward, backward):
            assert links.source.tolist() == links.target.tolist() == list(range(8))
        assert directed_links(bitext, 4, 4, aligner, ("fwd",))[0].source.tolist() == list(range(8))
    nothing = Bitext(sentences([[]]), sentences([[1] * (LONGEST + 1)]))
    assert [len(links.source) for links in directed_links(nothing, 4, 4, "ibm1")] == [0, 0]


GRIDS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


def slow_grow_diag_final_and(forward: Grid, backward: Grid) -> Grid:
    """Matrices and loops over all cells, again and again."""
    union = np.zeros((4, 4), dtype=bool)
    links = np.zeros((4, 4), dtype=bool)
    for grid in (forward, backward):
        for cell in grid:
            union[cell] = True
    for cell in forward & backward:
        links[cell] = True
    around = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]
    before = -1
    while before != links.sum():
        before = links.sum()
        for j in range(4):
            for i in range(4):
                for di, dj in around if links[i, j] else []:
                    a, b = i + di, j + dj
                    if 0 <= a < 4 and 0 <= b < 4 and union[a, b] and not (links[a].any() and links[:, b].any()):
                        links[a, b] = True
    for grid in (forward, backward):
        for j in range(4):
            for i in range(4):
                if (i, j) in grid and not links[i].any() and not links[:, j].any():
                    links[i, j] = True
    return {(int(i), int(j)) for i, j in np.argwhere(links)}


@given(GRIDS, GRIDS)
@settings(max_examples=50, deadline=None)
def test_growing_is_what_the_loops_do_and_lies_between(forward: Grid, backward: Grid) -> None:
    found = grow_diag_final_and(forward, backward)
    assert found == slow_grow_diag_final_and(forward, backward)
    assert forward & backward <= found <= forward | backward


@given(st.lists(st.tuples(GRIDS, GRIDS), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_text_is_symmetrised_sentence_by_sentence(grids: list[tuple[Grid, Grid]]) -> None:
    words = [0, 0, 0, 0]
    bitext, forward = as_arrays([(words, words, one) for one, _ in grids])
    _, backward = as_arrays([(words, words, other) for _, other in grids])
    found = symmetrised(forward, backward, bitext)
    _, expected = as_arrays([(words, words, grow_diag_final_and(one, other)) for one, other in grids])
    assert found.source.tolist() == expected.source.tolist()
    assert found.target.tolist() == expected.target.tolist()


def test_a_bitext_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x y\n\nx\n", encoding="utf-8")
    (tmp_path / "b").write_text("1\n2 1\n3\n", encoding="utf-8")
    read = read_text_bitext(tmp_path / "a", tmp_path / "b")
    assert (read.source_words, read.target_words) == (("x", "y"), ("1", "2", "3"))
    assert read.bitext.source.tokens.tolist() == [0, 1, 0] and read.bitext.source.offsets.tolist() == [0, 2, 2, 3]
    assert read.bitext.target.tokens.tolist() == [0, 1, 0, 2]
    (tmp_path / "b").write_text("1\n", encoding="utf-8")
    with pytest.raises(DataError, match="b: expected as many lines as in .*a, 3, found 1; give a text and its trans"):
        read_text_bitext(tmp_path / "a", tmp_path / "b")
