"""A joint field of tags and words (thesis, §4.4, figure 4.8): word features, the bound, and the best tags.

Sizes: T tags, S signatures of words, F features, K order, M offsets, N tokens, n words of a sentence.

φ are the features of a word for the tagger: its form if it is frequent, endings, beginnings, shape.

    log p(t, w)  =  Σ_i ( τ(tᵢ) + Σ_{l=1}^{K} θˡ(tᵢ, tᵢ₊ₗ) + Σ_{m∈M} u_m(tᵢ) · φ(wᵢ₊ₘ) + log b(wᵢ) )  −  A

Tags have edges to K tags on either side, and to the M surrounding words. Potentials of a tag and a word are log-linear
in φ. b is the frequency of the word. Words with equal φ are one signature.

The bound: A ≤ N / (K+1) · Σ_m α_m log Z★_m, with one star of K+1 tags for each offset m. Each tag of a star has one
word, m places away, with the potential u_m / α_m, and edges of tags have (K+1) θˡ. The dual variables γ of tags and ε
of words are free if their means over all places, weighted by α, are zero. The proof is that of star.py: each tag and
each word is in factors of the product whose exponents α_m / (K+1) sum to one.

The thesis has α_m = 1/M. The bound holds for any α with sum 1. A star with a higher weight keeps more of its words'
effect in the potentials. A tag's own word has the most effect, so it gets the weight WORD_WEIGHT.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.features.feature_table import FeatureTable, group_equal_rows
from fairseq_llrnn.features.spelling_features import shape_features

ENDINGS, BEGINNINGS = (1, 2, 3, 4, 5), (1, 2, 3)  # lengths in letters
END = "</s>"  # the word of separators


def spelling_features(word: str) -> dict[str, float]:
    """Return the spelling features of any word, seen or unseen."""
    low = word.lower()
    features = shape_features(word)
    features |= {f"Ending:{low[-length:]}": 1.0 for length in ENDINGS if len(low) >= length}
    features |= {f"Beginning:{low[:length]}": 1.0 for length in BEGINNINGS if len(low) > length}
    if any(character.isdigit() for character in word):
        features["Digit:Some"] = 1.0
    if not any(character.isalpha() for character in word):
        features["Letter:None"] = 1.0
    return features


def word_features(word: str, has_form: bool) -> dict[str, float]:
    """Return the features of a word, optionally with its form. The separator's word has only one feature."""
    if word == END:
        return {"Separator": 1.0}
    return {"Any": 1.0, **({f"Form:{word}": 1.0} if has_form else {}), **spelling_features(word)}


@dataclass(frozen=True)
class WordSignatures:
    """The words of a treebank as signatures of φ."""

    names: tuple[str, ...]  # F features
    features: Tensor  # Φ (S, F) sparse, float64; signature 0 is the separator's
    signature_of: Mapping[str, int]  # of the observed words
    log_masses: Tensor  # (S,) log b

    @classmethod
    def of(cls, counts: Mapping[str, int], ends: int, rare: int, floor: int = 3) -> WordSignatures:
        """Build the signatures from counts of words.

        Args:
            ends: count of the separator.
            rare: least count of a word with a feature for its form.
            floor: least number of distinct words with a spelling feature.
        """
        words = [END, *sorted(word for word in counts if word != END)]
        rows = [word_features(word, counts.get(word, 0) >= rare) for word in words]
        types = Counter(name for row in rows for name in row)
        frequent = [
            {name: value for name, value in row.items() if name.startswith("Form:") or types[name] >= floor}
            | ({"Separator": 1.0} if "Separator" in row else {})
            for row in rows
        ]
        signatures = group_equal_rows(FeatureTable.from_rows(frequent))
        weights = np.array([ends, *(counts[word] for word in words[1:])], dtype=np.float64)
        class_weights = np.bincount(signatures.class_of, weights=weights, minlength=signatures.num_classes)
        signature_of = dict(zip(words, signatures.class_of.tolist(), strict=True))
        return cls(
            signatures.features.names, sparse(signatures.features), signature_of,
            torch.from_numpy(np.log(class_weights / class_weights.sum())),
        )


def rows_of(words: Iterable[str], names: Mapping[str, int], forms: frozenset[str]) -> Tensor:
    """Return Φ of any words, with a tagger's features: (n, F) sparse. `forms`: words with a feature for their form."""
    indices, values, offsets = list[int](), list[float](), [0]
    for word in words:
        row = {names[name]: value for name, value in word_features(word, word in forms).items() if name in names}
        indices += row.keys()
        values += row.values()
        offsets.append(len(indices))
    places = torch.tensor([np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)).tolist(), indices])
    shape = (len(offsets) - 1, len(names))
    return torch.sparse_coo_tensor(places.view(2, -1), torch.tensor(values).double(), shape, check_invariants=False)


def sparse(table: FeatureTable) -> Tensor:
    """Return a table as a sparse float64 matrix, (rows, F)."""
    rows = np.repeat(np.arange(table.num_rows), np.diff(table.offsets))
    places = torch.from_numpy(np.stack([rows, table.indices]))
    values = torch.from_numpy(table.values.astype(np.float64))
    shape = (table.num_rows, table.num_features)
    return torch.sparse_coo_tensor(places, values, shape, is_coalesced=True, check_invariants=False)


SEPARATOR = 0  # the number of the tag of </S>, and of its word's signature
WORD_WEIGHT = 0.8  # α of a tag's own word, if there are edges to other words


