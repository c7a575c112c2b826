"""Each checkpoint of our tasks is looked at before fairseq builds its model.

Where no task is given, as by fairseq-validate, the task is built from the first one's own options: what moved since is
found again. Where there is a task, the model must be over its words (dictionary_check.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from fairseq.tasks import FairseqTask

from fairseq_llrnn.plugin.compat.dictionary_check import refuse_other_words
from fairseq_llrnn.plugin.compat.loading import Loaded, Places, read_if_there, take_places
from fairseq_llrnn.plugin.compat.model_sizes import no_larger_than


def look_at_each(load: Callable[..., Loaded]) -> Callable[..., Loaded]:
    """Wrap fairseq's load_model_ensemble_and_task.

    One model at a time, so that every checkpoint is read once. Of a checkpoint in several shards, which no task of ours
    trains, nothing is checked.

    Raises:
        OptionError: data or prior of the first are nowhere; it names the places. DataError: a model over other words.
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
        if num_shards != 1 or state is not None or not filenames:
            return load(filenames, arg_overrides, task, strict, suffix, num_shards, state)
        models: list[Any] = []
        for filename in filenames:
            path, read = read_if_there(filename, arg_overrides, suffix)
            if read is not None and task is None:
                _find_what_moved(path, read, arg_overrides or {})
            elif read is not None:
                refuse_other_words(path, read, task)
            with nullcontext() if read is None else no_larger_than(read["model"]):
                one, cfg, task = load([filename], arg_overrides, task, strict, suffix, 1, read)
            models += one
        return models, cfg, task

    return wrapper


def _find_what_moved(path: str, state: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Of a checkpoint that names a prior. given: --model-overrides."""
    cfg = state.get("cfg")
    task = None if cfg is None else cfg.get("task")
    if task is not None and hasattr(task, "prior") and hasattr(task, "data"):
        places = Places(given.get("data"), given.get("prior"), source_prior=given.get("source_prior"))
        take_places(path, task, places, state)
