"""A model that was trained over other words than those of the data at hand is refused.

A checkpoint of fairseq holds no words: where two dictionaries have the same size, its weights fit either, and what
they say belongs to other words. But it records where its training found the data. Where that folder is still there,
its dictionaries are compared with those of the command's task; where it is gone, or holds none that can be read,
nothing is known. Where the sizes differ, the weights do not fit, and loading fails with a message.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from fairseq.data import Dictionary
from fairseq.tasks import FairseqTask
from fairseq.tasks.language_modeling import LanguageModelingTask
from omegaconf.errors import OmegaConfBaseException

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, load_dictionary
from fairseq_llrnn.files.text_lines import place, shown
from fairseq_llrnn.plugin.compat.data_folders import data_folder
from fairseq_llrnn.plugin.compat.loading import dictionaries_of
from fairseq_llrnn.plugin.compat.two_dictionaries import TWO_DICTIONARIES


def refuse_other_words(path: str, state: Mapping[str, Any], task: FairseqTask) -> None:
    """Raise DataError for a checkpoint of a model over other words than those of `task`.

    Args:
        state: what the checkpoint `path` holds.
    """
    files, dictionaries = _files(state.get("cfg")), _dictionaries(task)
    if len(files) == len(dictionaries):  # else another kind of task: whether its model will do, fairseq says
        for file, dictionary in zip(files, dictionaries, strict=True):
            _compare(path, file, dictionary.symbols)
    if (take_source_prior := getattr(task, "take_source_prior", None)) is not None:
        take_source_prior(path, state)


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