@dataclass(frozen=True)
class TagForm:
    """Sizes and constants."""

    order: int  # K
    offsets: tuple[int, ...]  # M of them: (0,), or (−1, 0, 1)
    tags: int  # T, the separator's included
    features: Tensor  # Φ (S, F) sparse
    log_masses: Tensor  # (S,) log b of signatures

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters, then of the dual variables."""
        num_offsets, size = len(self.offsets), self.features.shape
        return {
            "tags": (self.tags,),
            "pairs": (self.order, self.tags, self.tags),
            "words": (num_offsets, self.tags, size[1]),
            "gamma": (num_offsets, self.order + 1, self.tags),
            "epsilon": (num_offsets, size[0]),
        }

    @property
    def weights(self) -> Tensor:
        """Return α, (M,)."""
        others = len(self.offsets) - 1
        if not others:
            return torch.ones(1, dtype=torch.float64)
        shares = [WORD_WEIGHT if offset == 0 else (1.0 - WORD_WEIGHT) / others for offset in self.offsets]
        return torch.tensor(shares, dtype=torch.float64)

    def word_scores(self, words: Tensor) -> Tensor:
        """Return u_m · φ of all signatures: (M, T, F) -> (M, T, S)."""
        num_offsets, tags, _ = words.shape
        return torch.sparse.mm(self.features, words.flatten(0, 1).T).T.view(num_offsets, tags, -1)

    def log_partitions(self, values: Mapping[str, Tensor]) -> Tensor:
        """Return Σ_m α_m log Z★_m / (K+1), an upper bound on A / N."""
        order, weights = self.order, self.weights
        gamma = values["tags"] + values["gamma"] - weights @ values["gamma"].mean(1)
        epsilon = self.log_masses + values["epsilon"] - weights @ values["epsilon"]
        scores = self.word_scores(values["words"]) / weights.view(-1, 1, 1)
        # shape: (M, 1, T), from the word of each tag
        of_words = (scores + epsilon.unsqueeze(1)).logsumexp(2).unsqueeze(1)
        nodes = gamma + of_words  # shape: (M, K+1, T)
        leaves = (order + 1) * values["pairs"] + nodes[:, 1:].unsqueeze(2)  # shape: (M, K, T of the centre, T)
        return weights @ (nodes[:, 0] + leaves.logsumexp(3).sum(1)).logsumexp(1) / (order + 1)


@dataclass(frozen=True)
class TagMoments:
    """Relative frequencies in a treebank, laid out as a cycle with K separators before each sentence."""

    tokens: int  # N
    tags: Tensor  # (T,)
    pairs: Tensor  # (K, T, T)
    words: Tensor  # (M, T, F): frequencies of a tag with a feature of the word m places away
    signatures: Tensor  # (S,)

    @classmethod
    def count(cls, form: TagForm, tags: np.ndarray, signatures: np.ndarray) -> TagMoments:
        """Count a layout: both (N,)."""
        num_tokens, size = len(tags), form.tags
        shifted = [np.roll(tags, -distance) for distance in range(1, form.order + 1)]
        pairs = [np.bincount(tags * size + second, minlength=size * size) for second in shifted]
        words = []
        for offset in form.offsets:
            key = tags * len(form.log_masses) + np.roll(signatures, -offset)
            joint = np.bincount(key, minlength=size * len(form.log_masses)).reshape(size, -1)
            words.append(torch.sparse.mm(form.features.t(), torch.from_numpy(joint.T / num_tokens)).T)
        return cls(
            num_tokens,
            torch.from_numpy(np.bincount(tags, minlength=size) / num_tokens),
            torch.from_numpy(np.stack(pairs).reshape(-1, size, size) / num_tokens),
            torch.stack(words),
            torch.from_numpy(np.bincount(signatures, minlength=len(form.log_masses)) / num_tokens),
        )


def bound(form: TagForm, moments: TagMoments, values: Mapping[str, Tensor]) -> Tensor:
    """Return the lower bound on log p(t, w) per token."""
    seen = (moments.tags * values["tags"]).sum() + (moments.pairs * values["pairs"]).sum()
    has = moments.signatures > 0
    seen = seen + (moments.words * values["words"]).sum() + moments.signatures[has] @ form.log_masses[has]
    return seen - form.log_partitions(values)


def best_tags(order: int, tags: np.ndarray, pairs: np.ndarray, words: np.ndarray) -> list[int]:
    """Return the best tags of a sentence, by dynamic programming over the last K tags.

    Args:
        tags: (T,) τ.
        pairs: (K, T, T).
        words: (n, T) scores from the words around each place.
    """
    size = len(tags)
    steps = np.zeros((size,) * (order + 1))  # the oldest tag first
    for distance in range(1, order + 1):
        shape = [1] * (order + 1)
        shape[order - distance] = shape[order] = size
        steps = steps + pairs[distance - 1].reshape(shape)
    best = np.full((size,) * order, -np.inf)
    best[(SEPARATOR,) * order] = 0.0
    back = []
    closed = np.full((order, size), -np.inf)
    closed[:, SEPARATOR] = 0.0
    inner = words + tags
    inner[:, SEPARATOR] = -np.inf
    for unary in np.concatenate([inner, closed]):
        scores = best[..., np.newaxis] + steps + unary
        back.append(scores.argmax(0))
        best = scores.max(0)
    state: tuple[int, ...] = (SEPARATOR,) * order
    reversed_tags = []
    for pointers in reversed(back):
        reversed_tags.append(state[-1])
        state = (int(pointers[state]), *state[:-1])
    return reversed_tags[::-1][: len(words)]
