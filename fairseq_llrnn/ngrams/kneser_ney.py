"""N-gram models estimated from sentences of ids: smoothed unigrams, and interpolated modified Kneser-Ney.

Sizes: V words of the dictionary, T positions of the text with <s> and </s>, E n-grams, N the order.

`unigram_weights` gives unseen words some probability. Sources: Ney, Essen & Kneser 1994 (absolute discounting, d =
n₁/(n₁+2n₂)); Gale & Sampson 1995 (simple Good–Turing). A word that is not `allowed` has weight zero and no share of the
freed mass.

`estimate` is modified Kneser-Ney smoothing. Source: Chen & Goodman 1999, "An Empirical Study of Smoothing Techniques
for Language Modeling", §3, and eq. 17 for the discounts. Details follow KenLM's lmplz (Heafield et al. 2013), and the
models are equal:

    p(w | h) = max(a(h w) − D(a(h w)), 0) / Σ_v a(h v)  +  γ(h) p(w | h'),    γ(h) = Σ_v D(a(h v)) / Σ_v a(h v)

The adjusted count a is the count for n-grams of the highest order and those that begin with <s>, and the number of
different words before it for all others. D is D₁, D₂, D₃₊ by the count, one set per order:

    Y = n₁ / (n₁ + 2 n₂),    D_i = i − (i + 1) Y n_{i+1} / n_i      (n_i: number of n-grams with the adjusted count i)

If this gives no number from above 0 to i (in small or artificial texts some n_i is zero), the order uses FALLBACK, as
lmplz does with --discount_fallback. Below the unigrams is the uniform distribution over all possible next words: all
words of the dictionary, <unk> and </s>. A pruned n-gram gives all of its adjusted count to γ(h).

For a closed dictionary, lmplz needs --limit_vocab_file, --discount_fallback, and --vocab_pad with the number of words,
<s>, </s> and <unk>. Without the padding, each unseen word gets all of the probability of <unk>. One <s> begins a
sentence. Programs that begin it with N − 1 of them differ by less than 0.1 % of perplexity (Hungarian and French UD).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import BOS, EOS, UNK, WordList
from fairseq_llrnn.ngrams.ngrams import EMPTY, NGrams, Sentences, trie_keys

LARGEST_DISCOUNT = 0.9


def unigram_weights(
    counts: np.ndarray, allowed: np.ndarray, smoothing: str = "absolute", pseudo_count: float = 1.0
) -> np.ndarray:
    """Return probabilities (V,), float64, summing to one over the allowed words.

    Args:
        counts: (V,) non-negative counts.
        allowed: (V,) bool.
        smoothing: "additive" adds `pseudo_count` to every allowed word. "absolute" takes the discount d from every seen
            word and gives it to the unseen ones in equal parts, none larger than the rarest seen word's weight.
            "good-turing" does the same with the simple Good–Turing estimates of unseen mass and counts. "none" does
            nothing. If every allowed word was seen, absolute and Good–Turing return the relative frequencies.

    Raises:
        DataError: no allowed word was seen, and the smoothing is not additive.
    """
    counts = np.where(allowed, counts, 0).astype(np.float64)
    if smoothing == "additive":
        weights = np.where(allowed, counts + pseudo_count, 0.0)
        return weights / weights.sum()
    if counts.sum() == 0:
        raise DataError(
            "unigram background: expected counts, found none for any word of the dictionary; "
            "give a text with --count-text, or use --background uniform"
        )
    unseen = allowed & (counts == 0)
    if smoothing == "none" or not unseen.any():
        return counts / counts.sum()
    if smoothing == "absolute":
        seen, freed = _absolute_discount(counts)
    else:
        seen, freed = _good_turing(counts)
    seen = seen / seen.sum()
    least = seen[counts > 0].min()
    num_unseen = int(unseen.sum())
    # if few unseen words would each get more than a seen word, they get the weight of the rarest one
    share = min(freed / num_unseen, least / (1.0 + num_unseen * least))
    weights = seen * (1.0 - num_unseen * share)
    weights[unseen] = share
    return weights


def _absolute_discount(counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Return discounted counts (V,) and the freed mass."""
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    # without a word of count two, words of count one would lose everything: the bound keeps a tenth of each
    discount = min(once / (once + 2.0 * twice), LARGEST_DISCOUNT) if once else 0.5
    discounted = np.maximum(counts - discount, 0.0)
    return discounted, 1.0 - discounted.sum() / counts.sum()


