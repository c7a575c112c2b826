"""The prior: features, signatures and background as one directory on disk.

    prior.json       format, version, settings, counts, feature names, hashes: for people and for checks
    dictionary.txt   the V symbols it was made for, one a line, in fairseq's order
    arrays.npz       plain numeric arrays (numpy, read with allow_pickle=False)

The same input gives the same bytes. A prior belongs to one dictionary; loading it with another is an error.
Sizes: V words, S output signatures, R input signatures, F output features, G input features.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairseq_llrnn.core.backgrounds.contract import Background
from fairseq_llrnn.core.backgrounds.static import StaticBackground
from fairseq_llrnn.core.dictionary import hash_symbols
from fairseq_llrnn.core.features import FeatureTable
from fairseq_llrnn.core.signatures import Signatures
from fairseq_llrnn.errors import PriorError

FORMAT = "fairseq_llrnn prior"
VERSION = 1
JSON_FILE, WORDS_FILE, ARRAYS_FILE = "prior.json", "dictionary.txt", "arrays.npz"
REBUILD = "build it again with `llrnn prior`"


@dataclass(frozen=True)
class Prior:
    """Everything that is known before training."""

    symbols: tuple[str, ...]  # V
    output: Signatures  # φ
    input: Signatures  # ψ; the same object as `output` where ψ = φ
    log_weights: np.ndarray  # (V,) float64, log b(x); −inf forbids
    settings: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all that a model's weights depend on: dictionary, features, signatures, background."""
        digest = hashlib.sha256(hash_symbols(self.symbols).encode())
        for name, array in self._arrays().items():
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update("\n".join((*self.output.features.names, "", *self.input.features.names)).encode())
        return digest.hexdigest()

    def background(self) -> Background:
        """The background over the output signatures, in float32."""
        return StaticBackground(
            torch.from_numpy(self.output.class_of.copy()),
            self.output.num_classes,
            torch.from_numpy(self.log_weights.copy()),
        ).float()

    def counts(self) -> dict[str, int]:
        """The sizes a reader wants to see."""
        counts = {
            "words": len(self.symbols),
            "output features": self.output.features.num_features,
            "output signatures": self.output.num_classes,
            "forbidden words": int(np.isneginf(self.log_weights).sum()),
        }
        if self.input is not self.output:
            counts["input features"] = self.input.features.num_features
            counts["input signatures"] = self.input.num_classes
        return counts

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {"log_weights": self.log_weights}
        sides = {"output": self.output} if self.input is self.output else {"output": self.output, "input": self.input}
        for side, signatures in sides.items():
            arrays[f"{side}_class_of"] = signatures.class_of
            arrays[f"{side}_offsets"] = signatures.features.offsets
            arrays[f"{side}_indices"] = signatures.features.indices
            arrays[f"{side}_values"] = signatures.features.values
        return arrays

    def save(self, directory: Path | str) -> None:
        """Write the directory: to a temporary name beside it, then renamed, so that no half-written prior stays behind.

        Raises:
            PriorError: the place exists and is no prior, or cannot be written.
        """
        directory = Path(directory).resolve()  # `.` has no name that a rename could take
        if directory.exists() and not _holds_nothing_else(directory):
            raise PriorError(
                f"{directory}: expected a free name or an earlier prior, found something else there; give another --out"
            )
        temporary: Path | None = None
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
            self._write(temporary)
            temporary.chmod(0o755)
            _swap(temporary, directory)
        except OSError as error:
            raise PriorError(
                f"{directory}: the prior cannot be written ({error.strerror or error}); "
                "check the rights and the free space there, or give another --out"
            ) from None
        finally:
            if temporary is not None and temporary.exists():
                shutil.rmtree(temporary, ignore_errors=True)

    def _write(self, directory: Path) -> None:
        packed = io.BytesIO()  # numpy's own file would complain a second time, and on stderr, where a disk is full
        np.savez(packed, **self._arrays())
        (directory / ARRAYS_FILE).write_bytes(packed.getvalue())
        (directory / WORDS_FILE).write_text("\n".join(self.symbols) + "\n", encoding="utf-8", newline="\n")
        description = {
            "format": FORMAT,
            "version": VERSION,
            "settings": dict(self.settings),
            "counts": self.counts(),
            "dictionary_sha256": hash_symbols(self.symbols),
            "arrays_sha256": hashlib.sha256((directory / ARRAYS_FILE).read_bytes()).hexdigest(),
            "output_features": list(self.output.features.names),
            "input_features": None if self.input is self.output else list(self.input.features.names),
        }
        text = json.dumps(description, ensure_ascii=False, indent=1)
        (directory / JSON_FILE).write_text(text + "\n", encoding="utf-8", newline="\n")

    def check_dictionary(self, symbols: Sequence[str], where: str) -> None:
        """Raise PriorError unless the prior was made for exactly these symbols in this order."""
        if tuple(symbols) == self.symbols:
            return
        difference = next(
            (i for i, (a, b) in enumerate(zip(symbols, self.symbols, strict=False)) if a != b),
            min(len(symbols), len(self.symbols)),
        )
        found = symbols[difference] if difference < len(symbols) else "nothing"
        expected = self.symbols[difference] if difference < len(self.symbols) else "nothing"
        raise PriorError(
            f"the prior was made for another dictionary than {where}: sizes {len(self.symbols)} and {len(symbols)}, "
            f"first difference at index {difference} ({expected!r} in the prior, {found!r} in the dictionary); "
            f"{REBUILD} --dict {where}"
        )


