"""From counts to a unigram that leaves some mass to words never seen.

Sizes: V words. Sources: Ney, Essen & Kneser 1994 (absolute discounting, d = n₁/(n₁+2n₂)); Gale & Sampson 1995 (simple
Good–Turing). A word that is not `allowed` gets weight zero and no share of the freed mass.
"""

from __future__ import annotations

import numpy as np

from fairseq_llrnn.errors import DataError

LARGEST_DISCOUNT = 0.9


def unigram_weights(
    counts: np.ndarray, allowed: np.ndarray, smoothing: str = "absolute", pseudo_count: float = 1.0
) -> np.ndarray:
    """Probabilities (V,), float64, summing to one over the allowed words.

    Args:
        counts: (V,) non-negative counts. allowed: (V,) bool.
        smoothing: "additive" (adds `pseudo_count` to every allowed word), "absolute" (takes the discount d from every
            seen word and gives it to the unseen ones in equal parts, none of them more than the rarest seen word has),
            "good-turing" (likewise, with the simple Good–Turing estimates of unseen mass and counts), "none".
            Where every allowed word has been seen, absolute and Good–Turing leave the relative frequencies as they are:
            there is no word to take the mass.

    Raises:
        DataError: no allowed word was seen (and nothing is added).
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
    how_many = int(unseen.sum())
    # few unseen words could each get more than a word that was seen: then all of them get as much as the rarest one
    each = min(freed / how_many, least / (1.0 + how_many * least))
    weights = seen * (1.0 - how_many * each)
    weights[unseen] = each
    return weights


def _absolute_discount(counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Discounted counts (V,) and the freed mass."""
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    # a text with no word seen twice would lose all of its once-seen words: the bound keeps a tenth of each
    discount = min(once / (once + 2.0 * twice), LARGEST_DISCOUNT) if once else 0.5
    discounted = np.maximum(counts - discount, 0.0)
    return discounted, 1.0 - discounted.sum() / counts.sum()


def _good_turing(counts: np.ndarray) -> tuple[np.ndarray, float]:
    """Adjusted counts r* (V,) and the mass N₁/N of the unseen."""
    total = counts.sum()
    r, n = np.unique(counts[counts > 0], return_counts=True)
    unseen_mass = float(n[r == 1].sum() / total)
    if len(r) < 3 or unseen_mass in (0.0, 1.0):
        return counts, 1.0 / (total + 1.0) if unseen_mass == 0.0 else min(unseen_mass, 0.5)
    # Z_r: counts of counts averaged over the gap to their neighbours, then a straight line in log-log space
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
            break  # from the first count on where both agree, the line is the better estimate
        adjusted[i] = turing
    # the estimates of neighbouring counts are noisy, but a word seen more often is never the less probable one
    adjusted = np.maximum.accumulate(adjusted)
    lookup = dict(zip(r.tolist(), adjusted.tolist(), strict=True))
    return np.array([lookup.get(c, 0.0) for c in counts.tolist()]), unseen_mass
