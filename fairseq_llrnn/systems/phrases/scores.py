"""Scores of phrase pairs by counting, the four of Moses (Koehn, Och & Marcu 2003, §3 and §4).

    φ(f | e) = count(f, e) / Σ_f' count(f', e)            φ(e | f) likewise
    w(e | f) = links(f, e) / Σ_e' links(f, e')            of words; a word without link is linked to the null word
    lex(e | f, a) = Π_j  mean over the source words i linked to e_j of w(e_j | f_i), or w(e_j | null) if it has none

f is the source phrase, e the target phrase, a the most frequent links inside the pair. Sizes: Q phrase pairs, W the
longest phrase.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairseq_llrnn.alignment.bitext import Bitext, Links
from fairseq_llrnn.rescoring.phrase_table import PhrasePair
from fairseq_llrnn.systems.phrases.extraction import PhraseCounts, Phrases


@dataclass(frozen=True)
class LinkedWords:
    """w(other | own) of words of one side given words of the other; the null word is `null`."""

    keys: np.ndarray  # own · size + other, rising
    probability: np.ndarray
    size: int
    null: int

    @classmethod
    def of(cls, side: np.ndarray, other: np.ndarray, num_side: int, num_other: int) -> LinkedWords:
        """From pairs of linked words; num_side stands for the null word of the side, num_other for the other's."""
        size = num_other + 1
        keys, counts = np.unique(side * size + other, return_counts=True)
        return cls(keys, counts / np.bincount(keys // size, counts)[keys // size], size, num_side)

    def __call__(self, side: np.ndarray, other: np.ndarray) -> np.ndarray:
        """w(other | side), of pairs that were linked."""
        return self.probability[np.searchsorted(self.keys, side * self.size + other)]


def linked_words(bitext: Bitext, links: Links, num_sources: int, num_targets: int) -> tuple[LinkedWords, LinkedWords]:
    """w(target word | source word), and w(source word | target word)."""
    alone = [np.ones(len(side.tokens), dtype=bool) for side in (bitext.source, bitext.target)]
    alone[0][links.source] = alone[1][links.target] = False
    without = [side.tokens[left] for side, left in zip((bitext.source, bitext.target), alone, strict=True)]
    source = np.concatenate(
        [bitext.source.tokens[links.source], without[0], np.full(len(without[1]), num_sources, dtype=np.int64)]
    )
    target = np.concatenate(
        [bitext.target.tokens[links.target], np.full(len(without[0]), num_targets, dtype=np.int64), without[1]]
    )
    return (
        LinkedWords.of(source, target, num_sources, num_targets),
        LinkedWords.of(target, source, num_targets, num_sources),
    )


def lexical_weights(
    side: np.ndarray, other: np.ndarray, bits: np.ndarray, side_step: int, other_step: int, words: LinkedWords
) -> np.ndarray:
    """lex(other | side) of phrase pairs: (Q,).

    Args:
        side, other: words of the phrases, (Q, W), −1 behind their ends.
        bits: the links, (Q,).
        side_step, other_step: how many bits a place further on each side.
    """
    total = np.ones(len(bits))
    for j in range(other.shape[1]):
        mean, linked = np.zeros(len(bits)), np.zeros(len(bits), dtype=np.int64)
        for i in range(side.shape[1]):
            has = np.flatnonzero(bits >> (side_step * i + other_step * j) & 1)
            mean[has] += words(side[has, i], other[has, j])
            linked[has] += 1
        null = np.flatnonzero((other[:, j] >= 0) & (linked == 0))
        mean[null] = words(np.full(len(null), words.null), other[null, j])
        total *= np.where(other[:, j] < 0, 1.0, mean / np.maximum(linked, 1))
    return total


def phrase_pairs(
    counts: PhraseCounts, bitext: Bitext, links: Links, source_words: tuple[str, ...], target_words: tuple[str, ...],
    longest: int,
) -> Iterator[PhrasePair]:  # fmt: skip
    """The lines of a phrase table, in the order of their bytes (as `LC_ALL=C sort` has them)."""
    forward, backward = linked_words(bitext, links, len(source_words), len(target_words))
    source = _words_of(counts.sources, bitext.source.tokens, longest)
    target = _words_of(counts.targets, bitext.target.tokens, longest)
    of_source = np.bincount(counts.source, counts.count, len(source))
    of_target = np.bincount(counts.target, counts.count, len(target))
    f, e = source[counts.source], target[counts.target]  # shape: (Q, W)
    scores = np.stack([
        counts.count / of_target[counts.target], lexical_weights(e, f, counts.links, 1, longest, backward),
        counts.count / of_source[counts.source], lexical_weights(f, e, counts.links, longest, 1, forward),
    ], axis=1)  # fmt: skip
    sources, targets = _texts(source, source_words), _texts(target, target_words)
    order = np.lexsort((_ranks(targets)[counts.target], _ranks(sources)[counts.source]))
    for q in order.tolist():
        bits, s, t = int(counts.links[q]), int(counts.source[q]), int(counts.target[q])
        inside = tuple(divmod(place, longest) for place in range(longest * longest) if bits >> place & 1)
        pair_counts = (float(of_target[t]), float(of_source[s]), float(counts.count[q]))
        yield PhrasePair(tuple(sources[s]), tuple(targets[t]), tuple(scores[q].tolist()), inside, pair_counts)


def _words_of(phrases: Phrases, tokens: np.ndarray, longest: int) -> np.ndarray:
    """(phrases, W) ids of words, −1 behind their ends."""
    place = phrases.begins[:, None] + np.arange(longest)
    words = tokens[np.minimum(place, len(tokens) - 1)] if len(tokens) else np.zeros_like(place)
    return np.where(np.arange(longest) < phrases.lengths[:, None], words, -1)


def _texts(rows: np.ndarray, words: tuple[str, ...]) -> list[list[str]]:
    return [[words[word] for word in row if word >= 0] for row in rows.tolist()]


def _ranks(texts: list[list[str]]) -> np.ndarray:
    """The place of each in the order of bytes, with the blank behind it that a line has."""
    order = sorted(range(len(texts)), key=lambda n: (" ".join(texts[n]) + " |").encode())
    ranks = np.empty(len(texts), dtype=np.int64)
    ranks[order] = np.arange(len(texts))
    return ranks
