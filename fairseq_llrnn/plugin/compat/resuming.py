"""What fairseq's checkpoints lack for a training that goes on to be the one that never stopped.

fairseq saves at the end of an epoch before its schedule of learning rates is told the validation loss, and tells it
none when it loads. Of --lr-scheduler reduce_lr_on_plateau it does not save how many epochs there were without progress.
Of --patience it saves nothing: the best validation and how many came since are attributes of a function.

A task of ours has what is lacking as `progress`, which fairseq puts into the checkpoint as the task's own state and
gives back, but with --reset-dataloader and --finetune-from-model. A checkpoint of before has none, and training goes on
as then.
"""

from __future__ import annotations

import ast
import logging
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule

from fairseq_llrnn.plugin.compat.user_errors import callers

OF_PATIENCE = ("best", "num_runs")  # the best validation, and how many there were since
OF_SCHEDULE = ("num_bad_epochs", "last_epoch")  # of torch's schedule, what fairseq does not keep

logger = logging.getLogger(__name__)


def note_progress(cfg: Any, trainer: Any) -> None:
    """Before a checkpoint is saved. cfg: fairseq's options of checkpoints."""
    trainer.task.progress = {"patience": {name: getattr(_stopper(), name, None) for name in OF_PATIENCE}}
    schedule = trainer.lr_scheduler
    if isinstance(schedule, ReduceLROnPlateauLRSchedule) and not cfg.no_save_optimizer_state:
        trainer.task.progress["schedule"] = {name: getattr(schedule.lr_scheduler, name) for name in OF_SCHEDULE}


def forget_progress(trainer: Any) -> None:
    """Before a training begins: that of an earlier one in this process."""
    trainer.task.progress = {}
    for name in OF_PATIENCE:
        vars(_stopper()).pop(name, None)


def take_up_progress(cfg: Any, trainer: Any, extra_state: dict[str, Any]) -> None:
    """After a checkpoint was loaded. cfg, extra_state: fairseq's options of checkpoints, and what was in this one."""
    of_schedule = _numbers(trainer.task.progress, "schedule", OF_SCHEDULE)
    of_patience = _numbers(trainer.task.progress, "patience", OF_PATIENCE)
    new_rate = cfg.reset_optimizer or cfg.reset_lr_scheduler or "lr" in ast.literal_eval(cfg.optimizer_overrides)
    if of_schedule and not new_rate:
        _end_epoch(trainer, of_schedule, extra_state)
    if of_patience and not (cfg.reset_optimizer or cfg.reset_meters):  # as fairseq's best loss
        _go_on_waiting(cfg, trainer, of_patience)


def _numbers(progress: object, part: str, names: Sequence[str]) -> dict[str, Any]:
    """What a checkpoint, a file of anybody, has under these names; nothing unless all of them are numbers."""
    values = progress.get(part) if isinstance(progress, dict) else None
    if not isinstance(values, dict) or any(type(values.get(name)) not in (int, float) for name in names):
        return {}
    return {name: values[name] for name in names}


def _end_epoch(trainer: Any, of_schedule: dict[str, int], extra_state: dict[str, Any]) -> None:
    """Tell the schedule the loss with which the checkpoint's epoch ended, as fairseq does once it has saved."""
    if isinstance(trainer.lr_scheduler, ReduceLROnPlateauLRSchedule):
        for name, value in of_schedule.items():
            setattr(trainer.lr_scheduler.lr_scheduler, name, value)
    batches, loss = extra_state["train_iterator"], extra_state["val_loss"]
    if batches["iterations_in_epoch"] == 0 and loss is not None:
        trainer.lr_step(batches["epoch"] - 1, loss)


def _stopper() -> Any:
    """fairseq's function that ends a training early, in whose attributes it counts; elsewhere, nothing counts."""
    return next((names["should_stop_early"] for names in callers() if "should_stop_early" in names), SimpleNamespace())


def _go_on_waiting(cfg: Any, trainer: Any, of_patience: dict[str, Any]) -> None:
    """Take up the count of validations without progress; where they are as many as --patience, no epoch is to begin."""
    vars(_stopper()).update(of_patience)
    if 0 < cfg.patience <= of_patience["num_runs"] and not trainer.cfg.dataset.disable_validation:
        logger.info("early stop since valid performance hasn't improved for last %d runs", of_patience["num_runs"])
        trainer.cfg.optimization.max_epoch = -1  # which fairseq reads next; 0 is none
