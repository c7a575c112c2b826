"""Checkpoints of our tasks are loaded safely and written whole; calls for other tasks are fairseq's own.

`whole_saving` lets checkpoints survive a kill and a full disk: each is written whole or not at all. fairseq writes
the first of a moment's checkpoints under another name and renames it, but copies it in place to the others' names,
checkpoint_last.pt among them. All of them are written as files/atomic_write.py does.

If the last one is damaged all the same (by a disk, or by an earlier version), or is missing while others are there,
`from_newest_whole` lets training go on from the newest whole one, and says so.

Each checkpoint of our tasks is checked before fairseq builds its model. Where no task is given, as by fairseq-validate,
the task is built from the first one's options, and files that moved are looked for (moved_folders.py). Where there is
a task, the model must be over its words (dictionaries.py).

fairseq's functions that load and save checkpoints are told for which task (`load_safely`). Where that is one of
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
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager
from fairseq.tasks import FairseqTask
from omegaconf.errors import OmegaConfBaseException

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import remove_leftovers, whole_binary
from fairseq_llrnn.plugin.compat.checkpoint_errors import LAST, explained_misfit
from fairseq_llrnn.plugin.compat.checkpoint_sizes import check_file, damage, no_larger_than
from fairseq_llrnn.plugin.compat.dictionaries import check_dictionary_words
from fairseq_llrnn.plugin.compat.loading import Places, take_places
from fairseq_llrnn.plugin.compat.resuming import forget_progress, note_progress, take_up_progress
from fairseq_llrnn.plugin.compat.safe_checkpoints import replaced, safe_loading
from fairseq_llrnn.plugin.compat.user_errors import in_command
from fairseq_llrnn.plugin.names import find_task, name_of
from fairseq_llrnn.plugin.tasks.task import PluginTask

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
    with (
        replaced(checkpoint_utils, "torch_persistent_save", lambda save: functools.partial(_save, save)),
        replaced(checkpoint_utils, "PathManager", lambda usual: _WholeCopies),
    ):
        yield


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
        errors: list[OSError] = []
        try:
            with whole_binary(path) as file:
                write(_Watched(file, errors))
            return
        except (OSError, RuntimeError) as error:  # torch reports a disk's error as the latter
            cause = errors[0] if errors else error
            number = getattr(cause, "errno", None)
            if number is None and isinstance(cause, RuntimeError) and "write" not in str(cause).lower():
                raise
            if number in FULL or attempt == ATTEMPTS - 1:
                raise DataError(
                    f"{path}: the checkpoint cannot be written ({getattr(cause, 'strerror', None) or cause}); {advice}"
                ) from None
        time.sleep(PAUSE)


class _Watched:
    """A file whose errors, which torch hides, are remembered."""

    def __init__(self, file: Any, errors: list[OSError]) -> None:
        self.file, self.errors = file, errors

    def write(self, data: Any) -> int:
        return int(self._remember(self.file.write, data))

    def flush(self) -> None:
        self._remember(self.file.flush)

    def _remember(self, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return call(*args)
        except OSError as error:
            self.errors.append(error)
            raise


# ---- going on -------------------------------------------------------------------------------------------------------


def from_newest_whole(cfg: Any, trainer: Any) -> Any:
    """fairseq's options of checkpoints, with the newest whole one as the one to restore, if the last one is not.

    To be called before fairseq loads a checkpoint, with which a training begins; in safe_loading.

    Raises:
        DataError: there are checkpoints, but none is whole: nothing begins anew over them.
    """
    folder, is_first = Path(cfg.save_dir), trainer.data_parallel_rank == 0
    if is_first:
        remove_leftovers(folder, lambda name: name.startswith("checkpoint"))
    if cfg.restore_file != LAST or trainer.checkpoint_suffix:
        return cfg
    last = folder / LAST
    trouble = damage(str(last)) if os.path.exists(last) else "there is none"
    others = sorted(path for path in folder.glob("*") if OTHERS.fullmatch(path.name))
    if trouble is None or not others:
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


# ---- loading, and for which tasks -----------------------------------------------------------------------------------


Load = Callable[..., Any]


def load_safely() -> None:
    """From here on, fairseq loads and saves checkpoints safely for tasks of ours. Once is enough."""
    safely: dict[str, Load] = {
        "save_checkpoint": _save_checkpoint,  # these two are fairseq-train's
        "load_checkpoint": _begin,
        "load_model_ensemble": _load_models,
        "load_model_ensemble_and_task": _load_models_and_task,
    }
    for name, ours in safely.items():
        setattr(checkpoint_utils, name, _dispatch(getattr(checkpoint_utils, name), ours))


def _save_checkpoint(save: Load, cfg: Any, trainer: Any, *passed_on: Any) -> Any:  # the signature belongs to fairseq
    note_progress(cfg, trainer)
    with whole_saving():
        return save(cfg, trainer, *passed_on)


def _begin(load: Load, cfg: Any, trainer: Any, **passed_on: Any) -> Any:  # the signature belongs to fairseq
    """Load the checkpoint with which a training begins, if any."""
    with safe_loading():
        cfg = from_newest_whole(cfg, trainer)
        forget_progress(trainer)
        extra_state, batches = load(cfg, trainer, **passed_on)
        take_up_progress(cfg, trainer, extra_state)
    return extra_state, batches


def _load_models(load: Load, filenames: list[str], arg_overrides: Any = None, *more: Any, **named: Any) -> Any:
    with safe_loading(), explained_misfit(filenames, arg_overrides):
        return load(filenames, arg_overrides, *more, **named)


def _load_models_and_task(
    load: Load,
    filenames: list[str],
    arg_overrides: dict[str, Any] | None = None,
    task: FairseqTask | None = None,
    strict: bool = True,
    suffix: str = "",
    num_shards: int = 1,
    state: dict[str, Any] | None = None,
) -> Any:  # the signature belongs to fairseq
    """One model at a time, so that every checkpoint is read once, and checked before fairseq builds its model.

    Of a checkpoint in several shards, which no task of ours trains, nothing is checked.

    Raises:
        OptionError: data or prior of the first are nowhere; it names the places. DataError: a model over other words,
        or weights that do not fit.
    """
    with safe_loading():
        if state is not None:  # the caller has read it, and knows more
            return load(filenames, arg_overrides, task, strict, suffix, num_shards, state)
        with explained_misfit(filenames, arg_overrides):
            if num_shards != 1 or not filenames:
                return load(filenames, arg_overrides, task, strict, suffix, num_shards)
            models: list[Any] = []
            for filename in filenames:
                path, read = checkpoint_utils.get_maybe_sharded_checkpoint_filename(filename, suffix, 0, 1), None
                if PathManager.exists(path):  # else fairseq says that it is not
                    read = checkpoint_utils.load_checkpoint_to_cpu(path, arg_overrides)
                if read is not None and task is None:
                    _find_what_moved(path, read, arg_overrides or {})
                elif read is not None:
                    check_dictionary_words(path, read, task)
                with nullcontext() if read is None else no_larger_than(read["model"]):
                    one, cfg, task = load([filename], arg_overrides, task, strict, suffix, 1, read)
                models += one
            return models, cfg, task


def _find_what_moved(path: str, state: Mapping[str, Any], overrides: Mapping[str, Any]) -> None:
    """Of a checkpoint that names a prior. overrides: of --model-overrides."""
    task = state["cfg"].get("task")
    if task is not None and hasattr(task, "prior") and hasattr(task, "data"):
        places = Places(overrides.get("data"), overrides.get("prior"), source_prior=overrides.get("source_prior"))
        take_places(path, task, places, state)


def _dispatch(load: Load, ours: Load) -> Load:
    signature = inspect.signature(load)

    @functools.wraps(load)
    def wrapper(*args: Any, **options: Any) -> Any:  # the signature belongs to fairseq
        call = signature.bind(*args, **options)
        call.apply_defaults()
        return ours(load, *args, **options) if _is_ours(call.arguments) else load(*args, **options)

    return wrapper


def _is_ours(call: Mapping[str, Any]) -> bool:
    """Of the arguments of one of fairseq's functions, by their names."""
    task = call["trainer"].task if "trainer" in call else call["task"]
    return isinstance(task, PluginTask) if task is not None else in_command() or _of_our_task(call)


def _of_our_task(call: Mapping[str, Any]) -> bool:
    """Whether the first checkpoint names one of our tasks. One that cannot be read safely is left to fairseq."""
    state, place = call["state"], (call["suffix"], 0, call["num_shards"])
    try:
        if state is None:
            path = checkpoint_utils.get_maybe_sharded_checkpoint_filename(call["filenames"][0], *place)
            with safe_loading():
                state = checkpoint_utils.load_checkpoint_to_cpu(path)
        kind = find_task(name_of(state.get("cfg"), "task"))
    except (DataError, OSError, OmegaConfBaseException):  # the last: a name that refers to what is not there
        return False
    return kind is not None and issubclass(kind, PluginTask)
