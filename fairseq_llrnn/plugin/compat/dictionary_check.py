"""A model that was trained over other words than those of the data at hand is refused.

A checkpoint of fairseq holds no words: where two dictionaries have the same size, its weights fit either, and what
they say belongs to other words. But it records where its training found the data. Where that folder is still there,
its dictionaries are compared with those of the command's task; where it is gone, or holds none that can be read,
nothing is known. Where the sizes differ, the weights do not fit, and loading fails with a message.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

from fairseq.data import Dictionary
from fairseq.tasks import FairseqTask
from fairseq.tasks.language_modeling import LanguageModelingTask
from omegaconf.errors import OmegaConfBaseException

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, load_dictionary
from fairseq_llrnn.files.text_lines import place, shown
from fairseq_llrnn.plugin.compat.data_folders import data_folder
from fairseq_llrnn.plugin.compat.loading import Loaded, dictionaries_of, read_if_there
from fairseq_llrnn.plugin.compat.two_dictionaries import TWO_DICTIONARIES


def refuse_other_words(load: Callable[..., Loaded]) -> Callable[..., Loaded]:
    """Wrap fairseq's load_model_ensemble_and_task: a model over other words than those of `task` becomes DataError.

    One model at a time, so that every checkpoint is read once. Without a task, each model is over the words that it
    finds. Of a checkpoint in several shards, which no task of ours trains, nothing is checked.
    """

    @functools.wraps(load)
    def wrapper(
        filenames: list[str],
        arg_overrides: dict[str, Any] | None = None,
        task: FairseqTask | None = None,
        strict: bool = True,
        suffix: str = "",
        num_shards: int = 1,
        state: dict[str, Any] | None = None,
    ) -> Loaded:
        if task is None or num_shards != 1 or state is not None or not filenames:
            return load(filenames, arg_overrides, task, strict, suffix, num_shards, state)
        models: list[Any] = []
        for filename in filenames:
            one, cfg, task = load(
                [filename], arg_overrides, task, strict, suffix, 1, _read(filename, arg_overrides, task, suffix)
            )
            models += one
        return models, cfg, task

    return wrapper


def _read(filename: str, arg_overrides: dict[str, Any] | None, task: FairseqTask, suffix: str) -> dict[str, Any] | None:
    """The checkpoint that fairseq would read, once it was looked at; None where there is none, which fairseq says."""
    path, state = read_if_there(filename, arg_overrides, suffix)
    if state is None:
        return None
    files, dictionaries = _files(state.get("cfg")), _dictionaries(task)
    if len(files) == len(dictionaries):  # else another kind of task: whether its model will do, fairseq says
        for file, dictionary in zip(files, dictionaries, strict=True):
            _compare(path, file, dictionary.symbols)
    if (take_source_prior := getattr(task, "take_source_prior", None)) is not None:
        take_source_prior(path, state)
    return state


def _files(cfg: Any) -> list[str]:
    """Where the dictionaries of a checkpoint's training were, by its options, which older ones have by now, too."""
    try:
        folder = data_folder(str(cfg.task.data))
        return [os.path.join(folder, name) for name in dictionaries_of(cfg.task, folder)]
    except (AttributeError, OmegaConfBaseException):  # options that name no data, or refer to what is not there
        return []


def _dictionaries(task: FairseqTask) -> list[Dictionary]:
    """Of a task, in the order of dictionaries_of."""
    if isinstance(task, LanguageModelingTask):
        return [] if task.dictionary is None else [task.dictionary]
    return [task.source_dictionary, task.target_dictionary] if isinstance(task, TWO_DICTIONARIES) else []


def _compare(path: str, file: str, expected: Sequence[str]) -> None:
    """Raise DataError where the dictionary `file` has as many symbols as `expected`, but others."""
    if not os.path.isfile(file):
        return
    try:
        found = load_dictionary(file).symbols
    except DataError:  # it is not what the training read
        return
    if len(found) != len(expected):
        return
    for number, (theirs, ours) in enumerate(zip(found, expected, strict=True)):
        if theirs != ours:
            raise DataError(
                f"{path}: expected a model over the words of the data at hand, found one that was trained with another "
                f"dictionary: {place(file, number - len(SPECIALS) + 1)} has {shown(theirs)}, the data {shown(ours)}; "
                "give models that were trained with the dictionaries of the data folder, or, if the model's own are no "
                "longer where its training found them, the folder that has them with --model-overrides "
                "\"{'data': 'DATA-BIN'}\""
            )
