"""Extract all phrase pairs of a bitext that are consistent with its links, with counts and scores.

A span of source words and a span of target words of a sentence pair are a phrase pair if at least one link joins them,
and no link joins a word of either to a word outside (Och & Ney 2004, §4.1; Koehn, Och & Marcu 2003, §3). Unlinked words
may be at their ends, and inside.

Scores are the four of Moses, by counting (Koehn, Och & Marcu 2003, §3 and §4):

    φ(f | e) = count(f, e) / Σ_f' count(f', e)            φ(e | f) likewise
    w(e | f) = links(f, e) / Σ_e' links(f, e')            of words; unlinked words are linked to the null word
    lex(e | f, a) = Π_j  mean over the source words i linked to e_j of w(e_j | f_i), or w(e_j | null) if unlinked

f is the source phrase, e the target phrase, a the most frequent links inside the pair. These links are stored as a
number: bit W·i + j is set if source word i and target word j of phrases of at most W ≤ 7 words are linked. So an
occurrence of a phrase pair takes 16 bytes.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from fairseq_llrnn.alignment.bitext import Bitext, Links
from llrnn_research.phrase_tables.phrase_table import PhrasePair

LONGEST_PHRASE = 7  # words; also Moses' default
NULL = -1  # the word to which unlinked words are linked
BITS = 32  # of the number of a target phrase

Phrase = tuple[int, ...]


class SentencePair(NamedTuple):
    """Words of both sides, and for each word the places of the other side that are linked to it."""

    source: list[int]
    target: list[int]
    source_links: list[list[int]]
    target_links: list[list[int]]


def sentence_pairs(bitext: Bitext, links: Links) -> Iterator[SentencePair]:
    """Yield the sentence pairs of a bitext. The links must be ordered by source token."""
    sides = bitext.source, bitext.target
    bounds = np.searchsorted(links.source, bitext.source.offsets)
    for n in range(len(bitext.source)):
        begins = [int(side.offsets[n]) for side in sides]
        source, target = (side.tokens[side.offsets[n] : side.offsets[n + 1]].tolist() for side in sides)
        pair = SentencePair(source, target, [[] for _ in source], [[] for _ in target])
        rows = slice(bounds[n], bounds[n + 1])
        for i, j in zip(links.source[rows].tolist(), links.target[rows].tolist(), strict=True):
            pair.source_links[i - begins[0]].append(j - begins[1])
            pair.target_links[j - begins[1]].append(i - begins[0])
        yield pair


def consistent_spans(pair: SentencePair, longest: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the phrase pairs of at most `longest` words: begin and end in the source, begin and end in the target."""
    num_target = len(pair.target)
    for begin in range(len(pair.source)):
        low, high = num_target, -1  # the linked target span
        for end in range(begin + 1, min(begin + longest, len(pair.source)) + 1):
            low, high = min([low, *pair.source_links[end - 1]]), max([high, *pair.source_links[end - 1]])
            if high - low >= longest:
                break
            back = (i for places in pair.target_links[low : high + 1] for i in places)
            if high < 0 or not all(begin <= i < end for i in back):
                continue
            first = low
            while first >= 0 and high - first < longest and (first == low or not pair.target_links[first]):
                last = high
                while last < min(num_target, first + longest) and (last == high or not pair.target_links[last]):
                    yield begin, end, first, last + 1
                    last += 1
                first -= 1


