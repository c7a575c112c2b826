"""Checkpoints of our tasks are loaded safely and written whole; calls for other tasks are fairseq's own.

`whole_saving` lets checkpoints survive a kill and a full disk: each is written whole or not at all. fairseq writes
the first of a moment's checkpoints under another name and renames it, but copies it in place to the others' names,
checkpoint_last.pt among them. All of them are written as files/atomic_write.py does.

If the last one is damaged all the same (by a disk, or by an earlier version), or is missing while others are there,
`go_on_from_newest_whole` lets training go on from the newest whole one, and says so.

Each checkpoint of our tasks is checked before fairseq builds its model (`look_at_each`). Where no task is given, as
by fairseq-validate, the task is built from the first one's options, and files that moved are looked for
(moved_folders.py). Where there is a task, the model must be over its words (dictionaries.py).

fairseq's functions that load and save checkpoints are told for which task (`load_safely_for`). Where that is one of
ours, the call runs in safe_checkpoints.safe_loading or `whole_saving`; where it is another one, fairseq's function is
called and nothing else happens. Without a task (fairseq-validate, fairseq.hub_utils), the command line decides, then
the checkpoint: the name of its task is read.
"""

from __future__ import annotations

import copy
import errno
import functools
import inspect
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import remove_leftovers, whole_binary
from fairseq_llrnn.plugin.announced import find_task
from fairseq_llrnn.plugin.compat.best_metric import refuse_no_metric
from fairseq_llrnn.plugin.compat.checkpoint_errors import LAST, explain_misfit, explain_start
from fairseq_llrnn.plugin.compat.checkpoint_sizes import check_file, damage, no_larger_than
from fairseq_llrnn.plugin.compat.dictionaries import refuse_other_words
from fairseq_llrnn.plugin.compat.loading import Loaded, Places, read_if_there, take_places
from fairseq_llrnn.plugin.compat.resuming import keep_progress, take_up_progress
from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading
from fairseq_llrnn.plugin.compat.user_errors import in_command

OTHERS = re.compile(r"checkpoint(\d+|_\d+_\d+|_best|\.best_.+)\.pt")  # what fairseq calls them beside LAST
ATTEMPTS, PAUSE = 3, 2.5  # as fairseq's, for disks that fail for a moment
GO_ON = (
    "those written before are whole. Make room, or see to the disk, and start again: training goes on from the newest"
)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def whole_saving() -> Iterator[None]:
    """While this lasts, fairseq writes and copies checkpoints so that each is whole or not there.

    Raises, from fairseq's functions inside it:
        DataError: it cannot be written; the one before it is still there.
    """
    save, manager = checkpoint_utils.torch_persistent_save, checkpoint_utils.PathManager
    checkpoint_utils.torch_persistent_save = functools.partial(_save, save)
    checkpoint_utils.PathManager = _WholeCopies
    try:
        yield
    finally:
        checkpoint_utils.torch_persistent_save, checkpoint_utils.PathManager = save, manager


def _save(save: Callable[..., None], state: Any, filename: str, async_write: bool = False) -> None:
    if async_write or not PathManager.supports_rename(filename):  # iopath's
        save(state, filename, async_write)
    else:
        write_whole(Path(filename), lambda file: torch.save(state, file))


class _WholeCopies(PathManager):
    @staticmethod
    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
        if PathManager.path_requires_pathmanager(dst_path):
            return bool(PathManager.copy(src_path, dst_path, overwrite=overwrite))

        def write(target: Any) -> None:
            with open(src_path, "rb") as source:
                shutil.copyfileobj(source, target, 1 << 20)

        write_whole(Path(dst_path), write)
        return True


def write_whole(path: Path, write: Callable[[Any], None], advice: str = GO_ON) -> None:
    """Let `write` write the file of a checkpoint. Raises DataError, with what was there before still there."""
    for attempt in range(ATTEMPTS):
        watched = _Watched()
        try:
            with whole_binary(path) as file:
                write(watched.over(file))
            return
        except (OSError, RuntimeError) as error:  # torch reports a disk's error as the latter
            cause = watched.error or error
            number = getattr(cause, "errno", None)
            if number is None and isinstance(cause, RuntimeError) and "write" not in str(cause).lower():
                raise
            if number in FULL or attempt == ATTEMPTS - 1:
                raise DataError(
                    f"{path}: the checkpoint cannot be written ({getattr(cause, 'strerror', None) or cause}); {advice}"
                ) from None
        time.sleep(PAUSE)


