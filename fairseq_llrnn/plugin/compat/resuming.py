"""Save and restore the state that a resumed training needs and fairseq's checkpoints lack.

With it, a resumed training equals one that was not interrupted. fairseq saves at the end of an epoch, before its
learning-rate schedule gets the validation loss, and does not pass the loss on when it loads. For --lr-scheduler
reduce_lr_on_plateau it does not save the number of epochs without progress. For --patience it saves nothing: the best
validation and the number of later ones are attributes of a function.

A task of ours keeps this state as `progress`. fairseq saves it in the checkpoint as the task's own state and restores
it, except with --reset-dataloader and --finetune-from-model. A checkpoint of an earlier version has none, and training
resumes without it.
"""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.compat.other_models import restored
from fairseq_llrnn.plugin.compat.user_errors import callers
from fairseq_llrnn.plugin.names import name_in, name_of

OF_PATIENCE = ("best", "num_runs")  # the best validation, and the number of later ones
OF_SCHEDULE = ("num_bad_epochs", "last_epoch")  # state of torch's schedule that fairseq does not save

logger = logging.getLogger(__name__)


def note_progress(cfg: Any, trainer: Any) -> None:
    """Set the task's `progress` before a checkpoint is saved. cfg: fairseq's options of checkpoints."""
    trainer.task.progress = {"patience": {name: getattr(_stopper(), name, None) for name in OF_PATIENCE}}
    schedule = trainer.lr_scheduler
    if isinstance(schedule, ReduceLROnPlateauLRSchedule) and not cfg.no_save_optimizer_state:
        trainer.task.progress["schedule"] = {name: getattr(schedule.lr_scheduler, name) for name in OF_SCHEDULE}


def forget_progress(trainer: Any) -> None:
    """Clear the progress of an earlier training in this process."""
    trainer.task.progress = {}
    for name in OF_PATIENCE:
        vars(_stopper()).pop(name, None)


@contextmanager
def explained_schedule(cfg: Any, trainer: Any) -> Iterator[None]:
    """Raise OptionError inside the block if a checkpoint's --lr-scheduler saved a state that this one cannot load.

    cfg: fairseq's options of checkpoints.
    """
    try:
        yield
    except KeyError:
        name, (path, state) = name_in(trainer.cfg.lr_scheduler), restored(cfg)
        earlier = name if state is None else name_of(state["cfg"], "lr_scheduler")
        if earlier == name or cfg.reset_lr_scheduler:
            raise
        raise OptionError(
            f"--lr-scheduler {name}: {path} was trained with --lr-scheduler {earlier}, whose state does not fit; add "
            f"--reset-lr-scheduler, or use --lr-scheduler {earlier}"
        ) from None


def take_up_progress(cfg: Any, trainer: Any, extra_state: dict[str, Any]) -> None:
    """Restore the progress after a checkpoint was loaded.

    cfg, extra_state: fairseq's options of checkpoints, and the extra state of this checkpoint.
    """
    of_schedule = _numbers(trainer.task.progress, "schedule", OF_SCHEDULE)
    of_patience = _numbers(trainer.task.progress, "patience", OF_PATIENCE)
    new_rate = cfg.reset_optimizer or cfg.reset_lr_scheduler or "lr" in ast.literal_eval(cfg.optimizer_overrides)
    if of_schedule and not new_rate:
        _end_epoch(trainer, of_schedule, extra_state)
    if of_patience and not (cfg.reset_optimizer or cfg.reset_meters):  # like fairseq's best loss
        _go_on_waiting(cfg, trainer, of_patience)


def _numbers(progress: object, part: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the values of these names in a checkpoint, which is untrusted, or empty unless all of them are numbers."""
    values = progress.get(part) if isinstance(progress, dict) else None
    if not isinstance(values, dict) or any(type(values.get(name)) not in (int, float) for name in names):
        return {}
    return {name: values[name] for name in names}


def _end_epoch(trainer: Any, of_schedule: dict[str, int], extra_state: dict[str, Any]) -> None:
    """Pass the loss at the end of the checkpoint's epoch to the schedule, as fairseq does after it has saved."""
    if isinstance(trainer.lr_scheduler, ReduceLROnPlateauLRSchedule):
        for name, value in of_schedule.items():
            setattr(trainer.lr_scheduler.lr_scheduler, name, value)
    batches, loss = extra_state["train_iterator"], extra_state["val_loss"]
    if batches["iterations_in_epoch"] == 0 and loss is not None:
        trainer.lr_step(batches["epoch"] - 1, loss)


def _stopper() -> Any:
    """Return fairseq's function that stops early, whose attributes hold its counts, or an unused object without it."""
    return next((names["should_stop_early"] for names in callers() if "should_stop_early" in names), SimpleNamespace())


def _go_on_waiting(cfg: Any, trainer: Any, of_patience: dict[str, Any]) -> None:
    """Restore the count of validations without progress. If it reaches --patience, no further epoch begins."""
    vars(_stopper()).update(of_patience)
    if 0 < cfg.patience <= of_patience["num_runs"] and not trainer.cfg.dataset.disable_validation:
        logger.info("early stop since valid performance hasn't improved for last %d runs", of_patience["num_runs"])
        trainer.cfg.optimization.max_epoch = -1  # fairseq reads it next; 0 would mean no limit
