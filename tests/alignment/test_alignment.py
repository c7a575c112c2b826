"""Word alignment: IBM Model 1 compared with a slow version, left-out sentences, and eflomal if installed."""

import gzip
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.alignment.aligners import LONGEST, choose_aligner, eflomal_counts, ibm1, translation_table
from fairseq_llrnn.alignment.bitext import Bitext, BitextSide
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.errors import DataError, OptionError

EFLOMAL = pytest.mark.skipif(
    importlib.util.find_spec("eflomal") is None, reason="eflomal is absent: pip install '.[align]'"
)
Rows = list[list[int]]


def sentences(rows: Rows) -> BitextSide:
    offsets = np.cumsum([0, *(len(row) for row in rows)])
    return BitextSide(np.array([word for row in rows for word in row], dtype=np.int64), offsets)


def bitext(source: Rows, target: Rows) -> Bitext:
    return Bitext(sentences(source), sentences(target))


def slow_ibm1(source: Rows, target: Rows, iterations: int) -> dict[tuple[int, int], float]:
    """Return expected links by the textbook's loops (Brown et al. 1993). The null word is −1 and not in the result."""
    pairs = [([-1, *s], t) for s, t in zip(source, target, strict=True)]
    probability = {(a, b): 1.0 for s, t in pairs for a in s for b in t}
    counts: dict[tuple[int, int], float] = {}
    for _ in range(iterations):
        counts = dict.fromkeys(probability, 0.0)
        for s, t in pairs:
            for b in t:
                total = sum(probability[a, b] for a in s)
                for a in s:
                    counts[a, b] += probability[a, b] / total
        totals: dict[int, float] = {}
        for (a, _), count in counts.items():
            totals[a] = totals.get(a, 0.0) + count
        probability = {(a, b): count / totals[a] for (a, b), count in counts.items()}
    return {pair: count for pair, count in counts.items() if pair[0] >= 0}


WORDS = st.lists(st.integers(0, 5), min_size=1, max_size=5)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=8), st.integers(1, 4), st.sampled_from([1, 7, 10**6]))
@settings(max_examples=30, deadline=None)
def test_equals_the_textbook(pairs: list[tuple[list[int], list[int]]], iterations: int, at_once: int) -> None:
    source, target = [s for s, _ in pairs], [t for _, t in pairs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairseq_llrnn.alignment.aligners.PAIRS_AT_ONCE", at_once)
        sources, targets, weights = ibm1(bitext(source, target), 6, 6, iterations)
    found = dict(zip(zip(sources.tolist(), targets.tolist(), strict=True), weights.tolist(), strict=True))
    expected = slow_ibm1(source, target, iterations)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected)


# the house / the book / a book, in words 4 …: the example of every course
SOURCE = [[4, 5], [4, 6], [7, 6], [7, 5]]
TARGET = [[4, 5], [4, 6], [7, 6], [7, 5]]
ORDINARY = np.array([False] * 4 + [True] * 4)


def translations(table: LexicalTable, source: int) -> list[int]:
    return [word for word, _ in table.row(source)]


def test_it_finds_who_translates_whom() -> None:
    table, notes = translation_table(bitext(SOURCE, TARGET), ORDINARY, ORDINARY, 10, "ibm1")
    assert [translations(table, s)[0] for s in range(4, 8)] == [4, 5, 6, 7]
    assert not notes
    table.check(ORDINARY)


def test_special_symbols_neither_have_nor_are_translations() -> None:
    source = [[4, 3, 2], [5, 2], [1, 4, 2]]
    target = [[6, 3, 2], [7, 2], [6, 2]]
    table, _ = translation_table(bitext(source, target), ORDINARY, ORDINARY, 10, "ibm1")
    assert [translations(table, s) for s in range(8)] == [[], [], [], [], [6], [7], [], []]
    possible = ORDINARY & (np.arange(8) != 7)  # a word that the background forbids
    table, notes = translation_table(bitext(source, target), ORDINARY, possible, 10, "ibm1")
    assert translations(table, 5) == []
    assert notes == {"sentence pairs not aligned: a side without words, or of more than 1,023": 1}


def test_sentences_that_are_too_long_or_empty_are_left_out_and_counted() -> None:
    source = [[4], [5], [4] * (LONGEST + 1), [6], [2]]
    target = [[5], [], [6], [7] * LONGEST, [6]]
    table, notes = translation_table(bitext(source, target), ORDINARY, ORDINARY, 10, "ibm1")
    assert [translations(table, s) for s in range(4, 8)] == [[5], [], [7], []]
    assert list(notes.values()) == [3]


def test_no_words_at_all() -> None:
    with pytest.raises(DataError, match="expected sentence pairs with words of the dictionaries on both sides, found"):
        translation_table(bitext([[2], [4]], [[4], [2]]), ORDINARY, ORDINARY, 10, "ibm1")


# ---- the table ------------------------------------------------------------------------------------------------------