def phrase_pairs(
    bitext: Bitext, links: Links, source_words: Sequence[str], target_words: Sequence[str], longest: int
) -> Iterator[PhrasePair]:
    """Yield the lines of a phrase table in byte order (as `LC_ALL=C sort`)."""
    sources, targets = dict[Phrase, int](), dict[Phrase, int]()  # numbers
    numbers, bits = array("q"), array("q")
    pairs = sentence_pairs(bitext, links)
    for pair in tqdm(pairs, "extracting phrases", len(bitext.source), unit=" sentences", leave=False, disable=None):
        for begin, end, first, last in consistent_spans(pair, longest):
            s = sources.setdefault(tuple(pair.source[begin:end]), len(sources))
            t = targets.setdefault(tuple(pair.target[first:last]), len(targets))
            numbers.append(s << BITS | t)
            cells = ((i - begin, j - first) for i in range(begin, end) for j in pair.source_links[i])
            bits.append(sum(1 << (longest * i + j) for i, j in cells))
    pair_numbers, inside, counts = _most_frequent(np.array(numbers, dtype=np.int64), np.array(bits, dtype=np.int64))
    source, target = pair_numbers >> BITS, pair_numbers & ((1 << BITS) - 1)
    of_source, of_target = np.bincount(source, counts), np.bincount(target, counts)
    forward, backward = word_probabilities(sentence_pairs(bitext, links))
    f_of, e_of = list(sources), list(targets)
    f_texts, e_texts = ([tuple(words[i] for i in phrase) for phrase in phrases]
                        for words, phrases in ((source_words, f_of), (target_words, e_of)))  # fmt: skip
    for q in np.lexsort((_ranks(e_texts)[target], _ranks(f_texts)[source])).tolist():
        s, t, count = int(source[q]), int(target[q]), float(counts[q])
        of_pair = tuple(divmod(place, longest) for place in range(longest * longest) if int(inside[q]) >> place & 1)
        scores = (
            count / of_target[t], lexical_weight(f_of[s], e_of[t], of_pair, backward),
            count / of_source[s], lexical_weight(e_of[t], f_of[s], [(j, i) for i, j in of_pair], forward),
        )  # fmt: skip
        yield PhrasePair(f_texts[s], e_texts[t], scores, of_pair, (float(of_target[t]), float(of_source[s]), count))


def _most_frequent(pair: np.ndarray, bits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each distinct pair, its most frequent bits (the smallest among ties), and its number of occurrences."""
    rows, count = np.unique(np.stack([pair, bits], axis=1), axis=0, return_counts=True)
    order = np.lexsort((rows[:, 1], -count, rows[:, 0]))
    distinct, first, row = np.unique(rows[order, 0], return_index=True, return_inverse=True)
    return distinct, rows[order[first], 1], np.bincount(row, count[order], len(distinct))


Probabilities = Mapping[tuple[int, int], float]  # by (given word, word)


def word_probabilities(pairs: Iterable[SentencePair]) -> tuple[Probabilities, Probabilities]:
    """Return w(target word | source word), and w(source word | target word)."""
    counts: Counter[tuple[int, int]] = Counter()
    for source, target, source_links, target_links in pairs:
        for word, places in zip(source, source_links, strict=True):
            counts.update((word, target[j]) for j in places)
            counts[word, NULL] += not places
        for word, places in zip(target, target_links, strict=True):
            counts[NULL, word] += not places
    of_source, of_target = Counter[int](), Counter[int]()
    for (s, t), count in counts.items():
        of_source[s] += count
        of_target[t] += count
    return (
        {(s, t): count / of_source[s] for (s, t), count in counts.items() if count},
        {(t, s): count / of_target[t] for (s, t), count in counts.items() if count},
    )


def lexical_weight(phrase: Phrase, given: Phrase, links: Iterable[tuple[int, int]], words: Probabilities) -> float:
    """Return lex(phrase | given). links: (place in phrase, place in given)."""
    linked: list[list[float]] = [[] for _ in phrase]
    for i, j in links:
        linked[i].append(words[given[j], phrase[i]])
    weight = 1.0
    for word, probabilities in zip(phrase, linked, strict=True):
        weight *= sum(probabilities) / len(probabilities) if probabilities else words[NULL, word]
    return weight


def _ranks(texts: Sequence[Sequence[str]]) -> np.ndarray:
    """Return the rank of each text in byte order, including the blank after it in a line."""
    order = sorted(range(len(texts)), key=lambda n: (" ".join(texts[n]) + " |").encode())
    ranks = np.empty(len(texts), dtype=np.int64)
    ranks[order] = np.arange(len(texts))
    return ranks
