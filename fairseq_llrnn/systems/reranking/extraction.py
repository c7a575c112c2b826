"""Extract all phrase pairs of a bitext that are consistent with its links, with counts and scores.

Sizes: W longest phrase, N phrase pairs in the text, Q distinct ones.

A span of source tokens and a span of target tokens of a sentence pair are a phrase pair if at least one link joins
them, and no link joins a token of either to a token outside (Och & Ney 2004, §4.1; Koehn, Och & Marcu 2003, §3).
Unlinked words may be at their ends, and inside.

The links inside a phrase pair are stored as a number: bit W·i + j is set if its source word i and its target word j are
linked, so W ≤ 7 fits into 64 bits. Many sentences are processed together, W² times, without hashing: a phrase is the
number of a shorter phrase and one more word.

Scores are the four of Moses, by counting (Koehn, Och & Marcu 2003, §3 and §4):

    φ(f | e) = count(f, e) / Σ_f' count(f', e)            φ(e | f) likewise
    w(e | f) = links(f, e) / Σ_e' links(f, e')            of words; unlinked words are linked to the null word
    lex(e | f, a) = Π_j  mean over the source words i linked to e_j of w(e_j | f_i), or w(e_j | null) if unlinked

f is the source phrase, e the target phrase, a the most frequent links inside the pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from fairseq_llrnn.alignment.bitext import Bitext, BitextSide, Links
from fairseq_llrnn.systems.reranking.phrase_table import PhrasePair

LONGEST_PHRASE = 7  # words; also Moses' default
SENTENCES_AT_ONCE = 20_000  # bounds the memory of a step
NONE = np.iinfo(np.int64).max  # `low` of an unlinked token


@dataclass(frozen=True)
class Phrases:
    """The distinct phrases of one side of a bitext, numbered."""

    begins: np.ndarray  # (phrases,) int64, index of an occurrence's first token
    lengths: np.ndarray  # (phrases,) int64, words


@dataclass(frozen=True)
class PhraseCounts:
    """The distinct phrase pairs of a bitext: (Q,) int64 each."""

    source: np.ndarray  # number in `sources`
    target: np.ndarray  # number in `targets`
    count: np.ndarray  # of occurrences
    links: np.ndarray  # its most frequent links as bits (module docstring), the smallest number among ties
    sources: Phrases
    targets: Phrases


@dataclass(frozen=True)
class Spans:
    """Phrase pairs in the text: (N,) int64 each, as indices among all tokens of a side."""

    source: np.ndarray
    source_length: np.ndarray
    target: np.ndarray
    target_length: np.ndarray


def count_phrases(bitext: Bitext, links: Links, longest: int) -> PhraseCounts:
    """Return all phrase pairs with at most `longest` words on each side."""
    source_ids, sources = number_phrases(bitext.source, longest)
    target_ids, targets = number_phrases(bitext.target, longest)
    width = max(1, len(targets.lengths))
    parts = [np.zeros((3, 0), dtype=np.int64)]  # pair, links, count
    for block in tqdm(list(_blocks(bitext, links)), "extracting phrases", unit=" parts", leave=False, disable=None):
        spans = consistent_spans(block.bitext, block.links, longest)
        pair = source_ids[spans.source_length - 1, spans.source + block.source] * width
        pair += target_ids[spans.target_length - 1, spans.target + block.target]
        bits = links_inside(block.bitext, block.links, spans, longest)
        parts.append(_counted(pair, bits, np.ones(len(pair), dtype=np.int64)))
    pair, bits, count = _counted(*np.concatenate(parts, axis=1))
    order = np.lexsort((bits, -count, pair))  # groups the rows of a pair, most frequent first
    _, first, row = np.unique(pair[order], return_index=True, return_inverse=True)
    total = np.bincount(row, count[order], len(first)).astype(np.int64)
    best = order[first]
    return PhraseCounts(pair[best] // width, pair[best] % width, total, bits[best], sources, targets)


def number_phrases(side: BitextSide, longest: int) -> tuple[np.ndarray, Phrases]:
    """Return the phrases, and their numbers by length − 1 and first token, (longest, tokens) int64 (−1: no room)."""
    size = len(side.tokens)
    left = np.repeat(side.offsets[1:], side.lengths) - np.arange(size)  # words from here to the sentence's end
    ids = np.full((longest, size), -1, dtype=np.int64)
    vocabulary = int(side.tokens.max()) + 1 if size else 1
    begins, lengths, num_phrases = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], 0
    for length in range(1, longest + 1):
        start = np.flatnonzero(left >= length)
        shorter = ids[length - 2, start] if length > 1 else 0
        _, once, number = np.unique(
            shorter * vocabulary + side.tokens[start + length - 1], return_index=True, return_inverse=True
        )
        ids[length - 1, start] = number + num_phrases
        begins.append(start[once])
        lengths.append(np.full(len(once), length, dtype=np.int64))
        num_phrases += len(once)
    return ids, Phrases(np.concatenate(begins), np.concatenate(lengths))


def consistent_spans(bitext: Bitext, links: Links, longest: int) -> Spans:
    """Return all phrase pairs of a bitext, by source length and place, and by the unlinked words around the target."""
    source = _Side.of(bitext.source, links.source, links.target, longest)
    target = _Side.of(bitext.target, links.target, links.source, longest)
    spans = [np.zeros((4, 0), dtype=np.int64)]
    for length in range(1, longest + 1):
        start = np.flatnonzero(source.left >= length)
        low, high = source.low[length - 1, start], source.high[length - 1, start]  # the linked target span
        fits = (low != NONE) & (high - low < longest)
        start, low, high = start[fits], low[fits], high[fits]
        wide = high - low + 1
        closed = (target.low[wide - 1, low] >= start) & (target.high[wide - 1, low] < start + length)
        start, low, high, wide = start[closed], low[closed], high[closed], wide[closed]
        for before in range(longest):  # unlinked words on both sides of the linked span
            for behind in range(longest - before):
                free = (target.free_before[low] >= before) & (target.free_behind[high] >= behind)
                ok = np.flatnonzero(free & (wide + before + behind <= longest))
                parts = start[ok], np.full(len(ok), length), low[ok] - before, wide[ok] + before + behind
                spans.append(np.stack(parts))
    return Spans(*np.concatenate(spans, axis=1))


def links_inside(bitext: Bitext, links: Links, spans: Spans, longest: int) -> np.ndarray:
    """Return the links inside each phrase pair as bits (module docstring), (N,) int64."""
    # one flat array holds a grid for every sentence pair
    source, target = bitext.source, bitext.target
    corner = np.concatenate([[0], (source.lengths * target.lengths).cumsum()])
    sentence = np.repeat(np.arange(len(source)), source.lengths)  # of each source token

    def cell(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        pair = sentence[i]
        return corner[pair] + (i - source.offsets[pair]) * target.lengths[pair] + j - target.offsets[pair]

    grid = np.zeros(corner[-1], dtype=bool)
    grid[cell(links.source, links.target)] = True
    bits = np.zeros(len(spans.source), dtype=np.int64)
    first, row = cell(spans.source, spans.target), target.lengths[sentence[spans.source]]
    for i in range(longest):
        for j in range(longest):
            has = np.flatnonzero((spans.source_length > i) & (spans.target_length > j))
            bits[has] |= grid[first[has] + i * row[has] + j].astype(np.int64) << (longest * i + j)
    return bits


@dataclass(frozen=True)
class _Side:
    """The reach of one side's links on the other side."""

    left: np.ndarray  # (tokens,) words from here to the sentence's end
    low: np.ndarray  # (longest, tokens) the first token of the other side linked to a span, by length − 1; or NONE
    high: np.ndarray  # the last one; −1: none
    free_before: np.ndarray  # (tokens,) number of unlinked words directly before, in the sentence
    free_behind: np.ndarray

    @classmethod
    def of(cls, side: BitextSide, side_tokens: np.ndarray, other: np.ndarray, longest: int) -> _Side:
        size = len(side.tokens)
        left = np.repeat(side.offsets[1:], side.lengths) - np.arange(size)
        low, high = np.full((longest, size), NONE), np.full((longest, size), -1, dtype=np.int64)
        np.minimum.at(low[0], side_tokens, other)
        np.maximum.at(high[0], side_tokens, other)
        for length in range(2, min(longest, size) + 1):  # spans beyond the sentence's end are not used
            for reach, extreme in ((low, np.minimum), (high, np.maximum)):
                reach[length - 1, : size - length + 1] = extreme(
                    reach[length - 2, : size - length + 1], reach[0, length - 1 :]
                )
        is_free = high[0] < 0
        begin = np.repeat(side.offsets[:-1], side.lengths)
        place = np.arange(size)
        linked = np.maximum.accumulate(np.where(is_free, -1, place)) if size else place  # the last linked token so far
        last = np.maximum(np.concatenate([[-1], linked[:-1]])[:size], begin - 1)
        backwards = np.minimum.accumulate(np.where(is_free, size, place)[::-1])[::-1] if size else place
        following = np.minimum(np.concatenate([backwards[1:], [size]])[:size], place + left)
        return cls(left, low, high, place - last - 1, following - place - 1)


