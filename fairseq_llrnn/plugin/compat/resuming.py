"""What fairseq's checkpoints lack for a training that goes on to be the one that never stopped.

fairseq saves at the end of an epoch before its schedule of learning rates is told the validation loss, and tells it
none when it loads. Of --lr-scheduler reduce_lr_on_plateau it does not save how many epochs there were without progress.

A task of ours has what is lacking as `progress`, which fairseq puts into the checkpoint as the task's own state and
gives back, but with --reset-dataloader and --finetune-from-model. A checkpoint of before has none, and training goes on
as then.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule


def keep_progress(save: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap fairseq's save_checkpoint."""

    @functools.wraps(save)
    def wrapper(cfg: Any, trainer: Any, *passed_on: Any) -> Any:  # the signature belongs to fairseq
        trainer.task.progress = {} if cfg.no_save_optimizer_state else {"schedule": _of_schedule(trainer)}
        return save(cfg, trainer, *passed_on)

    return wrapper


def take_up_progress(load: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap fairseq's load_checkpoint, with which a training begins."""

    @functools.wraps(load)
    def wrapper(cfg: Any, trainer: Any, **passed_on: Any) -> Any:  # the signature belongs to fairseq
        trainer.task.progress = {}
        extra_state, batches = load(cfg, trainer, **passed_on)
        progress = trainer.task.progress
        new_rate = cfg.reset_optimizer or cfg.reset_lr_scheduler or "lr" in ast.literal_eval(cfg.optimizer_overrides)
        if "schedule" in progress and not new_rate:
            _end_epoch(trainer, progress["schedule"], extra_state)
        return extra_state, batches

    return wrapper


def _of_schedule(trainer: Any) -> dict[str, int]:
    """Of torch's schedule, what fairseq does not save, or changes when it loads."""
    schedule = trainer.lr_scheduler
    if not isinstance(schedule, ReduceLROnPlateauLRSchedule):
        return {}
    return {name: getattr(schedule.lr_scheduler, name) for name in ("num_bad_epochs", "last_epoch")}


def _end_epoch(trainer: Any, of_schedule: dict[str, int], extra_state: dict[str, Any]) -> None:
    """Tell the schedule the loss with which the checkpoint's epoch ended, as fairseq does once it has saved."""
    if isinstance(trainer.lr_scheduler, ReduceLROnPlateauLRSchedule):
        for name, value in of_schedule.items():
            setattr(trainer.lr_scheduler.lr_scheduler, name, value)
    batches, loss = extra_state["train_iterator"], extra_state["val_loss"]
    if batches["iterations_in_epoch"] == 0 and loss is not None:
        trainer.lr_step(batches["epoch"] - 1, loss)
