"""The files of another trained model, which a prior keeps: a background must not change when that is trained on.

Sizes: V words, G words of the other model. In the folder of the prior:

    model/checkpoint.pt    as its training wrote it
    model/dict.txt         its dictionary
    model/prior/…          its prior, where it has one

Only plugin/models/frozen_lm.py can build a model from the files; it is passed in (`LoadModel`).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairseq_llrnn.features.dictionary import UNK
from fairseq_llrnn.files.numbers import is_temperature, temperature_range
from fairseq_llrnn.files.reading import file_digest
from fairseq_llrnn.prior.directory import ARRAYS_FILE, JSON_FILE, SOURCE_FILE, WORDS_FILE
from fairseq_llrnn.prior.expression import is_positive

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.language_model import NextWords

CHECKPOINT, DICTIONARY, PRIOR = "checkpoint.pt", "dict.txt", "prior"
# what a prior consists of: who looks at a folder (.DS_Store) or edits in it may leave other files there
_OF_PRIORS = {JSON_FILE, WORDS_FILE, ARRAYS_FILE, SOURCE_FILE, CHECKPOINT, DICTIONARY}
# one name, or names in folders; a description is untrusted and must not point out of the prior
_NAME = re.compile(r"(?:[\w-][\w.-]*/)*[\w-][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class ModelFiles:
    """Where the files of a model are, what is in them, and how much the model is meant to say.

    The dictionary's file is called DICTIONARY wherever it is, as fairseq wants it.
    """

    paths: Mapping[str, Path]  # by their names inside the part's folder
    hashes: Mapping[str, str]  # SHA-256, by the same names
    weight: float  # of p^(1/temperature) in b, above 0; the rest is b₀'s
    temperature: float

    @classmethod
    def of(
        cls, checkpoint: Path, dictionary: Path, prior: Path | None, weight: float = 1.0, temperature: float = 1.0
    ) -> ModelFiles:
        """Those of a model as it lies after its training. `prior` is the folder of its prior, if it has one."""
        paths = {CHECKPOINT: checkpoint, DICTIONARY: dictionary}
        if prior is not None:
            files = sorted(path for path in prior.rglob("*") if os.path.isfile(path) and path.name in _OF_PRIORS)
            paths |= {f"{PRIOR}/{path.relative_to(prior).as_posix()}": path for path in files}
        return cls(paths, {name: file_digest(path) for name, path in paths.items()}, weight, temperature)

    @classmethod
    def described(cls, description: Mapping[str, Any], folder: Path) -> ModelFiles:
        """Those in the `folder` of a prior which describes them so; raises ValueError where they differ."""
        hashes, weight = description.get("files"), description.get("weight", 0.0)
        temperature = description.get("temperature", 0.0)
        if not isinstance(hashes, dict) or not {CHECKPOINT, DICTIONARY} <= set(hashes):
            raise ValueError(f"expected a model of at least {CHECKPOINT} and {DICTIONARY}, found none")
        if not all(_NAME.fullmatch(name) and isinstance(digest, str) for name, digest in hashes.items()):
            raise ValueError("expected names of a model's files and their hashes, found others")
        if not (is_positive(weight) and weight <= 1.0):
            raise ValueError(f"expected a weight of the model above 0 and up to 1, found {weight!r}")
        if not is_temperature(temperature):
            raise ValueError(f"expected {temperature_range()}, found {temperature!r}")
        paths = {name: folder / name for name in hashes}
        for name, path in paths.items():
            if not os.path.isfile(path):
                raise ValueError(f"expected the model's file {folder.name}/{name}, found none")
            if file_digest(path) != hashes[name]:
                raise ValueError(f"the model's file {folder.name}/{name} is not the one that the prior was built with")
        return cls(paths, hashes, float(weight), float(temperature))

    def description(self) -> dict[str, Any]:
        """For prior.json."""
        return {"weight": self.weight, "temperature": self.temperature, "files": dict(self.hashes)}

    @property
    def identity(self) -> str:
        """A hash of all that the background depends on."""
        return hashlib.sha256(repr((self.weight, self.temperature, sorted(self.hashes.items()))).encode()).hexdigest()

    @property
    def prior(self) -> Path | None:
        """The folder of the model's own prior, if it has one."""
        description = self.paths.get(f"{PRIOR}/{JSON_FILE}")
        return None if description is None else description.parent

    def write(self, folder: Path) -> None:
        """Copy the files into `folder`."""
        for name, path in self.paths.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


# files of a prior that was read, its words (V), and which of them b₀ allows (V,) -> the model
LoadModel = Callable[[ModelFiles, Sequence[str], np.ndarray], "NextWords"]


@dataclass(frozen=True)
class SharedWords:
    """Which word of another model each of ours is.

    Words that the other model lacks share what it says of <unk>, equally among them and <unk>. What only the other
    model has is dropped: b then sums to less than one, and the log-linear layer normalises.
    """

    index: np.ndarray  # (V,) int64, in the other dictionary; that of <unk> for words it lacks
    log_share: np.ndarray  # (V,) float64: 0, and −log(lacking + 1) for <unk> and the words that it lacks
    unknown: int  # <unk> in the other dictionary
    in_both: int  # ordinary words of both
    lacking: int  # words of ours that the other model lacks
    dropped: int  # words that only the other model has

    @classmethod
    def of(
        cls, symbols: Sequence[str], allowed: np.ndarray, others: Sequence[str], ordinary: np.ndarray
    ) -> SharedWords:
        """
        Args:
            symbols: ours, V. allowed: (V,) bool, which can be a next word. others: the other model's, G.
            ordinary: (G,) bool, those that are words.
        """
        where = {symbol: i for i, symbol in enumerate(others)}
        unknown = where[UNK]
        index = np.array([where.get(symbol, unknown) for symbol in symbols], dtype=np.int64)
        sharing = (index == unknown) & allowed  # shape: (V,); <unk> itself, too
        log_share = np.where(index == unknown, -np.log(max(1, int(sharing.sum()))), 0.0)
        lacking = sum(symbol != UNK for symbol, shares in zip(symbols, sharing, strict=True) if shares)
        shared = int((ordinary[index] & allowed).sum())
        return cls(index, log_share, unknown, shared, lacking, int(ordinary.sum()) - shared)
