"""Find the priors and data of a checkpoint after a move, and check data folders.

Data may be in several folders, `data-bin1:data-bin2`: training reads one of them in each epoch, in turn. fairseq takes
the dictionaries from the first folder, and opens another one when its epoch begins. A folder with other words would be
misread, and a missing one would end a training of days. So all are checked at the start.

A checkpoint records the places of its training, mostly relative to the working directory. If such a place is missing,
or has another prior or dictionary, the same place relative to the checkpoint is tried: a project may move as a whole. A
prior inside the data folder may have moved with it. Only an identical prior or dictionary is accepted: the checkpoint
has the prior's fingerprint, and the prior has the hash of the dictionary.
"""

from __future__ import annotations

import filecmp
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.tasks.translation import TranslationTask
from omegaconf.errors import OmegaConfBaseException

from fairseq_llrnn.errors import DataError, LLRNNError, OptionError
from fairseq_llrnn.features.dictionary import hash_symbols, load_dictionary
from fairseq_llrnn.head.checks import in_hex
from fairseq_llrnn.prior.directory import FINGERPRINT, JSON_FILE, SOURCE_HASH, read_description
from fairseq_llrnn.source_embedding import FINGERPRINT as SOURCE_FINGERPRINT
from fairseq_llrnn.source_embedding import OPTION as SOURCE_OPTION


class TwoDictionaries:
    """A task of ours with source and target, whose words are in files dict.LANGUAGE.txt of the data folder."""

    source_dictionary: Dictionary
    target_dictionary: Dictionary


TWO_DICTIONARIES = (TranslationTask, TwoDictionaries)


def data_folder(data: str) -> str:
    """Return the first data folder, which has the dictionaries."""
    return utils.split_paths(data)[0]


def check_first_folder(data: str, dictionaries: Sequence[str]) -> None:
    """Raise DataError unless the first data folder has these files, and they are valid, before fairseq reads them.

    Args:
        data: the folders, separated by colons.
        dictionaries: the names of their files, as far as known.
    """
    folder = data_folder(data)
    if problem := lacking(folder, dictionaries):
        raise DataError(
            f"{folder}: expected a data folder of fairseq-preprocess, found {problem}; check its name, or run "
            "fairseq-preprocess first",
            folder,
        )
    for name in dictionaries:
        load_dictionary(os.path.join(folder, name))


def lacking(folder: str, names: Sequence[str]) -> str | None:
    """Describe what is missing: a data folder, or the first of these files in it. None if nothing is."""
    if not os.path.isdir(folder):
        return "no such folder"
    return next((f"no {name} in it" for name in names if not os.path.isfile(os.path.join(folder, name))), None)


def check_folders(data: str, dictionaries: Sequence[str]) -> None:
    """Raise DataError unless all data folders exist, and all dictionaries in them have the words of the first.

    Args:
        data: the folders, separated by colons.
        dictionaries: the names of their files.
    """
    first, *others = utils.split_paths(data)
    for folder in others:
        if not os.path.isdir(folder):
            raise DataError(f"{folder}: expected one of the data folders {data}, found no such folder; check its name")
        for name in dictionaries:
            file, first_file = (os.path.join(place, name) for place in (folder, first))
            if not os.path.exists(file) or filecmp.cmp(file, first_file, shallow=False):
                continue
            if load_dictionary(file).symbols != load_dictionary(first_file).symbols:
                raise DataError(
                    f"{file}: expected the words of {first_file}, in the same order, found others; make all data "
                    "folders with the dictionaries of the first (fairseq-preprocess --srcdict, --tgtdict)"
                )


logger = logging.getLogger(__name__)

Fits = Callable[[Path], bool]


def places_of(recorded: str, save_dir: str | None, checkpoint: str) -> Iterator[Path]:
    """Yield possible places of a folder that a training with `save_dir` recorded."""
    yield Path(recorded)
    if save_dir and os.path.isabs(save_dir) == os.path.isabs(recorded):
        for path in dict.fromkeys((os.path.abspath(checkpoint), os.path.realpath(checkpoint))):
            yield _short(Path(path).parent / os.path.relpath(recorded, save_dir))


def _short(path: Path) -> Path:
    """Return the shorter of the absolute path and the path relative to the working directory."""
    absolute = os.path.normpath(os.path.abspath(path))
    return Path(min(absolute, os.path.relpath(absolute), key=len))


