"""The host's translation task with a prior over the target's words."""

import os
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from fairseq import utils
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.plugin.task import PriorConfig, PriorTask, load_task_prior


@dataclass
class LLRNNTranslationConfig(PriorConfig, TranslationConfig):
    """Options of the host's task, and the prior."""


@register_task("llrnn_translation", dataclass=LLRNNTranslationConfig)
class LLRNNTranslationTask(PriorTask, TranslationTask):
    """Translation into words that have features and a background."""

    @classmethod
    def setup_task(cls, cfg: Namespace, **kwargs: Any) -> "LLRNNTranslationTask":
        """Raises OptionError for --left-pad-target, PriorError for a prior that does not fit."""
        if cfg.left_pad_target:
            raise OptionError(
                "--left-pad-target: not supported by llrnn_translation (a recurrent decoder would read the padding); "
                "leave it out"
            )
        task: LLRNNTranslationTask = super().setup_task(cfg, **kwargs)
        task.prior = load_task_prior(cfg.prior, cfg.data, task.target_dictionary, f"dict.{cfg.target_lang}.txt")
        source_file = os.path.join(utils.split_paths(cfg.data)[0], f"dict.{cfg.source_lang}.txt")
        task.prior.check_source_dictionary(task.source_dictionary.symbols, source_file)
        return task

    def forced(self, sample: dict[str, Any], prefix_tokens: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        return prefix_tokens, sample["net_input"]["src_tokens"]
