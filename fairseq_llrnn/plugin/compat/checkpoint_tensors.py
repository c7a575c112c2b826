"""What torch has read of a checkpoint, before anybody works with it: tensors no larger than their bytes in the file.

A tensor of steps of 0 has as many numbers as it says, and one number in the file: whoever copies it needs the memory.
Weights are numbers with which probabilities sum to one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.head.fingerprint import check_numbers

COUNTS = ".tree.learner."  # what the training of a tree has counted, which may be large


def check_tensors(path: str, state: Any) -> None:
    """Look at all tensors in dictionaries, lists and tuples, and at the names of the weights.

    Raises:
        DataError: a tensor that says to be larger than what is stored of it, that is sparse or without numbers; weights
            whose name is no text, or with which nobody can compute.
    """
    weights = state.get("model") if isinstance(state, dict) else None
    if isinstance(weights, dict) and not all(isinstance(name, str) for name in weights):
        raise DataError(f"{path}: refused: expected weights with names, found other keys; use one that fairseq saved")
    rest, seen = [state], set[int]()
    while rest:
        found = rest.pop()
        if isinstance(found, Tensor):
            if not _is_whole(found):
                raise DataError(
                    f"{path}: refused: expected tensors with all their numbers, found one of shape "
                    f"{tuple(found.shape)} without them; use one that fairseq saved"
                )
        elif isinstance(found, dict | list | tuple) and id(found) not in seen:  # a pickle may go in circles
            seen.add(id(found))
            rest.extend(found.values() if isinstance(found, dict) else found)
    if isinstance(weights, dict):
        check_numbers({name: weight for name, weight in weights.items() if COUNTS not in name}, path)


def _is_whole(tensor: Tensor) -> bool:
    if tensor.layout != torch.strided or tensor.is_meta:
        return False
    return tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()
