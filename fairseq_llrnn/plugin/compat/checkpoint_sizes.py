"""What a checkpoint's file looks like from outside, before torch reads it: whole, and no larger inside than outside.

torch writes a zip archive of uncompressed records, one per tensor. A compressed record, or several in the same place,
could ask for memory that the file does not have.

What torch has read of a checkpoint, before anybody works with it: tensors no larger than their bytes in the file.

A tensor of steps of 0 has as many numbers as it says, and one number in the file: whoever copies it needs the memory.
Weights are numbers with which probabilities sum to one.

A model that a checkpoint's options describe is no larger than the checkpoint: that is seen while it is built.

The options are untrusted input. A hidden size of 10⁹ asks for memory, 10⁸ layers for time without end, and which
options say so, each kind of model knows for itself. But whatever they are, every parameter of a model stands in its
checkpoint. So while one is built, what it has registered is counted, and what it asks torch to make is looked at
before it is made.
"""

from __future__ import annotations

import codecs
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.reading import kind_of
from fairseq_llrnn.head.checks import check_numbers

ZIP_MAGIC = b"PK"
GIVE = "give the .pt file that training wrote"


def check_file(path: str) -> None:
    """Refuse what is no file, and an archive that torch has not written so.

    Raises:
        OSError: none there, or no right to read it.
        DataError: something else than a file; compressed records; records that are larger than the file.
        zipfile.BadZipFile: cut short or damaged.
    """
    kind = kind_of(os.stat(path))
    if kind is not None:
        raise DataError(f"{path}: expected a checkpoint, found {kind}; {GIVE}", path)
    if not _is_zip(path):
        return
    with zipfile.ZipFile(path) as archive:
        records = archive.infolist()
    packed = [record.filename for record in records if record.compress_type != zipfile.ZIP_STORED]
    if any("/code/" in name for name in packed):
        raise DataError(f"{path}: refused: expected a checkpoint that fairseq saved, found a TorchScript archive")
    if packed or any(record.file_size != record.compress_size for record in records):
        raise DataError(
            f"{path}: refused: expected a checkpoint that fairseq saved, whose records are not compressed, found a "
            f"compressed one ({packed[0] if packed else 'of another size'}); use one that fairseq saved"
        )
    total, size = sum(record.file_size for record in records), os.path.getsize(path)
    if total > size:
        raise DataError(
            f"{path}: refused: expected a checkpoint that fairseq saved, found records of {total:,} bytes in a file of "
            f"{size:,}; use one that fairseq saved"
        )


def damage(path: str) -> str | None:
    """What is wrong with the file of a checkpoint, by its size and checksums; None where nothing is.

    Of a file that only `check_file` or torch refuses, nothing is said.
    """
    try:
        if not os.path.getsize(path):
            return "it is empty"
        if not _is_zip(path):
            with open(path, "rb") as file:  # torch's older formats are pickles or tar archives, without checksums
                return None if any(file.read(512)) else "it holds zeros"
        check_file(path)
        with zipfile.ZipFile(path) as archive:
            bad = archive.testzip()
        return None if bad is None else f"its record {bad} is damaged"
    except DataError:
        return None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:  # names that are no text
        return f"it is cut short or damaged: {error}"
    except OSError as error:
        return error.strerror or str(error)


def is_text(path: str) -> bool:
    """Whether a file begins as a text in UTF-8, which no checkpoint does, whole or damaged."""
    with open(path, "rb") as file:
        start = file.read(512)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # its last character may go on
    except UnicodeDecodeError:
        return False
    return bool(start) and not start.startswith(ZIP_MAGIC) and b"\0" not in start


def _is_zip(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == ZIP_MAGIC


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
        value = rest.pop()
        if isinstance(value, Tensor):
            if not _is_whole(value):
                raise DataError(
                    f"{path}: refused: expected tensors with all their numbers, found one of shape "
                    f"{tuple(value.shape)} without them; use one that fairseq saved"
                )
        elif isinstance(value, dict | list | tuple) and id(value) not in seen:  # a pickle may go in circles
            seen.add(id(value))
            rest.extend(value.values() if isinstance(value, dict) else value)
    if isinstance(weights, dict):
        check_numbers({name: weight for name, weight in weights.items() if COUNTS not in name}, path)


def _is_whole(tensor: Tensor) -> bool:
    if tensor.layout != torch.strided or tensor.is_meta:
        return False
    return tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()


# What takes sizes and makes a tensor of them
MAKERS = frozenset((torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.arange, torch.eye))
PRODUCTS = frozenset((Tensor.mul, Tensor.__mul__, torch.mul))  # a table of positions is one
REPEATED = 4  # a tied parameter is made and thrown away; a table may be made in double precision first
BESIDE_NUMBERS, BESIDE_TENSORS = 1 << 20, 1000  # what a model may register that no checkpoint has
BESIDE_AT_ONCE = 1 << 26  # numbers of one tensor that is no parameter, as of positions or of the prior: 256 MiB
_counts: list[_Sizes] = []  # the models that are being built, one for the background of the other: the last one counts


@contextmanager
def no_larger_than(weights: Mapping[str, Any]) -> Iterator[None]:
    """Around what builds the model of a checkpoint.

    Args:
        weights: its tensors by name.

    Raises, from what is inside:
        ValueError: a model that is larger than they are.
    """
    sizes = _Sizes([value.numel() for value in weights.values() if isinstance(value, Tensor)])
    hook = register_module_parameter_registration_hook(sizes.count)
    _counts.append(sizes)
    try:
        with sizes:
            yield
    finally:
        _counts.pop()
        hook.remove()


class _Sizes(TorchFunctionMode):
    """Of one model."""

    def __init__(self, stored: Sequence[int]) -> None:
        super().__init__()
        self.stored, self.numbers, self.tensors = stored, 0, 0
        self.at_once = REPEATED * sum(stored) + BESIDE_AT_ONCE

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if _counts[-1] is self:
            if function in MAKERS:
                self._check(function(*args, **{**named, "device": "meta", "pin_memory": False}).numel())
            elif function in PRODUCTS and all(isinstance(one, Tensor) for one in args[:2]):
                self._check(torch.Size(torch.broadcast_shapes(*(one.shape for one in args[:2]))).numel())
        return function(*args, **named)

    def _check(self, numbers: int) -> None:
        if numbers > self.at_once:
            raise self._error(f"a tensor of {numbers:,} numbers")

    def count(self, module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        """The hook for every parameter that a module registers."""
        if parameter is None or _counts[-1] is not self:
            return
        self.numbers, self.tensors = self.numbers + parameter.numel(), self.tensors + 1
        if self.numbers > REPEATED * sum(self.stored) + BESIDE_NUMBERS:
            raise self._error(f"more than {self.numbers:,} numbers")
        if self.tensors > REPEATED * len(self.stored) + BESIDE_TENSORS:
            raise self._error(f"more than {self.tensors:,} tensors")

    def _error(self, size: str) -> ValueError:
        numbers, tensors = sum(self.stored), len(self.stored)
        return ValueError(f"a model of {size}, where the checkpoint holds {numbers:,} numbers in {tensors:,} tensors")