@dataclass(frozen=True)
class _Block:
    """Some sentence pairs with their links, and the index of the first token of each side."""

    bitext: Bitext
    links: Links
    source: int
    target: int


def _blocks(bitext: Bitext, links: Links) -> Iterator[_Block]:
    """Yield all sentence pairs in blocks. The links must be ordered by source token."""
    for first in range(0, len(bitext.source), SENTENCES_AT_ONCE):
        last = min(first + SENTENCES_AT_ONCE, len(bitext.source))
        sides, begins = [], []
        for side in (bitext.source, bitext.target):
            begin, end = side.offsets[first], side.offsets[last]
            sides.append(BitextSide(side.tokens[begin:end], side.offsets[first : last + 1] - begin))
            begins.append(int(begin))
        inside = slice(*np.searchsorted(links.source, bitext.source.offsets[[first, last]]))
        yield _Block(Bitext(*sides), Links(links.source[inside] - begins[0], links.target[inside] - begins[1]), *begins)


def _counted(pair: np.ndarray, bits: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return every distinct (pair, bits) once, with the sum of its counts, (3, distinct)."""
    order = np.lexsort((bits, pair))
    pair, bits, count = pair[order], bits[order], count[order]
    is_first = np.ones(len(pair), dtype=bool)
    is_first[1:] = (pair[1:] != pair[:-1]) | (bits[1:] != bits[:-1])
    row = is_first.cumsum() - 1
    total = np.bincount(row, count, int(is_first.sum())).astype(np.int64)
    return np.stack([pair[is_first], bits[is_first], total])


@dataclass(frozen=True)
class LinkedWords:
    """w(other | own) of words of one side given words of the other. The null word is `null`."""

    keys: np.ndarray  # own · size + other, rising
    probability: np.ndarray
    size: int
    null: int

    @classmethod
    def of(cls, side: np.ndarray, other: np.ndarray, num_side: int, num_other: int) -> LinkedWords:
        """Count pairs of linked words. num_side and num_other stand for the null words."""
        size = num_other + 1
        keys, counts = np.unique(side * size + other, return_counts=True)
        return cls(keys, counts / np.bincount(keys // size, counts)[keys // size], size, num_side)

    def __call__(self, side: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return w(other | side) of linked pairs."""
        return self.probability[np.searchsorted(self.keys, side * self.size + other)]


def linked_words(bitext: Bitext, links: Links, num_sources: int, num_targets: int) -> tuple[LinkedWords, LinkedWords]:
    """Return w(target word | source word), and w(source word | target word)."""
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
    """Return lex(other | side) of phrase pairs, (Q,).

    Args:
        side, other: words of the phrases, (Q, W), padded with −1.
        bits: the links, (Q,).
        side_step, other_step: bits per word on each side.
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
    """Yield the lines of a phrase table in byte order (as `LC_ALL=C sort`)."""
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
    """Return ids of words, (phrases, W), padded with −1."""
    place = phrases.begins[:, None] + np.arange(longest)
    words = tokens[np.minimum(place, len(tokens) - 1)] if len(tokens) else np.zeros_like(place)
    return np.where(np.arange(longest) < phrases.lengths[:, None], words, -1)


def _texts(rows: np.ndarray, words: tuple[str, ...]) -> list[list[str]]:
    return [[words[word] for word in row if word >= 0] for row in rows.tolist()]


def _ranks(texts: list[list[str]]) -> np.ndarray:
    """Return the rank of each text in byte order, including the blank after it in a line."""
    order = sorted(range(len(texts)), key=lambda n: (" ".join(texts[n]) + " |").encode())
    ranks = np.empty(len(texts), dtype=np.int64)
    ranks[order] = np.arange(len(texts))
    return ranks