def test_the_best_are_kept_and_sum_to_one() -> None:
    sources, targets = np.array([1, 0, 1, 1, 1, 0]), np.array([3, 2, 0, 1, 2, 0])
    table = LexicalTable.from_pairs(sources, targets, np.array([0.1, 3.0, 0.4, 0.1, 0.4, 0.0]), 3, 3)
    assert table.row(0) == [(2, 1.0)]
    assert translations(table, 1) == [0, 2, 1]  # equal weights: the smaller id first
    assert [p for _, p in table.row(1)] == pytest.approx([4 / 9, 4 / 9, 1 / 9])
    assert table.row(2) == []
    assert (table.offsets.dtype, table.targets.dtype, table.probabilities.dtype) == (np.int64, np.int64, np.float32)
    table.check(np.ones(4, dtype=bool))


def test_a_weight_too_small_for_float32_is_dropped() -> None:
    table = LexicalTable.from_pairs(np.array([0, 0]), np.array([0, 1]), np.array([1.0, 1e-60]), 1, 5)
    assert table.row(0) == [(0, 1.0)]


# ---- eflomal --------------------------------------------------------------------------------------------------------


def test_which_aligner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "eflomal", None)
    assert choose_aligner("auto") == choose_aligner("ibm1") == "ibm1"
    with pytest.raises(OptionError, match="the Python module eflomal is not installed; in a checkout of fairseq_"):
        choose_aligner("eflomal")
    monkeypatch.undo()
    if importlib.util.find_spec("eflomal") is not None:
        assert choose_aligner("auto") == choose_aligner("eflomal") == "eflomal"


def stand_in(monkeypatch: pytest.MonkeyPatch, align: object) -> None:
    """Install a module `eflomal` whose aligner runs `align`."""
    module = ModuleType("eflomal")
    module.Aligner = lambda: type("Aligner", (), {"align": staticmethod(align)})()
    monkeypatch.setitem(sys.modules, "eflomal", module)


def test_links_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def align(source: list[str], target: list[str], links_filename_fwd: str) -> None:
        assert (source, target) == (["4 5", "5"], ["6 7 6", "7"])
        Path(links_filename_fwd).write_text("0-0 1-1 0-2\n0-0\n")

    stand_in(monkeypatch, align)
    found = eflomal_counts(bitext([[4, 5], [5]], [[6, 7, 6], [7]]), 8, 8)
    assert [part.tolist() for part in found] == [[4, 5], [6, 7], [2.0, 2.0]]


@pytest.mark.parametrize(
    ("says", "raised"),
    [("returned non-zero exit status 1", subprocess.CalledProcessError(1, "eflomal")), ("no room", OSError("no room"))],
)
def test_eflomal_that_fails(monkeypatch: pytest.MonkeyPatch, says: str, raised: Exception) -> None:
    def align(*_: object, **__: object) -> None:
        raise raised

    stand_in(monkeypatch, align)
    with pytest.raises(DataError, match=rf"eflomal could not align the bitext \(.*{says}.*\); choose the aligner ibm1"):
        eflomal_counts(bitext(SOURCE, TARGET), 8, 8)


@pytest.mark.parametrize("links", ["0-0\n", "0-0\n" * 5, "0-0\n" * 3 + "9-9\n", "0-0\n" * 3 + "z-0\n", "0\n" * 4])
def test_links_that_do_not_fit(monkeypatch: pytest.MonkeyPatch, links: str) -> None:
    stand_in(monkeypatch, lambda *_, links_filename_fwd: Path(links_filename_fwd).write_text(links))
    with pytest.raises(DataError, match="expected links for every sentence pair, found .*; choose the aligner ibm1"):
        eflomal_counts(bitext(SOURCE, TARGET), 8, 8)


@EFLOMAL
def test_eflomal_finds_who_translates_whom() -> None:
    random = np.random.default_rng(0)
    source = [random.integers(4, 12, random.integers(2, 7)).tolist() for _ in range(300)]
    target = [[word + 1 for word in reversed(row)] for row in source]
    ordinary = np.arange(13) > 3
    table, _ = translation_table(bitext(source, target), ordinary, ordinary, 3, "eflomal")
    assert [translations(table, s)[0] for s in range(4, 12)] == list(range(5, 13))
    table.check(ordinary)


# ---- real data ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.real_data("multi30k-en-fr")
def test_multi30k(shared_data: Path) -> None:
    vocabularies: list[dict[str, int]] = []
    sides: list[BitextSide] = []
    for language in ("en", "fr"):
        index: dict[str, int] = {}
        with gzip.open(shared_data / "multi30k-en-fr" / f"train.tok.{language}.gz", "rt", encoding="utf-8") as lines:
            sides.append(sentences([[index.setdefault(w, len(index)) for w in line.split()] for line in lines]))
        vocabularies.append(index)
    english, french = vocabularies
    everyone = [np.ones(len(v), dtype=bool) for v in vocabularies]
    table, _ = translation_table(Bitext(*sides), everyone[0], everyone[1], 10, "ibm1")
    words = list(french)
    for word, translation in {"dog": "chien", "two": "deux", "playing": "jouant", "frisbee": "frisbee"}.items():
        assert words[translations(table, english[word])[0]] == translation


def test_any_number_of_threads_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq_llrnn.alignment.aligners.PAIRS_AT_ONCE", 50)
    random = np.random.default_rng(4)
    rows = [[random.integers(0, 20, size).tolist() for size in random.integers(1, 9, 60)] for _ in range(2)]
    alone, several = (ibm1(bitext(*rows), 20, 20, workers=workers) for workers in (1, 3))
    for one, other in zip(alone, several, strict=True):
        assert np.array_equal(one, other)
