"""Read a checkpoint, build its model and encode its input, safely and with clear errors.

A checkpoint records the places of data and prior in its training. `Places` overrides them, and names the user's own
code. A checkpoint cannot name code: safe_checkpoints.py removes such options, and each command needs them again. A
system, or another package, that runs such code has a module in the group `user_code` (registry.py):

    OPTION = "theirs"                                  --theirs, of a task and of each command that loads a model
    METAVAR, HELP = "FILE:Class", "…{of}…"             of these commands; {of} names the model, or is empty
    def files(value) -> {name: Path}: …                files to read for a value, one per class, or none for None
    def trained(weights) -> int: …                     number of files in the training of a model with these weights
    def check(option, checkpoint, weights, given): …   raise OptionError if the number of files differs
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.data.data_utils import infer_language_pair
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from fairseq.tasks.language_modeling import LanguageModelingTask
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.files.reading import reading
from fairseq_llrnn.plugin.compat.checkpoint_errors import OF_OPTIONS, no_such_model
from fairseq_llrnn.plugin.compat.checkpoint_sizes import GIVE, no_larger_than
from fairseq_llrnn.plugin.compat.moved_folders import (
    TWO_DICTIONARIES,
    data_folder,
    fingerprint_in,
    has_dictionaries,
    is_prior,
    lacking,
    places_of,
    report_moved,
    save_dir_of,
    take_source_prior,
)
from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading
from fairseq_llrnn.plugin.names import find_task, name_in
from fairseq_llrnn.prior.directory import JSON_FILE
from fairseq_llrnn.registry import load_all


@dataclass(frozen=True)
class Places:
    """Paths that override those of a checkpoint (None: no change), and the user's own code."""

    data: str | None = None
    prior: str | None = None
    options: str = "--{}"  # the user's option for {}: data, prior, source-prior or the name of code
    source_prior: str | None = None
    code: Mapping[str, str] = field(default_factory=dict)  # option -> value


RECORDED = Places()
EXPORTED = "model.pt"  # the checkpoint in a folder of `llrnn export`


def checkpoint_file(path: str) -> str:
    """Return the checkpoint in an exported folder, or any other path unchanged.

    Raises:
        DataError: a folder without a checkpoint of `llrnn export`. The message names another checkpoint in it, if there
            is one.
    """
    if not os.path.isdir(path):
        return path
    names = [
        name for name in (EXPORTED, "checkpoint_best.pt", "checkpoint_last.pt") if os.path.isfile(f"{path}/{name}")
    ]
    if names[:1] == [EXPORTED]:
        return os.path.join(path, EXPORTED)
    advice = f"did you mean {os.path.join(path, names[0])}?" if names else GIVE
    found = "another folder"
    if os.path.isfile(os.path.join(path, JSON_FILE)):
        found, advice = "a prior", f"{advice}, or score a prior alone: `llrnn score --prior {path}`, or load(prior=…)"
    raise DataError(f"{path}: expected a checkpoint, or a folder of `llrnn export`, found {found}; {advice}", path)


def prior_folder(prior: str | None, data: str) -> str:
    """Return the folder of --prior (a list in a damaged checkpoint), or `prior` in the first data folder."""
    return str(prior) if prior else os.path.join(data_folder(data), "prior")


def dictionaries_of(task: Any, folder: str) -> tuple[str, ...]:
    """Return the names of the dictionary files that a checkpoint needs in its data folder, as fairseq's tasks find
    them.

    If the training had no language options, the names of the folder's files determine the languages.

    Args:
        task: the options of the checkpoint's task.
        folder: the data folder, perhaps another one than in training.

    Returns: the file of a language model, or those of source and target. Empty if the folder does not determine the
    languages, and for other kinds of tasks.
    """
    kind = find_task(name_in(task))
    if kind is None:
        return ()
    if issubclass(kind, LanguageModelingTask):
        return ("dict.txt",)
    if not issubclass(kind, TWO_DICTIONARIES):
        return ()
    languages: Any = (getattr(task, "source_lang", None), getattr(task, "target_lang", None))
    if None in languages:
        try:
            languages = infer_language_pair(folder)
        except (OSError, ValueError):  # no such folder, none that we may look into, or no name of a folder
            return ()
    names = tuple(f"dict.{language}.txt" for language in languages)
    return names if None not in languages and all(os.path.basename(name) == name for name in names) else ()


