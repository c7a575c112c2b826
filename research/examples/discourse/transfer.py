"""Evaluate vectors of sentences by logistic regression (Jernite 2018, Table 5.6).

Dense features are scaled to mean 0 and deviation 1. Together with words, which are 0 or 1 and mostly 0, the deviation
may be a tenth or a thirtieth. It and the weight of the penalty are chosen on a tenth of the training part, or on the
set's own validation part. Sets without splits are cross-validated in five folds, each with its own choice.
"""

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sentence_sets import SentenceSet

from fairseq_llrnn.errors import OptionError

WEIGHTS = (0.01, 0.1, 1.0)  # scikit-learn's C, the inverse of the penalty's weight
SCALES = (1.0, 0.1, 0.03)  # deviations of dense features beside words
FOLDS, ITERATIONS = 5, 100
NEEDED = "expected scikit-learn, found none; install it: pip install '.[transfer]'"
Matrix = Any  # (n, F), numpy's or scipy's


def of_pairs(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the vector of one sentence, or both vectors and their difference for two, as in DiscoEval."""
    return parts[0] if len(parts) == 1 else np.hstack([parts[0], parts[1], parts[0] - parts[1]])


def word_counts(texts: Sequence[tuple[str, ...]], train: np.ndarray) -> sparse.csr_matrix:
    """Return whether each word of the training texts is in each sentence of a text: (n, sentences × words)."""
    known = sorted({word for i in train for sentence in texts[i] for word in sentence.lower().split()})
    index = {word: i for i, word in enumerate(known)}
    rows, columns = [], []
    for row, text in enumerate(texts):
        for place, sentence in enumerate(text):
            found = {index[word] for word in sentence.lower().split() if word in index}
            rows += [row] * len(found)
            columns += [place * len(index) + column for column in sorted(found)]
    shape = (len(texts), len(index) * len(texts[0]))
    return sparse.csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=shape)


def accuracy(data: SentenceSet, dense: np.ndarray | None, with_words: bool) -> float:
    """Return the accuracy on the test part, or in cross-validation, with vectors (n, F), words, or both."""
    labels, everything = np.array(data.labels), np.arange(len(data.labels))
    if len(data.ends) == 1:
        shuffled = np.random.default_rng(1).permutation(everything)
        parts = [(np.setdiff1d(shuffled, fold, assume_unique=True), fold) for fold in np.array_split(shuffled, FOLDS)]
    else:
        parts = [(everything[: data.ends[0]], everything[data.ends[-2] :])]
    choices = list(itertools.product(WEIGHTS, SCALES if dense is not None and with_words else SCALES[:1]))
    right = 0
    for train, test in parts:
        if len(data.ends) == 3:
            fit, held_out = train, everything[data.ends[0] : data.ends[1]]
        else:
            mixed = np.random.default_rng(2).permutation(train)
            fit, held_out = mixed[len(mixed) // 10 :], mixed[: len(mixed) // 10]
        scores = [_right(data, labels, dense, with_words, fit, held_out, *choice) for choice in choices]
        chosen = choices[int(np.argmax(scores))]
        right += _right(data, labels, dense, with_words, train, test, *chosen)
    return right / sum(len(test) for _, test in parts)


def _right(
    data: SentenceSet, labels: np.ndarray, dense: np.ndarray | None, with_words: bool, train: np.ndarray,
    test: np.ndarray, weight: float, scale: float,
) -> int:  # fmt: skip
    try:
        from sklearn.linear_model import LogisticRegression
    except ModuleNotFoundError:
        raise OptionError(NEEDED) from None
    blocks: list[Matrix] = []
    if dense is not None:
        mean, deviation = dense[train].mean(0), dense[train].std(0) + 1e-6
        blocks.append((dense - mean) / deviation * np.float32(scale))
    if with_words:
        blocks.append(word_counts(data.texts, train))
    matrix = blocks[0] if len(blocks) == 1 else sparse.hstack(list(map(sparse.csr_matrix, blocks))).tocsr()
    model = LogisticRegression(C=weight, max_iter=ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that ITERATIONS were not enough to the last digit
        model.fit(matrix[train], labels[train])
    return int((model.predict(matrix[test]) == labels[test]).sum())