def save_dir_of(state: Mapping[str, Any]) -> str | None:
    """Return --save-dir of the training."""
    options = state["cfg"].get("checkpoint") if hasattr(state["cfg"], "get") else None
    return None if options is None else str(getattr(options, "save_dir", "") or "") or None


def fingerprint_in(state: Mapping[str, Any], path: str, ending: str = "head.prior_fingerprint") -> str | None:
    """Return the fingerprint of the prior that a checkpoint was trained with. Raises DataError if it is invalid.

    Args:
        ending: end of the name of the weight that holds it.
    """
    for name, saved in state["model"].items():
        if name.endswith(ending):
            return in_hex(saved, path)
    return None


def is_prior(fingerprint: str | None) -> Fits:
    """Return whether a folder has the prior with that fingerprint (None: any)."""

    def fits(folder: Path) -> bool:
        if not os.path.isfile(folder / JSON_FILE):
            return False
        try:
            recorded = read_description(folder).get(FINGERPRINT)
        except LLRNNError:  # damaged
            return False
        # a prior without a fingerprint is compared when its weights are loaded
        return fingerprint is None or recorded in (None, fingerprint)

    return fits


def has_dictionaries(names: Callable[[str], Sequence[str]], prior: Path | None) -> Fits:
    """Return whether a folder has the files `names(folder)`, with the words of the prior's dictionaries.

    The target's file is the last one.
    """
    hashes: list[str | None] = [None]
    if prior is not None:
        with suppress(LLRNNError):  # reported when it is loaded
            description = read_description(prior)
            hashes = [description.get(SOURCE_HASH), description["dictionary_sha256"]]

    def fits(folder: Path) -> bool:
        files = [folder / name for name in names(str(folder))]
        if not files or not all(os.path.isfile(file) for file in files):
            return False
        try:
            return all(
                expected is None or hash_symbols(load_dictionary(file).symbols) == expected
                for file, expected in zip(reversed(files), reversed(hashes), strict=False)
            )
        except LLRNNError:  # damaged
            return False

    return fits


def report_moved(checkpoint: str, kind: str, recorded: str, folder: Path) -> None:
    """Warn if the folder is not the one that the checkpoint recorded, seen from here or from the checkpoint."""
    places = recorded, os.path.join(os.path.dirname(checkpoint), recorded)
    if os.path.abspath(folder) not in map(os.path.abspath, places):
        logger.warning(f"{checkpoint}: trained with the {kind} in {recorded!r}; {str(folder)!r} is used instead")


def take_source_prior(path: str, task: Any, folder: str | None, option: str, state: Mapping[str, Any]) -> None:
    """Set the source prior in the options of a checkpoint's task, if its encoder uses one.

    Args:
        folder: the user's value of `option`.
        state: result of `read_checkpoint`.

    Raises:
        OptionError: it is not found, or it is given for a model without one.
    """
    recorded = getattr(task, "source_prior", None)
    if recorded is None:
        if folder is not None:
            raise OptionError(
                f"{option} {folder}: expected a model that was trained with a source prior, found {path}, which was "
                f"not; remove {option}"
            )
    elif folder is not None:
        task.source_prior = folder
    else:
        recorded = str(recorded)
        fingerprint = fingerprint_in(state, path, SOURCE_FINGERPRINT)
        found = next(filter(is_prior(fingerprint), places_of(recorded, save_dir_of(state), path)), None)
        if found is None:
            raise OptionError(
                f"{path}: expected the source prior of its training, found none, or another one, in {recorded!r}, "
                f"relative to the working directory or the checkpoint; name its folder with {option} DIR"
            )
        report_moved(path, "source prior", recorded, found)
        task.source_prior = str(found)


def source_prior_of_model(path: str, state: Mapping[str, Any]) -> str | None:
    """Return the source prior that a checkpoint was trained with, or None if there was none.

    Raises:
        OptionError: it is not found.
    """
    try:
        task: Any = state["cfg"].task
        recorded = task.source_prior
    except (AttributeError, TypeError, OmegaConfBaseException):  # other options, or those of an earlier version
        return None
    has_weights = recorded is not None and isinstance(state["model"], Mapping)
    if not has_weights or fingerprint_in(state, path, SOURCE_FINGERPRINT) is None:
        return None
    take_source_prior(path, task, None, SOURCE_OPTION, state)
    return str(task.source_prior)
