"""Load checkpoints of our tasks safely, and write them whole. Calls for other tasks are left to fairseq.

With `whole_saving`, checkpoints survive a kill and a full disk: each is written whole or not at all. fairseq writes the
first of several checkpoints under a temporary name and renames it, but copies it in place to the other names, such as
checkpoint_last.pt. Here files/atomic_write.py writes all of them.

If the last checkpoint is damaged, or missing while others exist, `from_newest_whole` resumes training from the newest
whole one and prints a warning.

Each checkpoint of our tasks is checked before fairseq builds its model. Without a task, as in fairseq-validate, the
task is built from the first checkpoint's options, and moved files are found (moved_folders.py). With a task, the model
must be over the task's words (dictionaries.py).

`load_safely` wraps fairseq's functions that load and save checkpoints. For a task of ours, the call runs in
safe_checkpoints.safe_loading or `whole_saving`. For another task, only fairseq's function is called. Without a task
(fairseq-validate, fairseq.hub_utils), the command line decides, then the task's name in the checkpoint.
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
from fairseq_llrnn.plugin.compat.other_models import check_same_model
from fairseq_llrnn.plugin.compat.resuming import explained_schedule, forget_progress, note_progress, take_up_progress
from fairseq_llrnn.plugin.compat.safe_checkpoints import replaced, safe_loading
from fairseq_llrnn.plugin.compat.user_errors import in_command
from fairseq_llrnn.plugin.names import find_task, name_of
from fairseq_llrnn.plugin.tasks.task import PluginTask

OTHERS = re.compile(r"checkpoint(\d+|_\d+_\d+|_best|\.best_.+)\.pt")  # fairseq's names of checkpoints except LAST
ATTEMPTS, PAUSE = 3, 2.5  # like fairseq, for disks that fail for a moment
RESUME = "earlier checkpoints are whole. Free some space, or check the disk; the same command then resumes training"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def whole_saving() -> Iterator[None]:
    """Let fairseq write and copy checkpoints inside the block so that each is whole or absent.

    Raises, from fairseq's functions inside it:
        DataError: it cannot be written. The previous file is unchanged.
    """
    with (
        replaced(checkpoint_utils, "torch_persistent_save", lambda save: functools.partial(_save, save)),
        replaced(checkpoint_utils, "PathManager", lambda usual: _WholeCopies),
    ):
        yield


def _save(save: Callable[..., None], state: Any, filename: str, async_write: bool = False) -> None:
    if async_write:  # iopath's
        save(state, filename, async_write)
    else:
        write_whole(Path(filename), lambda file: torch.save(state, file))


class _WholeCopies(PathManager):
    @staticmethod
    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
        def write(target: Any) -> None:
            with open(src_path, "rb") as source:
                shutil.copyfileobj(source, target, 1 << 20)

        write_whole(Path(dst_path), write)
        return True


def write_whole(path: Path, write: Callable[[Any], None], advice: str = RESUME) -> None:
    """Call `write` to write the file of a checkpoint. Raises DataError. The previous file is then unchanged."""
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
    """A file that records its errors, which torch hides."""

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


# ---- resuming -------------------------------------------------------------------------------------------------------


def from_newest_whole(cfg: Any, trainer: Any) -> Any:
    """Return fairseq's options of checkpoints. If the last checkpoint is not whole, they restore the newest whole one.

    Call it in safe_loading, before fairseq loads the checkpoint with which a training begins.

    Raises:
        DataError: there are checkpoints, but none is whole. Training must not overwrite them.
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
        return cfg  # a new training, or an error when the checkpoint is read
    newest = newest_whole(others)
    if newest is None:
        raise DataError(
            f"{last}: {trouble}, and none of the other checkpoints in {folder} is whole ({others[0].name}, …); name "
            "one with --restore-file, or use another --save-dir to start from scratch"
        )
    if is_first:
        print(
            f"fairseq_llrnn: warning: {last}: expected a whole checkpoint, but {trouble}; training resumes from "
            f"{newest.name}, the newest whole one. To start from scratch, use another --save-dir",
            file=sys.stderr,
        )
    cfg = copy.deepcopy(cfg)
    cfg.restore_file, cfg.finetune_from_model = str(newest), None
    return cfg


def newest_whole(paths: list[Path]) -> Path | None:
    """Return the whole checkpoint with the most updates. Of several, return the one that was written last."""
    readable = [(updates, path.stat().st_mtime_ns, path) for path in paths if (updates := _updates(path)) is not None]
    return next((path for _, _, path in sorted(readable, reverse=True) if damage(str(path)) is None), None)


