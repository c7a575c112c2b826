"""The host's translation task with a prior over the target's words."""

from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any, Optional  # the host reads Optional[X] from its dataclasses, and not X | None

from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from fairseq_llrnn.core.prior import Prior
from fairseq_llrnn.plugin.tasks import load_task_prior


@dataclass
class LLRNNTranslationConfig(TranslationConfig):
    """Options of the host's task, and the prior."""

    prior: Optional[str] = field(
        default=None,
        metadata={"help": "directory that `llrnn prior` wrote (default: the folder `prior` inside the data directory)"},
    )


@register_task("llrnn_translation", dataclass=LLRNNTranslationConfig)
class LLRNNTranslationTask(TranslationTask):
    """Translation whose models and criterion find features, signatures and background in `task.prior`."""

    prior: Prior

    @classmethod
    def setup_task(cls, cfg: Namespace, **kwargs: Any) -> "LLRNNTranslationTask":
        task: LLRNNTranslationTask = super().setup_task(cfg, **kwargs)
        task.prior = load_task_prior(cfg.prior, cfg.data, task.target_dictionary, f"dict.{cfg.target_lang}.txt")
        return task
