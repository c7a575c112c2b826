"""Modified Kneser-Ney sums to one, and equals the word-by-word version, also pruned or on other unigrams."""

import hashlib
import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ngram_oracles import histories, kneser_ney, table_of, total, word_list

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.ngrams.arpa import read_arpa
from fairseq_llrnn.ngrams.kneser_ney import FALLBACK, discounts, estimate
from fairseq_llrnn.ngrams.ngrams import Sentences, read_sentences

WORDS = word_list("a b c d e")
PREDICTABLE = [s for s, may in zip(WORDS.symbols, WORDS.predictable, strict=True) if may]


def sentences_of(seed: int, count: int = 150) -> list[list[str]]:
    """Generate sentences with some very frequent words and pairs."""
    rng = random.Random(seed)
    result = []
    for _ in range(count):
        length = rng.choice([0, 1, 2, 3, 5, 8])
        result.append([rng.choice("aaabbbbcd") if rng.random() < 0.7 else "ab"[i % 2] for i in range(length)])
    return result


def ids(text: list[list[str]]) -> Sentences:
    return Sentences.of([[WORDS.symbols.index(w) for w in sentence] for sentence in text])


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("prune", [(), (0, 0, 1), (0, 1, 2)])
@pytest.mark.parametrize("seed", [1, 2])
def test_equals_the_version_word_by_word(order: int, prune: tuple[int, ...], seed: int) -> None:
    text = sentences_of(seed)
    table = table_of(estimate(ids(text), WORDS, order, prune))
    expected = kneser_ney(text, PREDICTABLE, order, prune)
    found = {gram: math.exp(log_p) for gram, (log_p, _) in table.items() if log_p > -np.inf}
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("prune", [(), (0, 0, 1)])
def test_every_history_sums_to_one(prune: tuple[int, ...]) -> None:
    table = table_of(estimate(ids(sentences_of(3)), WORDS, 4, prune))
    for history in histories(["a", "b", "e", "<unk>"], 3):
        assert total(table, history, PREDICTABLE) == pytest.approx(1.0, abs=1e-12)


def test_other_unigrams_below() -> None:
    text = sentences_of(4)
    weights = np.where(WORDS.predictable, np.arange(len(WORDS)) + 1.0, 0.0)
    with np.errstate(divide="ignore"):
        unigrams = np.log(weights / weights.sum())
    table = table_of(estimate(ids(text), WORDS, 3, unigrams=unigrams))
    named = {w: math.exp(p) for w, p in zip(WORDS.symbols, unigrams, strict=True)}
    expected = kneser_ney(text, PREDICTABLE, 3, unigrams=named)
    assert {g: math.exp(p) for g, (p, _) in table.items() if p > -np.inf} == pytest.approx(expected, rel=1e-12)
    assert total(table, ("a", "b"), PREDICTABLE) == pytest.approx(1.0, abs=1e-12)


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=8), st.integers(1, 4))
def test_any_text_however_small(text: list[list[str]], order: int) -> None:
    if not any(text):
        return
    model = estimate(ids(text), WORDS, order)
    assert (np.diff(model.keys) > 0).all()
    table = table_of(model)
    for history in histories(["a", "b"], order - 1):
        assert total(table, history, PREDICTABLE) == pytest.approx(1.0, abs=1e-12)


def test_discounts() -> None:
    adjusted = np.repeat([1, 2, 3, 4, 7], [100, 40, 20, 10, 5])
    y = 100 / 180
    assert discounts(adjusted) == pytest.approx((y, 2 - 3 * y * 20 / 40, 3 - 4 * y * 10 / 20))


@pytest.mark.parametrize("counts", [[0, 4, 2, 1], [9, 0, 2, 1], [9, 4, 0, 1], [5, 1, 9, 1], [5, 5, 1, 9]])
def test_discounts_that_fall_back(counts: list[int]) -> None:
    assert discounts(np.repeat([1, 2, 3, 4], counts)) == FALLBACK


def test_symbols_that_are_no_words_are_unknown() -> None:
    """A text may contain the string `</s>` or `<pad>`."""
    odd = Sentences.of([[2, 4], [1, 4], [0, 4]])
    plain = Sentences.of([[3, 4], [3, 4], [3, 4]])
    assert estimate(odd, WORDS, 3).log_probs.tolist() == estimate(plain, WORDS, 3).log_probs.tolist()


def test_no_words() -> None:
    with pytest.raises(DataError) as error:
        estimate(Sentences.of([[], []]), WORDS, 3)
    assert str(error.value) == "n-grams of order 3: expected sentences with words, found none; give a text with some"


def test_reading_sentences(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a zebra  b\n\nc\n", encoding="utf-8")
    found = read_sentences([tmp_path / "text", tmp_path / "text"], WORDS)
    assert found.tokens.tolist() == [4, 3, 5, 6] * 2
    assert found.lengths.tolist() == [3, 0, 1] * 2


@pytest.mark.parametrize(("recorded", "prune"), [("plain.arpa", []), ("pruned.arpa", [0, 0, 1])])
def test_equals_lmplz(root: Path, recorded: str, prune: list[int]) -> None:
    """The files were written by lmplz of KenLM 0.3.0: lmplz -o 3 --discount_fallback [--prune 0 0 1] < text.

    They are stored because lmplz needs Boost, and PyPI's package kenlm builds all of KenLM but that.
    """
    text = [sentence for sentence in sentences_of(5, 3000) if sentence]
    lines = "".join(" ".join(s) + "\n" for s in text)
    recorded_from = "e8bb0a2b8d1ec7a1f23e622b22f8f5c1"
    assert hashlib.md5(lines.encode()).hexdigest() == recorded_from
    theirs = table_of(read_arpa(root / "tests" / "ngrams" / "lmplz" / recorded))
    words = word_list("a b c d")
    sentences = Sentences.of([[words.symbols.index(w) for w in s] for s in text])
    ours = table_of(estimate(sentences, words, 3, prune))
    ours = {gram: values for gram, values in ours.items() if gram != ("<pad>",)}
    assert ours.keys() == theirs.keys()
    for gram, (log_p, back_off) in ours.items():
        assert (log_p, back_off) == pytest.approx(theirs[gram], abs=1e-4)
