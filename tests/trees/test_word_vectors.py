"""Vectors of words from text files, and those of signatures that are made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_priors import SYMBOLS, make_prior

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.head.tree import class_vectors
from fairseq_llrnn.trees.word_vectors import read_word_vectors


@pytest.mark.parametrize("header", ["", "3 2\n"])
def test_words_that_are_asked_for_are_read(tmp_path: Path, header: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(f"{header}le 1 -2.5 \nunknown 3 4\nchat 0.5 1e-1\nle 9 9\n", encoding="utf-8")
    vectors = read_word_vectors(path, ["la", "chat", "le"])
    assert np.isnan(vectors[0]).all()
    np.testing.assert_allclose(vectors[1:], [[0.5, 0.1], [1.0, -2.5]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"vectors.txt: expected vectors of words of the dictionary, found none; give those of its language"),
        ("autre 1 2\n", "expected vectors of words of the dictionary, found none"),
        ("le\n", "line 1: expected a word and its numbers, separated by single blanks, found 'le'; give vectors as"),
        ("le 1 2\nla 1\n", "line 2: expected a word and 2 numbers, separated by single blanks, found 'la 1'"),
        ("le 1 two\n", "line 1: expected numbers behind the word, found that could not convert string to float: 'two'"),
        ("le 1 nan\n", "line 1: expected numbers up to 1,000,000, found others; fix the line"),
        ("le 1 1e9\n", "line 1: expected numbers up to 1,000,000, found others; fix the line"),
    ],
)
def test_what_is_no_vectors(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_word_vectors(path, ["le", "la"])


def test_a_signature_has_the_mean_of_its_words() -> None:
    prior = make_prior()
    of_words = np.full((len(SYMBOLS), 2), np.nan, dtype=np.float32)
    for word, vector in (("maison", [1.0, 0.0]), ("fenêtre", [0.0, 1.0]), ("chat", [2.0, 2.0])):
        of_words[SYMBOLS.index(word)] = vector
    found, class_of = class_vectors(prior, of_words), prior.output.class_of
    shared = class_of[SYMBOLS.index("maison")]
    assert shared == class_of[SYMBOLS.index("fenêtre")]
    weights = np.exp(prior.log_weights[[SYMBOLS.index("maison"), SYMBOLS.index("fenêtre")]])
    np.testing.assert_allclose(found[shared], weights / weights.sum(), rtol=1e-6)
    mean = (found[shared] + found[class_of[SYMBOLS.index("chat")]]) / 2
    np.testing.assert_allclose(found[class_of[SYMBOLS.index("le")]], mean, rtol=1e-6)