def _swap(new: Path, directory: Path) -> None:
    """Put `new` in the place of `directory`; if that fails, what was there is there again."""
    if not directory.exists():
        os.replace(new, directory)
        return
    aside = new.with_name(new.name + ".old")
    os.replace(directory, aside)
    try:
        os.replace(new, directory)
    except BaseException:  # an interruption, too
        os.replace(aside, directory)
        raise
    shutil.rmtree(aside)


def _holds_nothing_else(path: Path) -> bool:
    """Whether `path` is a directory with the files of a prior, or none: all that a new prior may replace."""
    return path.is_dir() and {p.name for p in path.iterdir()} <= {JSON_FILE, WORDS_FILE, ARRAYS_FILE}


def load_prior(directory: Path | str) -> Prior:
    """Read a prior; nothing in it is executed.

    Raises:
        PriorError: no prior there, another version, a truncated or changed file.
    """
    directory = Path(directory)
    description = _read_description(directory)
    try:
        words = (directory / WORDS_FILE).read_bytes().decode("utf-8")  # read_text would take \r for the end of a line
        symbols = tuple(words.removesuffix("\n").split("\n"))
        raw = (directory / ARRAYS_FILE).read_bytes()
    except (OSError, UnicodeDecodeError) as error:
        raise PriorError(f"{directory}: a file of the prior cannot be read ({error}); {REBUILD}") from None
    if hash_symbols(symbols) != description["dictionary_sha256"]:
        raise PriorError(
            f"{directory / WORDS_FILE}: expected the words the prior was made for, found others; {REBUILD}"
        )
    if hashlib.sha256(raw).hexdigest() != description["arrays_sha256"]:
        raise PriorError(
            f"{directory / ARRAYS_FILE}: expected the arrays described in {JSON_FILE}, found {len(raw)} other bytes "
            f"(truncated or changed); copy it again or {REBUILD}"
        )
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
            output = _signatures(arrays, "output", description["output_features"])
            same = description["input_features"] is None
            read = output if same else _signatures(arrays, "input", description["input_features"])
            log_weights = _array(arrays, "log_weights", np.float64)
    except (ValueError, KeyError, TypeError, OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise PriorError(f"{directory / ARRAYS_FILE}: not the arrays of a prior ({error}); {REBUILD}") from None
    if {len(symbols), len(log_weights), output.num_words, read.num_words} != {len(symbols)}:
        raise PriorError(f"{directory}: its arrays and its dictionary differ in size; {REBUILD}")
    if np.isnan(log_weights).any() or np.isposinf(log_weights).any() or np.isneginf(log_weights).all():
        raise PriorError(f"{directory}: expected weights of which some are positive and all are finite; {REBUILD}")
    return Prior(symbols, output, read, log_weights, description["settings"])


def _signatures(arrays: Mapping[str, np.ndarray], side: str, names: Sequence[str]) -> Signatures:
    offsets, indices = (_array(arrays, f"{side}_{name}", np.int64) for name in ("offsets", "indices"))
    values, class_of = _array(arrays, f"{side}_values", np.float32), _array(arrays, f"{side}_class_of", np.int64)
    # indices go unchecked into compiled kernels later: a stranger's file must not reach outside its arrays
    sound = (
        len(offsets) > 1
        and offsets[0] == 0
        and offsets[-1] == len(indices) == len(values)
        and bool((np.diff(offsets) >= 0).all())
        and (len(indices) == 0 or (indices.min() >= 0 and indices.max() < len(names)))
        and len(class_of) > 0
        and class_of.min() >= 0
        and class_of.max() < len(offsets) - 1
    )
    if not sound:
        raise ValueError(f"the {side} signatures point outside their tables")
    if not np.isfinite(values).all():
        raise ValueError(f"the {side} features hold values that are not finite")
    return Signatures(class_of, FeatureTable(tuple(names), offsets, indices, values))


def _array(arrays: Mapping[str, np.ndarray], name: str, dtype: type) -> np.ndarray:
    array = arrays[name]
    if array.dtype != dtype or array.ndim != 1:
        raise ValueError(f"{name}: expected a row of {np.dtype(dtype)}, found {array.dtype} of shape {array.shape}")
    return array


def _read_description(directory: Path) -> dict[str, Any]:
    path = directory / JSON_FILE
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise PriorError(
            f"{directory}: expected a prior (a directory with {JSON_FILE}), found none; make one with `llrnn prior`"
        ) from None
    except ValueError as error:
        raise PriorError(f"{path}: expected JSON, found damage ({error}); {REBUILD}") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise PriorError(f"{path}: expected the description of a {FORMAT}, found something else; {REBUILD}")
    if description.get("version") != VERSION:
        raise PriorError(
            f"{path}: expected version {VERSION}, found {description.get('version')}; {REBUILD} of this version"
        )
    missing = {"settings", "dictionary_sha256", "arrays_sha256", "output_features", "input_features"} - set(description)
    if missing:
        raise PriorError(f"{path}: expected the entries {', '.join(sorted(missing))}, found none; {REBUILD}")
    names = (description["output_features"], description["input_features"] or [])
    if not isinstance(description["settings"], dict) or not all(
        isinstance(part, list) and all(isinstance(name, str) for name in part) for part in names
    ):
        raise PriorError(f"{path}: expected settings and lists of feature names, found something else; {REBUILD}")
    return description
