"""Which of fairseq's calls load checkpoints for our tasks: those read them safely, all others are fairseq's own.

fairseq's three functions that load checkpoints are told for which task. Where that is one of ours, the call runs in
safe_checkpoints.safe_loading; where it is another one, fairseq's function is called and nothing else happens. Without a
task (fairseq-validate, fairseq.hub_utils), the command line decides, then the checkpoint: the name of its task is read.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from fairseq import checkpoint_utils
from fairseq.tasks import TASK_REGISTRY, FairseqTask
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.compat.checkpoint_errors import explain_misfit
from fairseq_llrnn.plugin.compat.dictionary_check import refuse_other_words
from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading
from fairseq_llrnn.plugin.compat.user_errors import in_command

Load = Callable[..., Any]


def load_safely_for(own: type[FairseqTask]) -> None:
    """From here on, fairseq loads checkpoints safely for tasks of the class `own`. Once is enough."""
    for name, wrap in (
        ("load_checkpoint", None),  # of fairseq-train
        ("load_model_ensemble", explain_misfit),
        ("load_model_ensemble_and_task", refuse_other_words),
    ):
        load = getattr(checkpoint_utils, name)
        setattr(checkpoint_utils, name, _dispatch(own, load, load if wrap is None else wrap(load)))


def _dispatch(own: type[FairseqTask], load: Load, load_own: Load) -> Load:
    signature = inspect.signature(load)

    @functools.wraps(load)
    def wrapper(*args: Any, **options: Any) -> Any:  # the signature belongs to fairseq
        call = signature.bind(*args, **options)
        call.apply_defaults()
        if not _is_own(own, **call.arguments):
            return load(*args, **options)
        with safe_loading():
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
    kinds = (TASK_REGISTRY.get(name) for name in _task_names(state))
    return any(isinstance(kind, type) and issubclass(kind, own) for kind in kinds)


def _task_names(state: dict[str, Any]) -> list[str]:
    """What the options in a checkpoint, old ones and new ones, call its task."""
    try:
        cfg = state.get("cfg")
        task = cfg.get("task") if cfg is not None and OmegaConf.is_dict(cfg) else None
        return [str(getattr(state.get("args"), "task", "")), str(getattr(task, "_name", ""))]
    except OmegaConfBaseException:  # a name that refers to what is not there
        return []