def _updates(path: Path) -> int | None:
    """Return the number of updates of a checkpoint, or None if it cannot be read. Its tensors stay on disk."""
    try:
        check_file(str(path))
        state = torch.load(str(path), map_location="cpu", mmap=True, weights_only=True)
        return int(state["optimizer_history"][-1]["num_updates"])
    except Exception:  # a damaged file can raise anything
        return None


# ---- loading, and for which tasks -----------------------------------------------------------------------------------


Load = Callable[..., Any]


def load_safely() -> None:
    """Let fairseq load and save checkpoints safely for tasks of ours. Call it once."""
    safely: dict[str, Load] = {
        "save_checkpoint": _save_checkpoint,  # these two are fairseq-train's
        "load_checkpoint": _begin,
        "load_model_ensemble_and_task": _load_models_and_task,  # load_model_ensemble calls it
    }
    for name, ours in safely.items():
        setattr(checkpoint_utils, name, _dispatch(getattr(checkpoint_utils, name), ours))


def _save_checkpoint(save: Load, cfg: Any, trainer: Any, *passed_on: Any) -> Any:  # the signature belongs to fairseq
    note_progress(cfg, trainer)
    with whole_saving():
        return save(cfg, trainer, *passed_on)


def _begin(load: Load, cfg: Any, trainer: Any, **passed_on: Any) -> Any:  # the signature belongs to fairseq
    """Load the checkpoint with which a training begins, if there is one."""
    with safe_loading():
        cfg = from_newest_whole(cfg, trainer)
        check_same_model(cfg, trainer)
        forget_progress(trainer)
        with explained_schedule(cfg, trainer):
            extra_state, batches = load(cfg, trainer, **passed_on)
        take_up_progress(cfg, trainer, extra_state)
    return extra_state, batches


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
    """Load one model at a time, so that every checkpoint is read once, and checked before fairseq builds its model.

    A checkpoint in several shards is not checked. No task of ours writes one.

    Raises:
        OptionError: the data or prior of the first checkpoint is missing. The message names the places.
        DataError: a model over other words, or weights that do not fit.
    """
    with safe_loading():
        if state is not None:  # the caller has read and checked it
            return load(filenames, arg_overrides, task, strict, suffix, num_shards, state)
        with explained_misfit(filenames, arg_overrides):
            if num_shards != 1 or not filenames:
                return load(filenames, arg_overrides, task, strict, suffix, num_shards)
            models: list[Any] = []
            for filename in filenames:
                path, read = checkpoint_utils.get_maybe_sharded_checkpoint_filename(filename, suffix, 0, 1), None
                if PathManager.exists(path):  # otherwise fairseq raises the error
                    read = checkpoint_utils.load_checkpoint_to_cpu(path, arg_overrides)
                if read is not None and task is None:
                    _find_what_moved(path, read, arg_overrides or {})
                elif read is not None:
                    check_dictionary_words(path, read, task)
                with nullcontext() if read is None else no_larger_than(read["model"]):
                    loaded, cfg, task = load([filename], arg_overrides, task, strict, suffix, 1, read)
                models += loaded
            return models, cfg, task


def _find_what_moved(path: str, state: Mapping[str, Any], overrides: Mapping[str, Any]) -> None:
    """Find the moved data and prior of a checkpoint. overrides: values of --model-overrides."""
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
    """Return whether a call of fairseq's function, given by its named arguments, is for a task of ours."""
    task = call["trainer"].task if "trainer" in call else call["task"]
    return isinstance(task, PluginTask) if task is not None else in_command() or _of_our_task(call)


def _of_our_task(call: Mapping[str, Any]) -> bool:
    """Return whether the first checkpoint is of one of our tasks. fairseq reports one that cannot be read safely."""
    state, place = call["state"], (call["suffix"], 0, call["num_shards"])
    try:
        if state is None:
            path = checkpoint_utils.get_maybe_sharded_checkpoint_filename(call["filenames"][0], *place)
            with safe_loading():
                state = checkpoint_utils.load_checkpoint_to_cpu(path)
        kind = find_task(name_of(state.get("cfg"), "task"))
    except (DataError, OSError, OmegaConfBaseException):  # the last: a broken reference in the options
        return False
    return kind is not None and issubclass(kind, PluginTask)