def take_places(path: str, task: Any, places: Places, state: Mapping[str, Any]) -> tuple[Path, ...]:
    """Put `places` into `task`, the options of a checkpoint's task, and check that all files exist.

    Without a place, the file is looked for at the place of the training (moved_folders.py).

    Args:
        state: result of `read_checkpoint`, whose task it is.

    Returns: the paths of its dictionaries.

    Raises:
        OptionError: a file is missing, or a prior or code is given for a model without one.
    """
    data_option, prior_option = places.options.format("data"), places.options.format("prior")
    takes_prior = hasattr(task, "prior")
    for part, place in (("prior", places.prior), *places.code.items()):
        if place is not None and not takes_prior:
            option = places.options.format(part)
            raise OptionError(
                f"{option} {place}: expected a model that was trained with a prior, found {path}, which was not; "
                f"remove {option}"
            )
    recorded = str(task.data)
    prior = places.prior
    if takes_prior and prior is None:
        prior = prior_folder(task.prior, places.data or recorded)
        found = _find_prior(path, state, task.prior, recorded, places.data or recorded)
        prior = prior if found is None else str(found)
    folder = data_folder(places.data or recorded)
    if places.data is None and (found := _find_data(path, state, task, Path(prior) if prior else None)) is not None:
        report_moved(path, "data folder", folder, found)
        folder = str(found)
    names = dictionaries_of(task, folder)
    missing = lacking(folder, names)
    if missing is None and not names:
        missing = "no file with the languages in its name, such as train.de-en.de.idx, in it"
    if missing:
        raise OptionError(
            f"{path} was trained with the data folder {folder!r}, but there is {missing}, relative to the working "
            f"directory or the checkpoint; name the folder with {data_option} DATA-BIN"
            if places.data is None
            else f"{data_option} {folder}: expected the folder of fairseq-preprocess, found {missing}; give another one"
        )
    if takes_prior and places.prior is None:
        if not os.path.isfile(os.path.join(str(prior), JSON_FILE)):
            raise OptionError(
                f"{path}: expected the prior of its training, found none, or another one, in {prior!r}, relative to "
                f"the working directory or the checkpoint; name its folder with {prior_option} DIR"
            )
        report_moved(path, "prior", prior_folder(task.prior, recorded), Path(str(prior)))
    take_source_prior(path, task, places.source_prior, places.options.format("source-prior"), state)
    if places.data is not None or folder != data_folder(recorded):
        task.data = places.data or folder
    if prior is not None and (task.prior is not None or prior != prior_folder(None, str(task.data))):
        task.prior = prior
    for name, value in places.code.items():
        if hasattr(task, name):  # otherwise `build_model` raises the error
            setattr(task, name, value)
    return tuple(Path(folder, name) for name in names)


def prior_of_state(path: str, state: Mapping[str, Any], data: str = "") -> str:
    """Return the prior of a checkpoint's training, for a command without --prior.

    Args:
        state: result of `read_checkpoint`.
        data: the present data folder (empty: unknown).

    Raises:
        OptionError: it is not found.
    """
    task = state["cfg"].get("task")
    named, recorded = getattr(task, "prior", None), str(getattr(task, "data", None) or data)
    was = prior_folder(named, recorded)
    found = _find_prior(path, state, named, recorded, data or recorded)
    if found is None:
        raise OptionError(
            f"--prior: expected the prior that {path} was trained with, found none, or another one, in {was!r}, "
            "relative to the working directory or the checkpoint; name its folder"
        )
    report_moved(path, "prior", was, found)
    return str(found)


def _find_prior(path: str, state: Mapping[str, Any], named: str | None, recorded: str, data: str) -> Path | None:
    """Find the prior of a checkpoint: at its recorded place, in its data folder, or relative to the checkpoint.

    Args:
        named: --prior of the training.
        recorded: data folder of the training.
        data: present data folder.
    """
    was = prior_folder(named, recorded)
    in_data = os.path.relpath(was, data_folder(recorded))
    names = [name for name in dict.fromkeys((in_data, "prior")) if not name.startswith(os.pardir)]
    moved_with_data = [Path(data_folder(data), name) for name in names]
    around = places_of(was, save_dir_of(state), path)
    moved_first = named is None and recorded != os.curdir  # which an exported model records
    places = chain(moved_with_data, around) if moved_first else chain(around, moved_with_data)
    return next(filter(is_prior(fingerprint_in(state, path)), places), None)