class _Watched:
    """Remembers the error of a file, which torch hides."""

    error: OSError | None = None

    def over(self, file: Any) -> Any:
        write, flush = file.write, file.flush
        watched = self

        class File:
            def write(self, data: Any) -> int:
                return int(watched.remember(write, data))

            def flush(self) -> None:
                watched.remember(flush)

        return File()

    def remember(self, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return call(*args)
        except OSError as error:
            self.error = self.error or error
            raise


# ---- going on -------------------------------------------------------------------------------------------------------


def go_on_from_newest_whole(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap fairseq's load_checkpoint, with which a training begins; it is to run in safe_loading.

    Raises, when called:
        DataError: there are checkpoints, but none is whole: nothing begins anew over them.
    """

    @functools.wraps(load)
    def wrapper(cfg: Any, trainer: Any, **passed_on: Any) -> Any:  # the signature belongs to fairseq
        is_first = trainer.data_parallel_rank == 0
        if is_first:
            remove_leftovers(Path(cfg.save_dir), lambda name: name.startswith("checkpoint"))
        if cfg.restore_file == LAST and not trainer.checkpoint_suffix:
            cfg = _with_newest_whole(cfg, is_first)
        return load(cfg, trainer, **passed_on)

    return wrapper


def _with_newest_whole(cfg: Any, is_first: bool) -> Any:
    """fairseq's options of checkpoints, with the newest whole one as the one to restore, if the last one is not."""
    folder = Path(cfg.save_dir)
    last = folder / LAST
    trouble = damage(str(last)) if os.path.exists(last) else "there is none"
    if trouble is None:
        return cfg
    others = [path for path in _listed(folder) if OTHERS.fullmatch(path.name)]
    if not others:
        return cfg  # a new training; or what is there is refused when it is read
    newest = newest_whole(others)
    if newest is None:
        raise DataError(
            f"{last}: {trouble}, and none of the other checkpoints in {folder} is whole ({others[0].name}, …); name "
            "one with --restore-file, or give another --save-dir to begin anew"
        )
    if is_first:
        print(
            f"fairseq_llrnn: warning: {last}: expected a whole checkpoint to go on from, but {trouble}; training goes "
            f"on from {newest.name}, the newest whole one. To begin anew, give another --save-dir",
            file=sys.stderr,
        )
    cfg = copy.deepcopy(cfg)
    cfg.restore_file, cfg.finetune_from_model = str(newest), None
    return cfg


def newest_whole(paths: list[Path]) -> Path | None:
    """Of checkpoints, the whole one with the most updates; of those, the one that was written last."""
    readable = [(updates, path.stat().st_mtime_ns, path) for path in paths if (updates := _updates(path)) is not None]
    return next((path for _, _, path in sorted(readable, reverse=True) if damage(str(path)) is None), None)


def _updates(path: Path) -> int | None:
    """After how many updates a checkpoint was written; None where it cannot be read. Its tensors stay on disk."""
    try:
        check_file(str(path))
        state = torch.load(str(path), map_location="cpu", mmap=True, weights_only=True)
        return int(state["optimizer_history"][-1]["num_updates"])
    except Exception:  # whatever a damaged file leads to
        return None


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder / name for name in os.listdir(folder))
    except OSError:
        return []


# ---- loading, and for which tasks -----------------------------------------------------------------------------------


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


def _starting(load: Load) -> Load:
    return refuse_no_metric(go_on_from_newest_whole(explain_start(take_up_progress(load))))


def load_safely_for(task_class: type[FairseqTask]) -> None:
    """From here on, fairseq loads and saves checkpoints safely for tasks of a class. Once is enough."""
    safely: tuple[tuple[str, Callable[[Load], Load], Callable[[], AbstractContextManager[None]]], ...] = (
        ("save_checkpoint", keep_progress, whole_saving),  # these two are fairseq-train's
        ("load_checkpoint", _starting, safe_loading),
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
