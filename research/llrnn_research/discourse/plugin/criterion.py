"""The criterion `discourse`: −log p(answer), and the accuracy of each objective."""

import math
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.compat.user_errors import enter_command
from llrnn_research.discourse import OBJECTIVES
from llrnn_research.discourse.data import ANSWERS
from llrnn_research.discourse.plugin.model import DiscourseEncoder


@register_criterion("discourse", dataclass=FairseqDataclass)
class DiscourseCriterion(FairseqCriterion):
    """Cross-entropy in which every example has the same weight, whatever its objective."""

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        super().add_args(parser)
        enter_command()

    def forward(
        self, model: DiscourseEncoder, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """Return the loss in nats, the sample size, and the log."""
        if not isinstance(model, DiscourseEncoder):
            raise OptionError("--criterion discourse: needs --arch discourse_encoder, found another model; add it")
        objective, target = sample["objective"], sample["target"]
        scores = model(**sample["net_input"], objective=objective).float()
        loss = functional.cross_entropy(scores, target, reduction="none")  # shape: (B,)
        size = len(target)
        log: dict[str, Any] = {
            "loss": loss.detach().sum(),
            "ntokens": sample["ntokens"],
            "nsentences": size,
            "sample_size": size,
        }
        for name in OBJECTIVES:  # all processes must log the same names
            is_objective = name == objective
            log[f"examples_{name}"] = size if is_objective else 0
            log[f"correct_{name}"] = scores.argmax(1).eq(target).sum() if is_objective else 0
            if not model.training:
                num_answers = ANSWERS[name]
                counts = torch.bincount(target, minlength=num_answers).tolist() if is_objective else [0] * num_answers
                log |= {f"answer_{name}_{i}": count for i, count in enumerate(counts)}
        return (loss.sum() if reduce else loss), size, log

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        """Log the loss in bits, the accuracies and their mean `accuracy`, and in validation the chance accuracy."""
        total: Counter[str] = Counter()
        for log in logging_outputs:
            total.update(log)
        size = total["sample_size"]
        metrics.log_scalar("loss", total["loss"] / (size or 1) / math.log(2), size, round=4)
        for name in OBJECTIVES:
            examples = total[f"examples_{name}"]
            if not examples:
                continue
            metrics.log_scalar(f"{name}_accuracy", float(total[f"correct_{name}"]) / examples, examples, round=4)
            shares = [f"answer_{name}_{i}" for i in range(ANSWERS[name])]
            if shares[0] in total:
                for share in shares:  # names with _ are not shown
                    metrics.log_scalar(f"_{share}", total[share] / examples, examples)
                metrics.log_derived(f"{name}_chance", lambda meters, names=shares: max(_averages(meters, names, "_{}")))
        metrics.log_derived("accuracy", _mean_accuracy)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def _mean_accuracy(meters: Any) -> float:
    accuracies = _averages(meters, OBJECTIVES, "{}_accuracy")
    return round(sum(accuracies) / len(accuracies), 4)


def _averages(meters: Any, names: Sequence[str], called: str) -> list[float]:
    """Return the averages of meters with counts since their reset, or a 0 if there are none."""
    counted = [meters[called.format(name)] for name in names if called.format(name) in meters]
    return [round(meter.avg, 4) for meter in counted if meter.count] or [0.0]
