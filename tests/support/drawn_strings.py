"""A chi-square test of drawn strings."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2

UNLIKELY = 1e-4  # p of a test that fails; there are some 60, with fixed seeds


def check_drawn(drawn: Sequence[str], strings: Sequence[str], probabilities: np.ndarray) -> None:
    """Compare counts with expectations: strings of which at least five are expected, and all others together."""
    counts, expected = Counter(drawn), probabilities * len(drawn)
    often = expected >= 5
    observed = np.array([counts[s] for s in strings])[often]
    observed = np.append(observed, len(drawn) - observed.sum())
    expected = np.append(expected[often], len(drawn) - expected[often].sum())
    kept = expected >= 5
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert kept.sum() > 1 and chi2.sf(statistic, kept.sum() - 1) > UNLIKELY, (statistic, kept.sum() - 1)
