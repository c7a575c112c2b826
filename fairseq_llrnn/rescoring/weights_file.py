"""Tuned weights on disk: a small JSON file that says what they weigh and how they were found."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import whole_file
from fairseq_llrnn.files.numbers import LARGEST_SCORE
from fairseq_llrnn.files.reading import reading
from fairseq_llrnn.files.special_files import read_whole


def write_weights(path: Path, names: Sequence[str], weights: np.ndarray, facts: dict[str, Any]) -> None:
    """`facts`: what else a person may want to know of them, such as the metric and the dev scores."""
    record = {"weights": dict(zip(names, weights.tolist(), strict=True)), **facts}
    with whole_file(path) as file:
        file.write(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def read_weights_file(path: Path, names: Sequence[str]) -> np.ndarray:
    """Weights (D,) of these features.

    Raises:
        DataError: it cannot be read, is no such file, or weighs other features.
    """
    with reading(path):
        content = read_whole(path)
    try:
        record = json.loads(content)
        found = {str(name): float(value) for name, value in record["weights"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(
            f'{path}: expected weights that `llrnn rescore --tune` wrote ({{"weights": {{"model": 0.3, …}}}}), found '
            "something else; tune again"
        ) from None
    if sorted(found) != sorted(names):
        raise DataError(
            f"{path}: expected weights of {', '.join(names)}, found those of {', '.join(found)}; give the same models, "
            "and a list of the same kind, as when they were tuned"
        )
    if not all(abs(weight) <= LARGEST_SCORE for weight in found.values()):
        raise DataError(f"{path}: expected finite weights, found {found}; tune again ({LARGEST_SCORE:g} is the most)")
    return np.array([found[name] for name in names])