def _good_turing(counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Return adjusted counts r* (V,) and the mass N₁/N of the unseen."""
    total = counts.sum()
    r, n = np.unique(counts[counts > 0], return_counts=True)
    unseen_mass = float(n[r == 1].sum() / total)
    if len(r) < 3 or unseen_mass in (0.0, 1.0):
        return counts, 1.0 / (total + 1.0) if unseen_mass == 0.0 else min(unseen_mass, 0.5)
    # Z_r: counts of counts averaged over the gap to their neighbours, fitted by a line in log-log space
    before = np.concatenate([[0.0], r[:-1]])
    after = np.concatenate([r[1:], [2.0 * r[-1] - before[-1]]])
    slope, _ = np.polyfit(np.log(r), np.log(2.0 * n / (after - before)), 1)
    linear = r * np.power(1.0 + 1.0 / r, slope + 1.0)
    adjusted = linear.copy()
    frequency = dict(zip(r.tolist(), n.tolist(), strict=True))
    for i, count in enumerate(r.tolist()):
        following = frequency.get(count + 1.0)
        if following is None:
            break
        turing = (count + 1.0) * following / n[i]
        spread = np.sqrt((count + 1.0) ** 2 * following / n[i] ** 2 * (1.0 + following / n[i]))
        if abs(turing - linear[i]) <= 1.65 * spread:
            break  # the line is the better estimate from the first count on for which both agree
        adjusted[i] = turing
    # estimates of neighbouring counts are noisy, but a more frequent word must not be less probable
    adjusted = np.maximum.accumulate(adjusted)
    lookup = dict(zip(r.tolist(), adjusted.tolist(), strict=True))
    return np.array([lookup.get(c, 0.0) for c in counts.tolist()]), unseen_mass


LARGEST_ORDER = 8  # enough for characters
AT_ONCE = 1 << 22  # positions
FALLBACK = (0.5, 1.0, 1.5)


def estimate(
    sentences: Sentences,
    words: WordList,
    order: int,
    prune: Sequence[int] = (),
    unigrams: np.ndarray | None = None,
) -> NGrams:
    """Estimate the model of an order from 1 to LARGEST_ORDER. p(· | h) sums to one over the predictable words for every
    h.

    Args:
        prune: n-grams of order n with a count of at most prune[n − 1] are left out. The last number also applies to all
            higher orders. The numbers never fall, and are 0 for unigrams.
        unigrams: (V,) log p(w), −inf for words that are not predictable, instead of the text's own.

    Raises:
        DataError: sentences without any word.
    """
    if len(sentences.tokens) == 0:
        raise DataError(f"n-grams of order {order}: expected sentences with words, found none; give a text with some")
    counts = _Counts(sentences, words, order)
    predictable = words.predictable
    log_probs = np.full(len(counts.last), -np.inf)
    back_offs = np.zeros(len(counts.last))
    kept = np.ones(len(counts.last), dtype=bool)
    for n in range(1, order + 1):
        span = slice(counts.starts[n - 1], counts.starts[n])
        histories, adjusted = counts.histories[span], counts.adjusted[span]
        if n > 1 and prune:
            kept[span] = counts.raw[span] > prune[min(n, len(prune)) - 1]
        discount_of = np.array([0.0, *discounts(adjusted)])  # no discount of zero counts
        discounted = np.where(kept[span], np.maximum(adjusted - discount_of[np.minimum(adjusted, 3)], 0.0), 0.0)
        # shape: (E + 1,), the last for the empty history, which is −1
        total = np.bincount(histories % (len(kept) + 1), adjusted, len(kept) + 1)
        freed = np.bincount(histories % (len(kept) + 1), adjusted - discounted, len(kept) + 1)
        gamma = np.divide(freed, total, out=np.ones(len(kept) + 1), where=total > 0)
        with np.errstate(divide="ignore"):
            if n == 1:
                interpolated = discounted / total[EMPTY] + gamma[EMPTY] / predictable.sum()
                log_probs[span] = np.log(np.where(predictable, interpolated, 0.0)) if unigrams is None else unigrams
                continue
            lower = np.exp(log_probs[counts.suffixes[span]])
            log_probs[span] = np.log(discounted / total[histories] + gamma[histories] * lower)
        previous = slice(counts.starts[n - 2], counts.starts[n - 1])
        back_offs[previous] = np.log(gamma[previous])
    return NGrams(words.symbols, counts.starts, counts.histories, counts.last, log_probs, back_offs).only(kept)


def discounts(adjusted: np.ndarray) -> tuple[float, float, float]:
    """Return D₁, D₂, D₃₊ of one order from the adjusted counts of its n-grams."""
    n1, n2, n3, n4 = (int((adjusted == i).sum()) for i in range(1, 5))
    if 0 in (n1, n2, n3):
        return FALLBACK
    y = n1 / (n1 + 2.0 * n2)
    estimated = (1.0 - 2.0 * y * n2 / n1, 2.0 - 3.0 * y * n3 / n2, 3.0 - 4.0 * y * n4 / n3)
    return estimated if all(0.0 < d <= i for i, d in enumerate(estimated, 1)) else FALLBACK


class _Counts:
    """All n-grams of a text up to an order, numbered as in `NGrams`, with their counts."""

    def __init__(self, sentences: Sentences, words: WordList, order: int) -> None:
        size, bos = len(words), words.symbols.index(BOS)
        text, place = _with_ends(sentences, words)
        self.starts = np.array([0, size])
        self.histories = np.full(size, EMPTY, dtype=np.int64)
        self.last = np.arange(size, dtype=np.int64)
        self.suffixes = np.full(size, EMPTY, dtype=np.int64)
        self.raw = np.bincount(text, minlength=size)
        first = np.arange(size)  # the first word of every n-gram
        rows = text  # shape: (T,), the n-gram of the current order that ends here, or any number if there is none
        shorter = np.arange(size, dtype=np.int64)  # keys of the current order, rising
        for n in range(2, order + 1):
            keys, raw = _different(_all_keys(rows, text, place, n, size))
            histories, last = keys // size - 1, keys % size
            # the suffix of h w is the suffix of h followed by w: it ends at the same place of the text
            suffix_keys = trie_keys(self.suffixes[histories], last, size)
            suffixes = last if n == 2 else self.starts[-2] + np.searchsorted(shorter, suffix_keys)
            self.histories = np.concatenate([self.histories, histories])
            self.last = np.concatenate([self.last, last])
            self.suffixes = np.concatenate([self.suffixes, suffixes])
            self.raw = np.concatenate([self.raw, raw])
            first = np.concatenate([first, first[histories]])
            if n < order:
                rows = _numbers(rows, text, place, n, size, keys, int(self.starts[-1]))
            self.starts, shorter = np.append(self.starts, self.starts[-1] + len(keys)), keys
        longer = self.suffixes[size:]
        self.adjusted = np.bincount(longer, minlength=len(self.last))
        as_counted = first == bos
        as_counted[self.starts[-2] :] = True
        self.adjusted = np.where(as_counted, self.raw, self.adjusted)
        self.adjusted[bos] = 0  # never predicted


def _keys(rows: np.ndarray, text: np.ndarray, place: np.ndarray, n: int, size: int, part: slice) -> np.ndarray:
    """Return the keys of the n-grams that end in a part of the text, which does not begin at its first word."""
    is_long_enough = place[part] >= n - 1
    history = rows[part.start - 1 : part.stop - 1]
    return trie_keys(history[is_long_enough].astype(np.int64), text[part][is_long_enough], size)


def _all_keys(rows: np.ndarray, text: np.ndarray, place: np.ndarray, n: int, size: int) -> np.ndarray:
    """Return the keys of all n-grams, computed block by block."""
    keys = np.empty(np.count_nonzero(place[1:] >= n - 1), dtype=np.int64)
    filled = 0
    for begin in range(1, len(text), AT_ONCE):
        block = _keys(rows, text, place, n, size, slice(begin, min(begin + AT_ONCE, len(text))))
        keys[filled : filled + len(block)] = block
        filled += len(block)
    return keys


def _different(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different keys, rising, with their counts. The array is sorted in place, since it may be large."""
    keys.sort()
    firsts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
    return keys[firsts], np.diff(np.append(firsts, len(keys)))


def _numbers(
    rows: np.ndarray, text: np.ndarray, place: np.ndarray, n: int, size: int, keys: np.ndarray, start: int
) -> np.ndarray:
    """Return the n-gram that ends at each position, from `start` on: (T,), or 0 if there is none."""
    numbers = np.zeros(len(text), dtype=np.int32 if start + len(keys) < 2**31 else np.int64)
    for begin in range(1, len(text), AT_ONCE):
        part = slice(begin, min(begin + AT_ONCE, len(text)))
        positions = np.flatnonzero(place[part] >= n - 1) + begin
        numbers[positions] = start + np.searchsorted(keys, _keys(rows, text, place, n, size, part))
    return numbers


def _with_ends(sentences: Sentences, words: WordList) -> tuple[np.ndarray, np.ndarray]:
    """Return the text with <s> before and </s> after every sentence, and every token's place in its sentence: (T,),
    (T,).

    Places from LARGEST_ORDER on are all LARGEST_ORDER.
    """
    bos, eos, unk = (words.symbols.index(symbol) for symbol in (BOS, EOS, UNK))
    ordinary = words.predictable
    ordinary[eos] = False
    lengths = sentences.lengths + 2
    ends = lengths.cumsum()
    text = np.empty(int(lengths.sum()), dtype=np.int32)
    inner = np.ones(len(text), dtype=bool)
    inner[ends - 1] = inner[ends - lengths] = False
    text[inner] = np.where(ordinary[sentences.tokens], sentences.tokens, unk)
    text[ends - lengths], text[ends - 1] = bos, eos
    place = np.full(len(text), LARGEST_ORDER, dtype=np.int8)
    for distance in range(LARGEST_ORDER - 1, -1, -1):
        place[(ends - lengths)[lengths > distance] + distance] = distance
    return text, place
