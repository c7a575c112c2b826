"""Which of fairseq's calls load and save checkpoints for our tasks: those do it safely, all others are fairseq's own.

fairseq's functions that load and save checkpoints are told for which task. Where that is one of ours, the call runs in
safe_checkpoints.safe_loading or whole_checkpoints.whole_saving; where it is another one, fairseq's function is called
and nothing else happens. Without a task (fairseq-validate, fairseq.hub_utils), the command line decides, then the
checkpoint: the name of its task is read.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from fairseq import checkpoint_utils
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.announced import find_task
from fairseq_llrnn.plugin.compat.checkpoint_errors import explain_misfit, explain_start
from fairseq_llrnn.plugin.compat.each_model import look_at_each
from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading
from fairseq_llrnn.plugin.compat.user_errors import in_command
from fairseq_llrnn.plugin.compat.whole_checkpoints import go_on_from_newest_whole, whole_saving

Load = Callable[..., Any]


def load_safely_for(own: type[FairseqTask]) -> None:
    """From here on, fairseq loads and saves checkpoints safely for tasks of the class `own`. Once is enough."""
    safely: tuple[tuple[str, Callable[[Load], Load], Callable[[], AbstractContextManager[None]]], ...] = (
        ("save_checkpoint", lambda save: save, whole_saving),  # these two are fairseq-train's
        ("load_checkpoint", lambda load: go_on_from_newest_whole(explain_start(load)), safe_loading),
        ("load_model_ensemble", explain_misfit, safe_loading),
        ("load_model_ensemble_and_task", lambda load: explain_misfit(look_at_each(load)), safe_loading),
    )
    for name, wrap, within in safely:
        call = getattr(checkpoint_utils, name)
        setattr(checkpoint_utils, name, _dispatch(own, call, wrap(call), within))


def _dispatch(
    own: type[FairseqTask], load: Load, load_own: Load, within: Callable[[], AbstractContextManager[None]]
) -> Load:
    signature = inspect.signature(load)

    @functools.wraps(load)
    def wrapper(*args: Any, **options: Any) -> Any:  # the signature belongs to fairseq
        call = signature.bind(*args, **options)
        call.apply_defaults()
        if not _is_own(own, **call.arguments):
            return load(*args, **options)
        with within():
            return load_own(*args, **options)

    return wrapper


def _is_own(own: type[FairseqTask], *, trainer: Any = None, task: Any = None, **of_ensemble: Any) -> bool:
    if trainer is not None:
        task = trainer.task
    return isinstance(task, own) if task is not None else in_command() or _of_own_task(own, **of_ensemble)


def _of_own_task(
    own: type[FairseqTask],
    *,
    filenames: list[str],
    state: dict[str, Any] | None,
    suffix: str,
    num_shards: int,
    **_: Any,
) -> bool:
    """Whether the first checkpoint says that it is of one of our tasks. What cannot be read safely is fairseq's."""
    if state is None:
        path = checkpoint_utils.get_maybe_sharded_checkpoint_filename(filenames[0], suffix, 0, num_shards)
        try:
            with safe_loading():
                state = checkpoint_utils.load_checkpoint_to_cpu(path)
        except (DataError, OSError):
            return False
    kinds = map(find_task, _task_names(state))
    return any(kind is not None and issubclass(kind, own) for kind in kinds)


def _task_names(state: dict[str, Any]) -> list[str]:
    """What the options in a checkpoint, old ones and new ones, call its task."""
    try:
        cfg = state.get("cfg")
        task = cfg.get("task") if cfg is not None and OmegaConf.is_dict(cfg) else None
        return [str(getattr(state.get("args"), "task", "")), str(getattr(task, "_name", ""))]
    except OmegaConfBaseException:  # a name that refers to what is not there
        return []
