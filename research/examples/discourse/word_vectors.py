"""Word vectors from the same text, for comparison: how much more often than by chance two words are near each other.

Sizes: V words, T words of the text, D width. Positive pointwise mutual information within a window, reduced by a
singular value decomposition (Levy, Goldberg & Dagan 2015; contexts smoothed by the power 0.75). A sentence's vector is
the sum of its word vectors.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from scipy import sparse
from transfer import NEEDED

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.files.atomic_write import whole_binary
from llrnn_research.discourse.data import DICTIONARY, UNKNOWN, Split, load_split

WINDOW, SMOOTHING, SEEN, AT_ONCE = 4, 0.75, 2, 2_000_000


def pair_counts(split: Split, num_words: int, window: int = WINDOW) -> sparse.csr_matrix:
    """Count how often two words of the dictionary are at most `window` words apart in a sentence: (V, V), symmetric."""
    sentence = np.repeat(np.arange(len(split.ends)), split.lengths())  # shape: (T,)
    total = sparse.csr_matrix((num_words, num_words), dtype=np.float32)
    for begin in range(0, len(split.tokens), AT_ONCE):
        tokens = split.tokens[begin : begin + AT_ONCE + window]
        own = sentence[begin : begin + AT_ONCE + window]
        known = (tokens > UNKNOWN) & (tokens < num_words)
        for distance in range(1, window + 1):
            left, right = tokens[:-distance][:AT_ONCE], tokens[distance:][:AT_ONCE]
            both = (own[:-distance] == own[distance:]) & known[:-distance] & known[distance:]
            both = both[:AT_ONCE]
            ones = np.ones(int(both.sum()), dtype=np.float32)
            total = total + sparse.csr_matrix((ones, (left[both], right[both])), shape=total.shape)
    return (total + total.T).tocsr()


def association(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return max(0, log p(v, w) / (p(v) p'(w))) of pairs seen SEEN times or more, with p' = p^0.75, normalised."""
    table = counts.tocoo()
    words = np.asarray(counts.sum(1)).ravel()
    contexts = words**SMOOTHING
    with np.errstate(divide="ignore"):
        values = np.log(table.data * contexts.sum() / (words[table.row] * contexts[table.col]))
    kept = (values > 0) & (table.data >= SEEN)
    return sparse.csr_matrix((values[kept], (table.row[kept], table.col[kept])), shape=counts.shape)


def word_vectors(split: Split, num_words: int, size: int) -> np.ndarray:
    """Return (V, D) float32. Raises OptionError: scikit-learn is not installed."""
    try:
        from sklearn.utils.extmath import randomized_svd
    except ModuleNotFoundError:
        raise OptionError(NEEDED) from None
    left, values, _ = randomized_svd(association(pair_counts(split, num_words)), size, n_iter=2, random_state=1)
    return (left * np.sqrt(values)).astype(np.float32)


def load_or_make(folder: Path, place: Path, size: int) -> np.ndarray:
    """Return the vectors for a data folder, stored in the file `place`. Raises OptionError if they have other sizes."""
    words = len(load_dictionary(folder / DICTIONARY))
    if not place.exists():
        found = word_vectors(load_split(folder, "train"), words, size)
        with whole_binary(place) as file:
            np.save(file, found)
    loaded: np.ndarray = np.load(place, allow_pickle=False)
    if loaded.shape != (words, size):
        expected = f"vectors of {words:,} words, {size} numbers each (--data, --size)"
        raise OptionError(f"{place}: expected {expected}, found {loaded.shape}; use another --out")
    return loaded


def sums(vectors: np.ndarray, sentences: Iterable[Sequence[int]]) -> np.ndarray:
    """Return the sum of each sentence's word vectors, without words outside the dictionary."""
    return np.stack([vectors[[i for i in ids if i < len(vectors)]].sum(0) for ids in sentences])