def _find_data(path: str, state: Mapping[str, Any], task: Any, prior: Path | None) -> Path | None:
    """Find the folder with the dictionaries of a checkpoint, like `_find_prior`."""
    places = places_of(data_folder(str(task.data)), save_dir_of(state), path)
    return next(filter(has_dictionaries(lambda folder: dictionaries_of(task, folder), prior), places), None)


def load_model(
    path: str, places: Places, check: Callable[[str, Any], object]
) -> tuple[BaseFairseqModel, FairseqTask, tuple[Path, ...]]:
    """Return the model of a checkpoint, its task and the paths of its dictionaries.

    Args:
        places: as for `take_places`.
        check: called with the path and the options before the model is built. Raises DataError for a checkpoint of
            another kind.

    Raises:
        DataError, OptionError, PriorError: as `read_checkpoint`, `check`, `take_places` and `build_model`.
    """
    path = checkpoint_file(path)
    state = read_checkpoint(path)
    check(path, state["cfg"])
    dictionaries = take_places(path, state["cfg"].task, places, state)
    return *build_model(path, state, places), dictionaries


def build_model(path: str, state: dict[str, Any], places: Places = RECORDED) -> tuple[BaseFairseqModel, FairseqTask]:
    """Build the model and the task of a checkpoint's options, and load its weights.

    Args:
        state: result of read_checkpoint. The caller has checked that it may build what the options name.
        places: as for `take_places`.

    Raises:
        DataError: weights that do not fit. PriorError: the prior does not fit. OptionError: the user's code is not that
            of the training.
    """
    for code in load_all("user_code"):
        num_files = len(code.files(places.code.get(code.OPTION)))
        code.check(places.options.format(code.OPTION), path, state["model"], num_files)
    state["args"] = None  # fairseq would prefer it to the configuration, which was checked
    try:
        with safe_loading(), no_larger_than(state["model"]):
            models, _, task = checkpoint_utils.load_model_ensemble_and_task([path], state=state)
    except OF_OPTIONS as error:
        raise no_such_model(path, error) from None
    return models[0], task


def read_checkpoint(path: str) -> dict[str, Any]:
    """Read a checkpoint. Raises DataError: no such file, a damaged file, code in it, or another kind of file."""
    if not os.path.exists(path):
        raise DataError(f"{path}: expected a checkpoint, found no such file; {GIVE}", path)
    with reading(path), safe_loading(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about kinds of pickles, which are rejected afterwards
        state = checkpoint_utils.load_checkpoint_to_cpu(path)
    if state.get("cfg") is None or not isinstance(state.get("model"), dict):
        raise DataError(
            f"{path}: expected a checkpoint of fairseq, found none (it lacks options or weights); {GIVE}", path
        )
    return state


def marker_of(dictionary: Dictionary) -> Any:
    """Return the `Marker` of a source dictionary (dictionaries.py), or None if no system requires strings."""
    return getattr(dictionary, "marker", None)


def encode(dictionary: Dictionary, words: Sequence[str], cells: Sequence[str] = ()) -> Tensor:
    """Return the indices of the words and of the end of the sentence, (T,), with marks if the dictionary has a marker.

    Words outside the dictionary become <unk> unless an open dictionary has an id for them. So do symbols that are no
    words (</s> inside a sentence).

    Args:
        cells: the texts after a source, separated by tabs, used only with a marker.
    """
    symbols = (dictionary.bos(), dictionary.pad(), dictionary.eos())
    indices = (dictionary.index(word) for word in words)
    tokens = [*(dictionary.unk() if i in symbols else i for i in indices), dictionary.eos()]
    marker = marker_of(dictionary)
    return torch.tensor(tokens if marker is None else marker.marked(tokens, [cell for cell in cells if cell.strip()]))
