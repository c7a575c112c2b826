"""Limit the memory of a checkpoint: its file, the tensors read from it, and the model built from its options.

The file is checked before torch reads it. torch writes a zip archive of uncompressed records, one per tensor. A
compressed record, or several records in the same place, could need more memory than the file has.

The tensors are checked before they are used: none is larger than its bytes in the file. A tensor with strides of 0
claims many numbers and stores one. A copy of it needs the memory of all. Weights must be finite numbers.

The model must not be larger than the checkpoint, and is checked while it is built. The options are untrusted: a hidden
size of 10⁹ needs too much memory, and 10⁸ layers too much time. Which options do so depends on the model. But every
parameter of a model is in its checkpoint. So registered parameters are counted, and the size of a tensor is checked
before torch creates it.
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
    """Raise an error for a path that is no file, or an archive that torch did not write.

    Raises:
        OSError: the file is missing, or may not be read.
        DataError: not a regular file, or records that are compressed or larger than the file.
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
    """Describe the damage of a checkpoint's file, by its size and checksums, or None if it is sound.

    It does not report what only `check_file` or torch rejects.
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
    """Return whether a file begins with UTF-8 text, which no checkpoint does, whole or damaged."""
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


COUNTS = ".tree.learner."  # counts of an output tree's training, which may be large


def check_tensors(path: str, state: Any) -> None:
    """Check all tensors in dictionaries, lists and tuples, and the names of the weights.

    Raises:
        DataError: a tensor that claims more numbers than it stores, is sparse or has no data, or weights with a name
            that is no text, or with values that are not finite.
    """
    weights = state.get("model") if isinstance(state, dict) else None
    if isinstance(weights, dict) and not all(isinstance(name, str) for name in weights):
        raise DataError(f"{path}: refused: expected weights with names, found other keys; use one that fairseq saved")
    pending, seen = [state], set[int]()
    while pending:
        value = pending.pop()
        if isinstance(value, Tensor):
            if not _is_whole(value):
                raise DataError(
                    f"{path}: refused: expected tensors with all their numbers, found one of shape "
                    f"{tuple(value.shape)} without them; use one that fairseq saved"
                )
        elif isinstance(value, dict | list | tuple) and id(value) not in seen:  # a pickle may have cycles
            seen.add(id(value))
            pending.extend(value.values() if isinstance(value, dict) else value)
    if isinstance(weights, dict):
        check_numbers({name: weight for name, weight in weights.items() if COUNTS not in name}, path)


def _is_whole(tensor: Tensor) -> bool:
    if tensor.layout != torch.strided or tensor.is_meta:
        return False
    return tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes()


# functions that create a tensor of given sizes
MAKERS = frozenset((torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.arange, torch.eye))
PRODUCTS = frozenset((Tensor.mul, Tensor.__mul__, torch.mul))  # tables of positions are products
REPEATED = 4  # tied parameters are created and discarded; a table may first be created in double precision
EXTRA_NUMBERS, EXTRA_TENSORS = 1 << 20, 1000  # parameters that a model may register outside its checkpoint
EXTRA_AT_ONCE = 1 << 26  # numbers of one tensor that is no parameter, such as positions or the prior: 256 MiB
_counts: list[_Sizes] = []  # models under construction, each for the background of the one before; the last is counted


@contextmanager
def no_larger_than(weights: Mapping[str, Any]) -> Iterator[None]:
    """Limit the size of the model that is built inside the block.

    Args:
        weights: the tensors of its checkpoint by name.

    Raises, from the code inside:
        ValueError: a model that is larger than the weights.
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
    """Counts the sizes of one model."""

    def __init__(self, stored: Sequence[int]) -> None:
        super().__init__()
        self.stored, self.numbers, self.tensors = stored, 0, 0
        self.at_once = REPEATED * sum(stored) + EXTRA_AT_ONCE

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if _counts[-1] is self:
            if function in MAKERS:
                self._check(function(*args, **{**named, "device": "meta", "pin_memory": False}).numel())
            elif function in PRODUCTS and all(isinstance(factor, Tensor) for factor in args[:2]):
                self._check(torch.Size(torch.broadcast_shapes(*(factor.shape for factor in args[:2]))).numel())
        return function(*args, **named)

    def _check(self, numbers: int) -> None:
        if numbers > self.at_once:
            raise self._error(f"a tensor of {numbers:,} numbers")

    def count(self, module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        """Count a parameter that a module registers. torch calls this hook."""
        if parameter is None or _counts[-1] is not self:
            return
        self.numbers, self.tensors = self.numbers + parameter.numel(), self.tensors + 1
        if self.numbers > REPEATED * sum(self.stored) + EXTRA_NUMBERS:
            raise self._error(f"more than {self.numbers:,} numbers")
        if self.tensors > REPEATED * len(self.stored) + EXTRA_TENSORS:
            raise self._error(f"more than {self.tensors:,} tensors")

    def _error(self, size: str) -> ValueError:
        numbers, tensors = sum(self.stored), len(self.stored)
        return ValueError(f"a model of {size}, but the checkpoint holds {numbers:,} numbers in {tensors:,} tensors")
