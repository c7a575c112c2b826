"""Loads and saves checkpoints of our tasks safely; calls for other tasks are fairseq's own.

Each checkpoint of our tasks is checked before fairseq builds its model. Where no task is given, as by fairseq-validate,
the task is built from the first one's options, and files that moved are looked for (moved_folders.py). Where there is a
task, the model must be over its words (dictionaries.py).

fairseq's functions that load and save checkpoints are told for which task. Where that is one of ours, the call runs in
safe_checkpoints.safe_loading or whole_checkpoints.whole_saving; where it is another one, fairseq's function is called
and nothing else happens. Without a task (fairseq-validate, fairseq.hub_utils), the command line decides, then the
checkpoint: the name of its task is read.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from fairseq import checkpoint_utils
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.announced import find_task
from fairseq_llrnn.plugin.compat.checkpoint_errors import explain_misfit, explain_start
from fairseq_llrnn.plugin.compat.checkpoint_sizes import no_larger_than
from fairseq_llrnn.plugin.compat.dictionaries import refuse_other_words
from fairseq_llrnn.plugin.compat.loading import Loaded, Places, read_if_there, take_places
from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading
from fairseq_llrnn.plugin.compat.user_errors import in_command
from fairseq_llrnn.plugin.compat.whole_checkpoints import go_on_from_newest_whole, whole_saving


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


def _find_what_moved(path: str, state: Mapping[str, Any], overrides: Mapping[str, Any]) -> None:
    """Of a checkpoint that names a prior. overrides: of --model-overrides."""
    cfg = state.get("cfg")
    task = None if cfg is None else cfg.get("task")
    if task is not None and hasattr(task, "prior") and hasattr(task, "data"):
        places = Places(overrides.get("data"), overrides.get("prior"), source_prior=overrides.get("source_prior"))
        take_places(path, task, places, state)


Load = Callable[..., Any]


def load_safely_for(task_class: type[FairseqTask]) -> None:
    """From here on, fairseq loads and saves checkpoints safely for tasks of a class. Once is enough."""
    safely: tuple[tuple[str, Callable[[Load], Load], Callable[[], AbstractContextManager[None]]], ...] = (
        ("save_checkpoint", lambda save: save, whole_saving),  # these two are fairseq-train's
        ("load_checkpoint", lambda load: go_on_from_newest_whole(explain_start(load)), safe_loading),
        ("load_model_ensemble", explain_misfit, safe_loading),
        ("load_model_ensemble_and_task", lambda load: explain_misfit(look_at_each(load)), safe_loading),
    )
    for name, wrap, within in safely:
        call = getattr(checkpoint_utils, name)
        setattr(checkpoint_utils, name, _dispatch(task_class, call, wrap(call), within))


def _dispatch(
    task_class: type[FairseqTask], load: Load, load_ours: Load, within: Callable[[], AbstractContextManager[None]]
) -> Load:
    signature = inspect.signature(load)

    @functools.wraps(load)
    def wrapper(*args: Any, **options: Any) -> Any:  # the signature belongs to fairseq
        call = signature.bind(*args, **options)
        call.apply_defaults()
        if not _is_ours(task_class, **call.arguments):
            return load(*args, **options)
        with within():
            return load_ours(*args, **options)

    return wrapper


def _is_ours(task_class: type[FairseqTask], *, trainer: Any = None, task: Any = None, **of_ensemble: Any) -> bool:
    if trainer is not None:
        task = trainer.task
    return isinstance(task, task_class) if task is not None else in_command() or _of_our_task(task_class, **of_ensemble)


def _of_our_task(
    task_class: type[FairseqTask],
    *,
    filenames: list[str],
    state: dict[str, Any] | None,
    suffix: str,
    num_shards: int,
    **_: Any,
) -> bool:
    """Whether the first checkpoint names one of our tasks. One that cannot be read safely is left to fairseq."""
    if state is None:
        path = checkpoint_utils.get_maybe_sharded_checkpoint_filename(filenames[0], suffix, 0, num_shards)
        try:
            with safe_loading():
                state = checkpoint_utils.load_checkpoint_to_cpu(path)
        except (DataError, OSError):
            return False
    kinds = map(find_task, _task_names(state))
    return any(kind is not None and issubclass(kind, task_class) for kind in kinds)


def _task_names(state: dict[str, Any]) -> list[str]:
    """The names of a checkpoint's task in its options, old ones and new ones."""
    try:
        cfg = state.get("cfg")
        task = cfg.get("task") if cfg is not None and OmegaConf.is_dict(cfg) else None
        return [str(getattr(state.get("args"), "task", "")), str(getattr(task, "_name", ""))]
    except OmegaConfBaseException:  # a name that refers to what is not there
        return []
