"""Checkpoints that survive a kill and a full disk: written whole or not at all; the newest whole one is found again.

fairseq writes the first of a moment's checkpoints under another name and renames it, but copies it in place to the
others' names, checkpoint_last.pt among them. `whole_saving` writes all of them as files/atomic_write.py does. If the
last one is damaged all the same (by a disk, or by an earlier version), or is missing while others are there,
`go_on_from_newest_whole` lets training go on from the newest whole one, and says so.
"""

from __future__ import annotations

import copy
import errno
import functools
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import remove_leftovers, whole_binary
from fairseq_llrnn.plugin.compat.checkpoint_sizes import check_file, damage

LAST = "checkpoint_last.pt"  # fairseq's default of --restore-file
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
