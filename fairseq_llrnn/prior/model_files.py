"""The files of another trained model. The prior keeps a copy, so that further training does not change the background.

Sizes: V words, G words of the other model. In the folder of the prior:

    model/checkpoint.pt    as its training wrote it
    model/dict.txt         its dictionary
    model/prior/…          its prior, if it has one

Only plugin/models/frozen_lm.py can build a model from the files. It is passed in as `LoadModel`.
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
# the files of a prior; file managers and editors may leave others in its folder (.DS_Store)
_OF_PRIORS = {JSON_FILE, WORDS_FILE, ARRAYS_FILE, SOURCE_FILE, CHECKPOINT, DICTIONARY}
# relative paths below the prior's folder: a description is untrusted input and must not leave it
_NAME = re.compile(r"(?:[\w-][\w.-]*/)*[\w-][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class ModelFiles:
    """The paths and hashes of a model's files, and its weight and temperature in the background.

    The dictionary's file is called DICTIONARY everywhere, as fairseq requires.
    """

    paths: Mapping[str, Path]  # by their names inside the part's folder
    hashes: Mapping[str, str]  # SHA-256, by the same names
    weight: float  # of p^(1/temperature) in b, above 0; b₀ has the remaining weight
    temperature: float

    @classmethod
    def of(
        cls, checkpoint: Path, dictionary: Path, prior: Path | None, weight: float = 1.0, temperature: float = 1.0
    ) -> ModelFiles:
        """Return the files of a model as its training left them. `prior` is the folder of its prior, if it has one."""
        paths = {CHECKPOINT: checkpoint, DICTIONARY: dictionary}
        if prior is not None:
            files = sorted(path for path in prior.rglob("*") if os.path.isfile(path) and path.name in _OF_PRIORS)
            paths |= {f"{PRIOR}/{path.relative_to(prior).as_posix()}": path for path in files}
        return cls(paths, {name: file_digest(path) for name, path in paths.items()}, weight, temperature)

    @classmethod
    def described(cls, description: Mapping[str, Any], folder: Path) -> ModelFiles:
        """Return the files in the `folder` of a prior. Raises ValueError if they differ from the description."""
        hashes, weight = description.get("files"), description.get("weight", 0.0)
        temperature = description.get("temperature", 0.0)
        if not isinstance(hashes, dict) or not {CHECKPOINT, DICTIONARY} <= set(hashes):
            raise ValueError(f"expected a model's files {CHECKPOINT} and {DICTIONARY}, found others")
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
        """Return the JSON values for prior.json."""
        return {"weight": self.weight, "temperature": self.temperature, "files": dict(self.hashes)}

    @property
    def identity(self) -> str:
        """A hash of everything that the background depends on."""
        return hashlib.sha256(repr((self.weight, self.temperature, sorted(self.hashes.items()))).encode()).hexdigest()

    @property
    def prior(self) -> Path | None:
        """The folder of the model's own prior, or None."""
        description = self.paths.get(f"{PRIOR}/{JSON_FILE}")
        return None if description is None else description.parent

    def write(self, folder: Path) -> None:
        """Copy the files into `folder`."""
        for name, path in self.paths.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


# files of a loaded prior, its words (V), and a mask of those that b₀ allows (V,) -> the model
LoadModel = Callable[[ModelFiles, Sequence[str], np.ndarray], "NextWords"]


@dataclass(frozen=True)
class SharedWords:
    """The word of another model for each of ours.

    Words that the other model lacks share its probability of <unk> equally, together with <unk> itself. Words that only
    the other model has are dropped. b then sums to less than one, and the log-linear layer normalises.
    """

    index: np.ndarray  # (V,) int64, in the other dictionary; the index of <unk> for words that it lacks
    log_share: np.ndarray  # (V,) float64: 0, or −log(lacking + 1) for <unk> and the words that it lacks
    unknown: int  # <unk> in the other dictionary
    in_both: int  # ordinary words of both models
    lacking: int  # words of ours that the other model lacks
    dropped: int  # words that only the other model has

    @classmethod
    def of(
        cls, symbols: Sequence[str], allowed: np.ndarray, other_symbols: Sequence[str], ordinary: np.ndarray
    ) -> SharedWords:
        """Match our symbols with those of another model.

        Args:
            symbols: ours, V.
            allowed: (V,) bool, the possible next words.
            other_symbols: those of the other model, G.
            ordinary: (G,) bool, the words among them.
        """
        index_of = {symbol: i for i, symbol in enumerate(other_symbols)}
        unknown = index_of[UNK]
        index = np.array([index_of.get(symbol, unknown) for symbol in symbols], dtype=np.int64)
        sharing = (index == unknown) & allowed  # shape: (V,); includes <unk> itself
        log_share = np.where(index == unknown, -np.log(max(1, int(sharing.sum()))), 0.0)
        lacking = sum(symbol != UNK for symbol, shares in zip(symbols, sharing, strict=True) if shares)
        shared = int((ordinary[index] & allowed).sum())
        return cls(index, log_share, unknown, shared, lacking, int(ordinary.sum()) - shared)
