"""Phrase pairs: spans against all quadruples, counts and scores against loops, the table."""

import gzip
import itertools
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.alignment.bitext import Bitext, BitextSide, Links
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import whole_file
from llrnn_research.phrase_tables.extraction import phrase_pairs
from llrnn_research.phrase_tables.phrase_table import PhrasePair, read_phrase_table, write_phrase_table

Grid = set[tuple[int, int]]
Pair = tuple[list[int], list[int], Grid]  # source words, target words, links
Found = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]  # the same of a phrase pair


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


@st.composite
def aligned_pairs(draw: st.DrawFn) -> list[Pair]:
    pairs: list[Pair] = []
    for _ in range(draw(st.integers(1, 4))):
        source, target = (draw(st.lists(st.integers(0, 3), min_size=1, max_size=6)) for _ in range(2))
        cells = st.tuples(st.integers(0, len(source) - 1), st.integers(0, len(target) - 1))
        pairs.append((source, target, draw(st.sets(cells, max_size=7))))
    return pairs


# ---- phrase pairs ---------------------------------------------------------------------------------------------------


def slow_phrases(pairs: list[Pair], longest: int) -> Counter[Found]:
    """All quadruples of ends, asked for what a phrase pair is: (source, target, links inside) with their counts."""
    found: Counter[Found] = Counter()
    for source, target, links in pairs:
        for i1, i2 in itertools.combinations(range(len(source) + 1), 2):
            for j1, j2 in itertools.combinations(range(len(target) + 1), 2):
                inside = {(i, j) for i, j in links if i1 <= i < i2 and j1 <= j < j2}
                touched = {(i, j) for i, j in links if i1 <= i < i2 or j1 <= j < j2}
                if inside and inside == touched and i2 - i1 <= longest and j2 - j1 <= longest:
                    own = tuple(sorted((i - i1, j - j1) for i, j in inside))
                    found[tuple(source[i1:i2]), tuple(target[j1:j2]), own] += 1
    return found


def extracted(pairs: list[Pair], longest: int) -> list[PhrasePair]:
    bitext, links = as_arrays(pairs)
    words = tuple(map(str, range(4)))
    return list(phrase_pairs(bitext, links, words, words, longest))


@given(aligned_pairs(), st.integers(1, 7))
@settings(max_examples=50, deadline=None)
def test_phrase_pairs_are_all_consistent_spans(pairs: list[Pair], longest: int) -> None:
    by_pair: dict[tuple[tuple[int, ...], tuple[int, ...]], Counter[tuple[tuple[int, int], ...]]] = defaultdict(Counter)
    for (source, target, inside), count in slow_phrases(pairs, longest).items():
        by_pair[source, target][inside] += count
    lines = extracted(pairs, longest)
    assert len(lines) == len(by_pair)
    for line in lines:
        key = tuple(map(int, line.source)), tuple(map(int, line.target))
        assert line.counts[2] == by_pair[key].total()
        assert by_pair[key][line.links] == max(by_pair[key].values())


NULL = -1


def slow_scores(pairs: list[Pair], longest: int) -> dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[float, ...]]:
    """φ(s|t), φ(t|s) and the counts by the definitions."""
    counts: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for (source, target, _), count in slow_phrases(pairs, longest).items():
        counts[source, target] += count
    of_source, of_target = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    for (source, target), count in counts.items():
        of_source[source] += count
        of_target[target] += count
    return {
        (s, t): (count / of_target[t], count / of_source[s], of_target[t], of_source[s], count)
        for (s, t), count in counts.items()
    }


def word_probabilities(pairs: list[Pair]) -> Counter[tuple[int, int]]:
    """How often words are linked; NULL for those without links."""
    links: Counter[tuple[int, int]] = Counter()
    for source, target, grid in pairs:
        links.update((source[i], target[j]) for i, j in grid)
        links.update((source[i], NULL) for i in range(len(source)) if all(i != a for a, _ in grid))
        links.update((NULL, target[j]) for j in range(len(target)) if all(j != b for _, b in grid))
    return links


def slow_lexical(links: Counter[tuple[int, int]], pair: PhrasePair) -> tuple[float, float]:
    """lex(s|t) and lex(t|s) of a line, by loops over its words."""
    source, target = [int(w) for w in pair.source], [int(w) for w in pair.target]

    def w_of_target(s: int, t: int) -> float:
        return links[s, t] / sum(count for (a, _), count in links.items() if a == s)

    def w_of_source(s: int, t: int) -> float:
        return links[s, t] / sum(count for (_, b), count in links.items() if b == t)

    backward = forward = 1.0
    for i, word in enumerate(source):
        linked = [w_of_source(word, target[j]) for a, j in pair.links if a == i]
        backward *= sum(linked) / len(linked) if linked else w_of_source(word, NULL)
    for j, word in enumerate(target):
        linked = [w_of_target(source[i], word) for i, b in pair.links if b == j]
        forward *= sum(linked) / len(linked) if linked else w_of_target(NULL, word)
    return backward, forward


