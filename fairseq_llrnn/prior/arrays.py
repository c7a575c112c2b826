"""Checks of the arrays of a prior, which are untrusted input.

All functions raise ValueError, KeyError or TypeError for an unsound array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairseq_llrnn.features.feature_table import FeatureTable, Signatures, are_rows, check_values
from fairseq_llrnn.files.numbers import LARGEST_STORED_LOG

LARGEST_TOTAL = 50.0  # of the logarithm of a sum of weights, in nats


def read_array(arrays: Mapping[str, np.ndarray], name: str, dtype: type) -> np.ndarray:
    """Return the one-dimensional array `name` of type `dtype`."""
    array = arrays[name]
    if array.dtype != dtype or array.ndim != 1:
        raise ValueError(f"{name}: expected a row of {np.dtype(dtype)}, found {array.dtype} of shape {array.shape}")
    return array


def check_log_weights(log_weights: np.ndarray, size: int) -> None:
    """Raise ValueError unless these are `size` log weights: at least one finite, none NaN or +inf."""
    if len(log_weights) != size:
        raise ValueError(f"log_weights: expected {size:,} numbers, found {len(log_weights):,}")
    if np.isnan(log_weights).any() or np.isposinf(log_weights).any() or np.isneginf(log_weights).all():
        raise ValueError("log_weights: expected finite weights, some of them above 0, found others")
    if (np.abs(log_weights[np.isfinite(log_weights)]) > LARGEST_STORED_LOG).any():
        raise ValueError(f"log_weights: expected logarithms up to {LARGEST_STORED_LOG:,.0f}, found larger ones")


def check_total(log_weights: np.ndarray) -> None:
    """Raise ValueError if the sum of the weights is so large that float32 sums with them are inexact.

    The weights sum to one, or to at most the number of words after a temperature above 1.
    """
    largest = log_weights.max()
    total = float(largest + np.log(np.exp(log_weights - largest).sum()))
    if total > LARGEST_TOTAL:
        raise ValueError(f"log_weights: expected a sum with a logarithm up to {LARGEST_TOTAL:g}, found {total:g}")


def read_signatures(arrays: Mapping[str, np.ndarray], side: str, names: Sequence[str]) -> Signatures:
    """Return the signatures of `side` ("output" or "input") over the features `names`."""
    offsets, indices = (read_array(arrays, f"{side}_{name}", np.int64) for name in ("offsets", "indices"))
    values = read_array(arrays, f"{side}_values", np.float32)
    class_of = read_array(arrays, f"{side}_class_of", np.int64)
    sound = (
        are_rows(offsets, indices, len(names))
        and len(offsets) > 1
        and len(values) == len(indices)
        and len(class_of) > 0
        and class_of.min() >= 0
        and class_of.max() < len(offsets) - 1
    )
    if not sound:
        raise ValueError(f"the {side} signatures point outside their tables")
    check_values(values, side)
    return Signatures(class_of, FeatureTable(tuple(names), offsets, indices, values))
