"""Whether a validation has what --best-checkpoint-metric names, looked for before a training begins.

fairseq looks there after the first epoch, and ends in a KeyError, or in an epoch that was for nothing.
"""

from __future__ import annotations

from typing import Any

from fairseq.logging import metrics

from fairseq_llrnn.errors import OptionError


def check_best_metric(metric: str, trainer: Any) -> None:
    """Raise OptionError where no validation set has a number of that name."""
    if metric == "loss" or trainer.cfg.dataset.disable_validation:
        return
    has_bleu = getattr(trainer.task.options, "eval_bleu", None)
    if metric == "bleu" and has_bleu is not None:
        if not has_bleu:
            raise OptionError(
                "--best-checkpoint-metric bleu: expected --eval-bleu beside it, found none; add that, or leave it out"
            )
        return  # it costs a search, and a first model may find nothing that could be counted
    for subset in trainer.cfg.dataset.valid_subset.split(","):
        names = _names(metric, trainer, subset)
        if metric not in names:
            raise OptionError(
                f"--best-checkpoint-metric {metric}: expected a number of the validation, found another name; there "
                f"are {', '.join(names)}; choose one of them"
            )


def _names(metric: str, trainer: Any, subset: str) -> list[str]:
    """The numbers that a validation logs, of batches up to the first one that has this metric."""
    batches = trainer.get_valid_iterator(subset)
    names: list[str] = []
    with metrics.aggregate(new_root=True) as logged:
        for rows in batches.frozen_batches:  # read here: there is no worker to be stopped
            trainer.valid_step(batches.collate_fn([batches.dataset[i] for i in rows]))
            names = [*(name for name in logged.get_smoothed_values() if not name.startswith("_")), "num_updates"]
            if metric in names:
                break
    return names