@given(aligned_pairs(), st.integers(1, 7))
@settings(max_examples=30, deadline=None)
def test_scores_are_the_formulas(pairs: list[Pair], longest: int) -> None:
    lines = extracted(pairs, longest)
    expected, by_word = slow_scores(pairs, longest), word_probabilities(pairs)
    assert len(lines) == len(expected)
    for line in lines:
        key = tuple(map(int, line.source)), tuple(map(int, line.target))
        backward, forward = slow_lexical(by_word, line)
        phi_s, phi_t, *counts = expected[key]
        assert line.scores == pytest.approx((phi_s, backward, phi_t, forward))
        assert list(line.counts) == counts
        assert all(0.0 < score <= 1.0 + 1e-9 for score in line.scores)
    as_bytes = [line.line().encode() for line in lines]
    assert as_bytes == sorted(as_bytes), "the order of LC_ALL=C sort"


def test_a_length_without_any_pair() -> None:
    assert extracted([([0, 1], [0, 1], {(0, 0), (0, 1), (1, 0)})], 1) == []


# ---- the table ------------------------------------------------------------------------------------------------------


TABLE = """\
la maison ||| the house ||| 0.5 0.25 1 1e-09 ||| 0-0 1-1 ||| 2 1 1
maison ||| home ||| 1 1 0.5 0.5

maison ||| house ||| 0 1 0.5 0.5 ||| 0-0 ||| 2 2 1 ||| ||| {{Key value}}
"""


@pytest.mark.parametrize("name", ["table", "table.gz"])
def test_a_table_is_read_and_written(tmp_path: Path, name: str) -> None:
    path, again = tmp_path / name, tmp_path / f"again-{name}"
    path.write_bytes(gzip.compress(TABLE.encode()) if name.endswith(".gz") else TABLE.encode())
    pairs = list(read_phrase_table(path))
    assert pairs[0] == PhrasePair(
        ("la", "maison"), ("the", "house"), (0.5, 0.25, 1.0, 1e-9), ((0, 0), (1, 1)), (2.0, 1.0, 1.0)
    )
    assert pairs[1] == PhrasePair(("maison",), ("home",), (1.0, 1.0, 0.5, 0.5))
    assert pairs[2].rest == ("", "{{Key value}}")
    with whole_file(again) as file:
        assert write_phrase_table(file, pairs) == 3
    assert list(read_phrase_table(again)) == pairs
    text = again.read_bytes()
    assert (text[:2] == b"\x1f\x8b") == name.endswith(".gz")
    lines = (gzip.decompress(text) if name.endswith(".gz") else text).decode().splitlines()
    assert lines[0] == TABLE.splitlines()[0]


def test_digits_of_other_tables_are_kept(tmp_path: Path) -> None:
    line = "a ||| b ||| 0.123456789 1.23456789e-30 ||| 0-0 ||| 123456789 12345678.5 1"
    (tmp_path / "table").write_text(f"{line}\n", encoding="utf-8")
    assert [pair.line() for pair in read_phrase_table(tmp_path / "table")] == [line]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a ||| b", r"expected `source \|\|\| target \|\|\| scores \|\|\| links \|\|\| counts`, found 2 of"),
        ("a b 0.5", "expected .*, found 1 of these fields"),
        (" ||| b ||| 1 1", "expected words on both sides, found an empty source"),
        ("a ||| ||| 1 1", "expected words on both sides, found an empty target"),
        ("a ||| b ||| ", "expected scores in the third field, found none"),
        ("a ||| b ||| 1 x", "expected scores, probabilities of 0 or more, found '1 x'; fix the line"),
        ("a ||| b ||| 1 -2", "expected scores, probabilities of 0 or more, found '1 -2'"),
        ("a ||| b ||| 1 nan", "expected scores, probabilities of 0 or more, found '1 nan'"),
        ("a ||| b ||| 1 2 3", "expected 2 scores, as in the first line, found 3; fix the line, or make the"),
        ("a ||| b ||| 1 1 ||| 0-1", "expected links `SOURCE-TARGET` between 1 source and 1 target words.*found '0-1'"),
        ("a ||| b ||| 1 1 ||| x", "expected links .* found 'x'"),
        ("a ||| b ||| 1 1 ||| 0-0 ||| many", "expected counts of 0 or more, found 'many'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "table"
    path.write_text(f"a ||| a ||| 0.5 0.5\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"table, line 2: {says}"):
        list(read_phrase_table(path))


def test_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("\n", encoding="utf-8")
    with pytest.raises(DataError, match="table: expected a phrase table, .* found an empty file; is it the right"):
        list(read_phrase_table(tmp_path / "table"))


def test_nothing_is_left_of_a_table_that_fails(tmp_path: Path) -> None:
    def pairs() -> "itertools.chain[PhrasePair]":
        yield PhrasePair(("a",), ("b",), (1.0,))
        raise DataError("no more")

    for name in ("table", "table.gz"):
        (tmp_path / name).write_text("earlier", encoding="utf-8")
        with pytest.raises(DataError, match="no more"), whole_file(tmp_path / name) as file:
            write_phrase_table(file, pairs())
        assert (tmp_path / name).read_text(encoding="utf-8") == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table", "table.gz"]
