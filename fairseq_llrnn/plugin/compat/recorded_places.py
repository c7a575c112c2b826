"""Checkpoints whose task is built from their own options, as fairseq-validate does: what moved is found again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fairseq.tasks import FairseqTask

from fairseq_llrnn.plugin.compat.loading import Loaded, Places, read_if_there, take_places


def find_what_moved(load: Callable[..., Loaded]) -> Callable[..., Loaded]:
    """Wrap fairseq's load_model_ensemble_and_task, where no task is given and a checkpoint names a prior.

    Raises:
        OptionError: data or prior are nowhere; it names the places.
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
        if task is not None or state is not None or num_shards != 1 or not filenames:
            return load(filenames, arg_overrides, task, strict, suffix, num_shards, state)
        path, state = read_if_there(filenames[0], arg_overrides, suffix)
        if state is not None:
            cfg = state.get("cfg")
            of_task = None if cfg is None else cfg.get("task")
            if of_task is not None and hasattr(of_task, "prior") and hasattr(of_task, "data"):
                given = arg_overrides or {}
                take_places(
                    path,
                    of_task,
                    Places(given.get("data"), given.get("prior"), source_prior=given.get("source_prior")),
                    state,
                )
        models, cfg, task = load(filenames[:1], arg_overrides, None, strict, suffix, 1, state)
        if len(filenames) > 1:
            more, cfg, task = load(filenames[1:], arg_overrides, task, strict, suffix, 1, None)
            models = [*models, *more]
        return models, cfg, task

    return wrapper
